"""Files: usable names, regular files, atomic writing."""

import contextlib
import errno
import hashlib
import itertools
import json
import os
import stat

from cifar10 import errors
from cifar10.errors import UserError

_SPECIAL_FILE_TYPES = [
    (stat.S_ISDIR, 'a directory'),
    (stat.S_ISFIFO, 'a FIFO'),
    (stat.S_ISSOCK, 'a socket'),
    (stat.S_ISCHR, 'a device'),
    (stat.S_ISBLK, 'a device'),
]


def check_name(path):
    """Check that TensorFlow will understand the name of a file or directory as this machine does.

    Raises:
      UserError: it names a place that is not local, or has bytes that are not UTF-8, or control
        characters.
    """
    if '://' in path:
        raise UserError(f'{path} is not a place on this machine: give a local path')
    try:
        is_same_there = os.fsencode(path) == path.encode()
    except UnicodeEncodeError:
        is_same_there = False
    if not is_same_there:
        raise UserError(
            f'{path.encode(errors="backslashreplace").decode()} is not UTF-8, with which TensorFlow spells names: give '
            'another name, or use a locale with UTF-8'
        )
    if any(character < ' ' or '\x7f' <= character <= '\x9f' for character in path):
        raise UserError(f'{path!r} has control characters: give another name')


def special_file_type(mode):
    """Return the type of a file that is not regular, like 'a FIFO', by its `st_mode`, or None."""
    return next((file_type for is_type, file_type in _SPECIAL_FILE_TYPES if is_type(mode)), None)


def check_regular_file(path, hint):
    """Check that what exists at `path` is a regular file.

    Reading a FIFO can wait for ever, and a device never ends.

    Args:
      path: the file.
      hint: what the user can do if it is something else.

    Raises:
      UserError: it is something else.
      OSError: it does not exist.
    """
    file_type = special_file_type(os.stat(path).st_mode)
    if file_type:
        raise UserError(f'{path} is {file_type}, not a file: {hint}')


def digest(path, algorithm):
    """Return the checksum of a file by an algorithm of hashlib, in hexadecimal digits."""
    hasher = hashlib.new(algorithm)
    with open(path, 'rb') as file:
        for chunk in iter(lambda: file.read(1 << 18), b''):
            hasher.update(chunk)
    return hasher.hexdigest()


def read_json(path, validate, hint):
    """Return the JSON in a file as `validate` returns it; None if there is no file.

    Args:
      path: the file.
      validate: a function of the content; it raises an error if that is invalid.
      hint: what the user can do if the file is damaged.

    Raises:
      UserError: the file is damaged.
    """
    if not os.path.lexists(path):
        return None
    try:
        check_regular_file(path, hint)
        with open(path, encoding='utf-8') as file:
            return validate(json.load(file))
    except (
        OSError,
        RecursionError,
        ValueError,
        OverflowError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise UserError(f'{path} is damaged ({errors.reason(error)}): {hint}')


def open_new(path):
    """Open a new binary file to write, called `path`, a dot and the first free number.

    It is never an existing file or link.
    """
    for number in itertools.count():
        with contextlib.suppress(FileExistsError):
            return open(f'{path}.{number}', 'xb')


def check_writable(path):
    """Raise UserError, before long work, if no file can be written at `path`."""
    try:
        if os.path.isdir(path) or not os.path.basename(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with open_new(path + '.new') as new:
            pass
        os.remove(new.name)
    except OSError as error:
        raise UserError(
            f'Cannot write {path} ({error.strerror}): name a file in an existing directory that can be written to'
        )


def atomic_write(path, content, hint):
    """Write a file completely, or leave the old one.

    Args:
      path: the file; a link is replaced, not followed.
      content: a string or bytes.
      hint: what the user can do where it cannot be written.

    Raises:
      UserError: it cannot be written.
    """
    content = content if isinstance(content, bytes) else content.encode()
    new = None
    try:
        with open_new(path + '.new') as new:
            new.write(content)
        os.replace(new.name, path)
    except OSError as error:
        raise UserError(f'Cannot write {path} ({error.strerror}): {hint}')
    finally:
        if new:
            with contextlib.suppress(OSError):
                os.remove(new.name)
