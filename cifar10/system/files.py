"""Files: checksums, JSON, atomic writing."""

import contextlib
import errno
import hashlib
import json
import os
import tempfile

from cifar10 import errors
from cifar10.errors import UserError


def digest(path, algorithm):
    """Return the hexadecimal checksum of a file by an algorithm of hashlib."""
    # FIPS mode forbids MD5 for security. Python 3.7 and 3.8 ignore the argument.
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, 'rb') as file:
        for chunk in iter(lambda: file.read(1 << 18), b''):
            hasher.update(chunk)
    return hasher.hexdigest()


def read_json(path, parse, hint):
    """Return the parsed JSON in a file; None if there is no file.

    Args:
      path: the file.
      parse: a function that converts the content, or raises an error if it is invalid.
      hint: the remedy in the error.

    Raises:
      UserError: the file is damaged.
    """
    if not os.path.lexists(path):
        return None
    try:
        with open(path, encoding='utf-8') as file:
            return parse(json.load(file))
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f'{path} is damaged ({errors.reason(error)}): {hint}')


def check_writable(path):
    """Raise UserError if no file can be written at `path`."""
    try:
        if not os.path.basename(path) or os.path.exists(path) and not os.path.isfile(path):
            raise OSError(errno.EINVAL, 'it is not a regular file')  # but, say, /dev/stdout
        with tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(path))):
            pass
    except OSError as error:
        raise UserError(
            f'Cannot write {path} ({error.strerror}): '
            'name a file in an existing, writable directory'
        )


def atomic_write(path, content, hint):
    """Write a file atomically: after an error, the old file is unchanged.

    Args:
      path: the file.
      content: a string or bytes.
      hint: the remedy in the error.

    Raises:
      UserError: the file cannot be written.
    """
    new = path + '.new'
    try:
        with open(new, 'wb') as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.replace(new, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(new)
        raise UserError(f'Cannot write {path} ({error.strerror}): {hint}')
