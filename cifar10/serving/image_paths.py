"""The image files that a user names: files, those in directories, the standard input."""

import os
import sys

from cifar10 import errors
from cifar10.data import decoding
from cifar10.errors import UserError

STANDARD_INPUT = '-'


def find(names, is_recursive, failures):
    """The paths of the files, in the order of the names and then of the alphabet; hidden ones in
    directories do not count.

    Args:
      names: of files and directories; STANDARD_INPUT stays as it is.
      is_recursive: whether directories in directories count.
      failures: a list, to which directories that cannot be read are appended: pairs of path and
        reason.

    Raises:
      UserError: a directory holds no file.
    """
    paths = []
    for name in names:
        paths += _in_directory(name, is_recursive, failures) if os.path.isdir(name) else [name]
    return paths


def _in_directory(directory, is_recursive, failures):
    def note(error):
        errors.warn('%s is left out: %s' % (error.filename, error.strerror))
        failures.append((error.filename, error.strerror))

    paths, before = [], len(failures)
    for place, folders, file_names in os.walk(directory, onerror=note):
        folders[:] = sorted(
            folder for folder in folders if is_recursive and not folder.startswith('.')
        )
        paths += [
            os.path.join(place, name) for name in sorted(file_names) if not name.startswith('.')
        ]
    if not paths and len(failures) == before:
        raise UserError(
            '%s holds no file%s: name another directory'
            % (directory, '' if is_recursive else ' (directories in it count with --recursive)')
        )
    return paths


def read(path):
    """The bytes of a file, or of the standard input; see decoding.read."""
    if path != STANDARD_INPUT:
        return decoding.read(path)
    content = sys.stdin.buffer.read(decoding.MAX_BYTES + 1) if sys.stdin else b''
    if len(content) > decoding.MAX_BYTES:
        raise UserError('it is larger than %d MB' % (decoding.MAX_BYTES >> 20))
    return content
