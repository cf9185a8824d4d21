"""CIFAR-10 and CIFAR-100 for Python: pickles, written as binary files.

A pickle is a dictionary: `data`, uint8 [n, 3072], and lists of labels
(https://www.cs.toronto.edu/~kriz/cifar.html). Pickles of other programs, or from the network, could
execute anything, so the unpickler here knows only arrays and Python's own types
(https://docs.python.org/3/library/pickle.html#restricting-globals).
"""

import codecs
import contextlib
import os
import pickle
from typing import Mapping, NamedTuple

import numpy as np

from cifar10 import errors
from cifar10.data import dataset


class Error(Exception):
    """Damaged or hostile file."""


class Layout(NamedTuple):
    """Names in the pickles."""

    meta_file: str
    label_keys: Mapping[str, int]  # key of each label byte -> number of classes
    names_keys: Mapping[str, str]  # file of class names, in the same order -> key in the meta file


_reconstruct = np.zeros(0).__reduce__()[0]  # NumPy's function for unpickling
_GLOBALS = {
    ('numpy', 'dtype'): np.dtype,
    ('numpy', 'ndarray'): np.ndarray,
    # before and since NumPy 2
    ('numpy.core.multiarray', '_reconstruct'): _reconstruct,
    ('numpy._core.multiarray', '_reconstruct'): _reconstruct,
    # Python 3 writes bytes as a call of this function to pickles that Python 2 can read.
    ('_codecs', 'encode'): codecs.encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) not in _GLOBALS:
            raise pickle.UnpicklingError(f'it names {module}.{name}, which is not allowed')
        return _GLOBALS[module, name]


def load(file):
    """Return the dictionary in a binary file; its keys are strings.

    Raises:
      Error: the file is no pickled dictionary, or has objects of other types.
    """
    try:
        # Python 2 wrote the original files. Its strings become bytes.
        pickled = _Unpickler(file, encoding='bytes').load()
        return {_text(key): value for key, value in pickled.items()}
    except Exception as error:  # A damaged or hostile pickle can raise any.
        raise Error(errors.reason(error))


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def pickle_name(binary_name):
    """Return the name of the pickle with the same images as a binary file."""
    return os.path.splitext(binary_name)[0]


def write_binary_files(layout, names, open_file, directory):
    """Write the binary files and the files of class names.

    Args:
      layout: the Layout of the pickles.
      names: names of the binary files.
      open_file: a function that opens a pickle by its name.
      directory: the directory to write to.

    Raises:
      Error: a pickle is damaged or hostile.
    """
    for name in names:
        with _named_errors(pickle_name(name)), open_file(pickle_name(name)) as file:
            records = _records(load(file), layout.label_keys)
        records.tofile(os.path.join(directory, name))
    with _named_errors(layout.meta_file), open_file(layout.meta_file) as file:
        meta = load(file)
        texts = {
            name: _class_names(meta.get(key), num_classes)
            for (name, key), num_classes in zip(
                layout.names_keys.items(), layout.label_keys.values()
            )
        }
    for name, text in texts.items():
        with open(os.path.join(directory, name), 'w', encoding='utf-8') as out:
            out.write(text)


@contextlib.contextmanager
def _named_errors(name):
    try:
        yield
    except Error as error:
        raise Error(f'{name}: {error}')


def _class_names(names, num_classes):
    """Return the text of a file of class names."""
    try:
        lines = [_text(name) + '\n' for name in names]
    except (TypeError, UnicodeDecodeError):
        raise Error('the class names are not a list of strings')
    if len(lines) != num_classes:
        raise Error(f'the number of class names is {len(lines)}, not {num_classes}')
    return ''.join(lines)


def _records(batch, label_keys):
    """Return the records, uint8 [n, label bytes + 3072], of an unpickled batch."""
    images = batch.get('data')
    if getattr(images, 'dtype', None) != np.uint8 or images.shape[1:] != (dataset.IMAGE_BYTES,):
        raise Error(f'data is not a uint8 array of the shape [n, {dataset.IMAGE_BYTES}]')
    columns = []
    for key, num_classes in label_keys.items():
        labels = batch.get(key)
        if not isinstance(labels, list) or len(labels) != len(images):
            raise Error(f'{key} is not a list of {len(images)} labels')
        if not all(type(label) is int and 0 <= label < num_classes for label in labels):
            raise Error(f'{key} has labels that are not 0 to {num_classes - 1}')
        columns.append(np.array(labels, np.uint8)[:, None])
    return np.concatenate(columns + [images], axis=1)
