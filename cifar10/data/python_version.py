"""CIFAR-10 and CIFAR-100 for Python: pickles, written as binary files.

A pickle is a dictionary: `data`, uint8 [n, 3072], and lists of labels
(https://www.cs.toronto.edu/~kriz/cifar.html). A pickle could execute anything, so the unpickler
here knows only arrays and Python's own types
(https://docs.python.org/3/library/pickle.html#restricting-globals).
"""

import os
import pickle

import numpy as np

from cifar10 import errors
from cifar10.data import dataset


class Error(Exception):
    """Damaged or hostile file."""


_GLOBALS = {
    ('numpy', 'dtype'): np.dtype,
    ('numpy', 'ndarray'): np.ndarray,
    ('numpy.core.multiarray', '_reconstruct'): np.zeros(0).__reduce__()[0],
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
        rows = _load(open_file, pickle_name(name), _records, layout)
        rows.tofile(os.path.join(directory, name))
    texts = _load(open_file, layout.meta_file, _class_names, layout)
    for name, text in texts.items():
        with open(os.path.join(directory, name), 'w', encoding='utf-8') as out:
            out.write(text)


def _load(open_file, name, convert, layout):
    """Return convert(dictionary, layout) for the dictionary in a pickle."""
    with open_file(name) as file:
        try:
            # Python 2 wrote the original files. Its strings become bytes.
            pickled = _Unpickler(file, encoding='bytes').load()
            return convert({_text(key): value for key, value in pickled.items()}, layout)
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


def _records(content, layout):
    """Return the records of an unpickled dictionary, uint8 [n, record_bytes]."""
    images = content.get('data')
    if getattr(images, 'dtype', None) != np.uint8 or images.shape[1:] != (dataset.IMAGE_BYTES,):
        raise ValueError(f'data is not a uint8 array of the shape [n, {dataset.IMAGE_BYTES}]')
    columns = []
    for key in layout.label_keys:
        labels = np.asarray(content.get(key))
        if labels.shape != (len(images),) or labels.dtype.kind not in 'iu':
            raise ValueError(f'{key} is not a list of {len(images)} labels')
        columns.append(labels[:, None].astype(np.uint8))
    return np.concatenate([*columns, images], axis=1)
