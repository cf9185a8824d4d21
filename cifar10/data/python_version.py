"""CIFAR-10 and CIFAR-100 for Python: pickles, written as binary files.

A pickle is a dictionary: `data`, uint8 [n, 3072], and lists of labels
(https://www.cs.toronto.edu/~kriz/cifar.html). Pickles of other programs, or from the network, could
execute anything, so the unpickler here knows only arrays, lists, strings, bytes and integers.
"""

import contextlib
import io
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


class _Dtype:
    """Stand-in for numpy.dtype: only uint8."""

    def __init__(self, code, *unused):
        if code not in (b'u1', 'u1'):
            raise pickle.UnpicklingError('an array is not uint8')

    def set_state(self, state):
        """Ignore the byte order and the fields, which uint8 does not have."""


class _Array:
    """Stand-in for numpy.ndarray: keeps the values, and calls nothing of the pickle's choice."""

    values = None

    def set_state(self, state):
        """Set the values, uint8, from the state of a numpy.ndarray."""
        _, shape, _, is_fortran, content = state
        self.values = np.frombuffer(content, np.uint8).reshape(
            shape, order='F' if is_fortran else 'C'
        )


def _encode(text, encoding):
    """Return bytes, which Python 3 writes as text to pickles that Python 2 can read."""
    if encoding not in (b'latin1', 'latin1'):
        raise pickle.UnpicklingError('an encoding is not latin1')
    return text.encode('latin1')


_GLOBALS = {
    ('numpy', 'dtype'): _Dtype,
    ('numpy', 'ndarray'): _Array,
    # before and since NumPy 2
    ('numpy.core.multiarray', '_reconstruct'): lambda *unused: _Array(),
    ('numpy._core.multiarray', '_reconstruct'): lambda *unused: _Array(),
    ('_codecs', 'encode'): _encode,
}
_OPCODES = (
    'PROTO FRAME STOP MARK GLOBAL STACK_GLOBAL REDUCE BUILD EMPTY_DICT SETITEM SETITEMS EMPTY_LIST '
    'APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 NONE NEWTRUE NEWFALSE BININT BININT1 '
    'BININT2 LONG1 BINSTRING SHORT_BINSTRING BINUNICODE SHORT_BINUNICODE BINBYTES SHORT_BINBYTES '
    'BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET'
)


class _Dispatch(dict):
    def __missing__(self, opcode):
        raise pickle.UnpicklingError(f'its opcode {opcode} is not allowed')


class _Unpickler(pickle._Unpickler):  # The one in C has no table of opcodes.
    dispatch = _Dispatch(
        {
            code[0]: pickle._Unpickler.dispatch[code[0]]
            for code in (getattr(pickle, name) for name in _OPCODES.split())
        }
    )

    def find_class(self, module, name):
        if (module, name) not in _GLOBALS:
            name = f'{module}.{name}'[:100]
            raise pickle.UnpicklingError(f'it names {name}, which is not allowed')
        return _GLOBALS[module, name]

    def load_build(self):
        state = self.stack.pop()
        self.stack[-1].set_state(state)

    dispatch[pickle.BUILD[0]] = load_build

    def load_setitem(self):
        value, key = self.stack.pop(), self.stack.pop()
        self._set_items([key, value])

    dispatch[pickle.SETITEM[0]] = load_setitem

    def load_setitems(self):
        self._set_items(self.pop_mark())

    dispatch[pickle.SETITEMS[0]] = load_setitems

    def _set_items(self, items):
        # The hash of nested tuples can take for ever, or end the process.
        if not all(type(key) in (str, bytes) for key in items[::2]):
            raise pickle.UnpicklingError('a key is no string')
        self.stack[-1].update(zip(items[::2], items[1::2]))


def load(file):
    """Return the dictionary in a binary file; its keys are strings, its arrays uint8.

    Raises:
      Error: the file is no pickle of protocol 2 to 4, or has other types.
    """
    content = io.BytesIO(file.read())  # A file would allocate any length that a pickle names.
    try:
        # Python 2 wrote the original files. Its strings become bytes.
        pickled = _Unpickler(content, encoding='bytes').load()
        if type(pickled) is not dict:
            raise Error('it is no dictionary')
        return {_text(key): _checked(value) for key, value in pickled.items()}
    except Exception as error:  # A damaged or hostile pickle can raise any.
        raise Error(errors.one_line_message(error) or type(error).__name__)


def _checked(value):
    """Return a value of the dictionary, or raise Error if it has another type."""
    if isinstance(value, _Array):
        return value.values
    values = value if type(value) is list else [value]
    if not all(type(value) in (int, str, bytes) for value in values):
        raise Error('a value is no array, list, string or integer')
    return value


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
    if not isinstance(images, np.ndarray) or images.shape[1:] != (dataset.IMAGE_BYTES,):
        raise Error(f'data is not an array of the shape [n, {dataset.IMAGE_BYTES}]')
    columns = []
    for key, num_classes in label_keys.items():
        labels = batch.get(key)
        if not isinstance(labels, list) or len(labels) != len(images):
            raise Error(f'{key} is not a list of {len(images)} labels')
        if not all(type(label) is int and 0 <= label < num_classes for label in labels):
            raise Error(f'{key} has labels that are not 0 to {num_classes - 1}')
        columns.append(np.array(labels, np.uint8)[:, None])
    return np.concatenate(columns + [images], axis=1)
