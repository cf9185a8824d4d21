"""CIFAR-10 and CIFAR-100 for Python: pickles, written as binary files.

A pickle is a dictionary: `data`, uint8 [n, 3072], and lists of labels
(https://www.cs.toronto.edu/~kriz/cifar.html). Pickles of other programs, or from the network, could
execute anything, so the unpickler here knows only arrays and Python's own types
(https://docs.python.org/3/library/pickle.html#restricting-globals).
"""

import codecs
import os
import pickle
from typing import NamedTuple, Sequence

import numpy as np

from cifar10 import errors
from cifar10.data import dataset


class Error(Exception):
    """Damaged or hostile file."""


class Batch(NamedTuple):
    """Content of a pickle."""

    images: np.ndarray  # uint8 [n, 3072]
    labels: Sequence[np.ndarray]  # integers [n], for each key
    image_files: Sequence[str]  # names of the image files; empty if unknown


_reconstruct = np.zeros(0).__reduce__()[0]  # NumPy's function for unpickling
_new_scalar = np.int64(0).__reduce__()[0]


def _scalar(dtype, content):
    if dtype.kind not in 'iu':  # The content of an object would be an address.
        raise ValueError(f'it has a number of the type {dtype}')
    return _new_scalar(dtype, content)


def _from_buffer(content, dtype, shape, order):
    return np.frombuffer(content, dtype).reshape(shape, order=order)


_GLOBALS = {
    ('numpy', 'dtype'): np.dtype,
    ('numpy', 'ndarray'): np.ndarray,
    # before and since NumPy 2
    ('numpy.core.multiarray', '_reconstruct'): _reconstruct,
    ('numpy._core.multiarray', '_reconstruct'): _reconstruct,
    # Python 3 writes bytes as a call of this function to pickles that Python 2 can read.
    ('_codecs', 'encode'): codecs.encode,
    # a label that is a number of NumPy
    ('numpy.core.multiarray', 'scalar'): _scalar,
    ('numpy._core.multiarray', 'scalar'): _scalar,
    # arrays in protocol 5
    ('numpy.core.numeric', '_frombuffer'): _from_buffer,
    ('numpy._core.numeric', '_frombuffer'): _from_buffer,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) not in _GLOBALS:
            raise pickle.UnpicklingError(f'it names {module}.{name}, which is not allowed')
        return _GLOBALS[module, name]


def pickle_name(binary_name):
    """Return the name of the pickle with the same images as a binary file."""
    return os.path.splitext(binary_name)[0]


def write_binary_files(published, open_file, directory):
    """Write the binary files and the files of class names.

    Args:
      published: a Published data set.
      open_file: a function that opens a pickle by its name.
      directory: the directory to write to.

    Raises:
      Error: a pickle is damaged or hostile.
    """
    layout = published.python
    for name in published.binary_files:
        batch = read_batch(open_file, pickle_name(name), layout.label_keys)
        columns = [labels[:, None].astype(np.uint8) for labels in batch.labels]
        rows = np.concatenate([*columns, batch.images], axis=1)
        rows.tofile(os.path.join(directory, name))
    texts = _load(open_file, layout.meta_file, _class_names, layout)
    for name, text in texts.items():
        with open(os.path.join(directory, name), 'w', encoding='utf-8') as out:
            out.write(text)


def read_batch(open_file, name, label_keys):
    """Return the Batch in a pickle.

    Args:
      open_file: a function that opens a pickle by its name.
      name: the name of the pickle.
      label_keys: dict from the key of labels to their number of classes.

    Raises:
      Error: the pickle is damaged or hostile.
    """
    return _load(open_file, name, _batch, label_keys)


def read_class_names(open_file, layout):
    """Return the class names in the meta file of a PythonLayout, whatever their number.

    Raises:
      Error: the pickle is damaged or hostile.
    """
    *_, key = layout.names_keys.values()
    return _load(open_file, layout.meta_file, lambda meta: list(map(_text, meta.get(key, []))))


def _load(open_file, name, convert, *arguments):
    """Return convert(dictionary, *arguments) for the dictionary in a pickle.

    Raises:
      Error: the file is no pickled dictionary, has objects of other types, or does not convert.
    """
    with open_file(name) as file:
        try:
            # Python 2 wrote the original files. Its strings become bytes.
            pickled = _Unpickler(file, encoding='bytes').load()
            return convert({_text(key): value for key, value in pickled.items()}, *arguments)
        except Exception as error:  # A damaged or hostile pickle can raise any.
            raise Error(f'{name}: {errors.reason(error)}')


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def _class_names(meta, layout):
    """Return the text of each file of class names."""
    texts = {}
    for (file_name, key), num_classes in zip(layout.names_keys.items(), layout.label_keys.values()):
        names = [_text(name) + '\n' for name in meta.get(key, [])]
        if len(names) != num_classes:
            raise ValueError(f'the number of class names is {len(names)}, not {num_classes}')
        texts[file_name] = ''.join(names)
    return texts


def _batch(content, label_keys):
    """Return the Batch of an unpickled dictionary."""
    images = content.get('data')
    if getattr(images, 'dtype', None) != np.uint8 or images.shape[1:] != (dataset.IMAGE_BYTES,):
        raise ValueError(f'data is not a uint8 array of the shape [n, {dataset.IMAGE_BYTES}]')
    columns = []
    for key, num_classes in label_keys.items():
        labels = np.asarray(content.get(key))
        if labels.shape != (len(images),) or labels.dtype.kind not in 'iu':
            raise ValueError(f'{key} is not a list of {len(images)} labels')
        if not np.isin(labels, np.arange(num_classes)).all():
            raise ValueError(f'{key} has labels that are not 0 to {num_classes - 1}')
        columns.append(labels)
    names = content.get('filenames')
    is_complete = isinstance(names, list) and len(names) == len(images)
    texts = [
        name.decode(errors='backslashreplace') if isinstance(name, bytes) else str(name)
        for name in (names if is_complete else [])
    ]
    return Batch(images, columns, texts)
