"""The image files that a user names: files, those in directories, the standard input."""
import os
import sys

from cifar10.data import decoding
from cifar10.errors import UserError

STANDARD_INPUT = '-'


def find(names, is_recursive):
    """The paths of the files, in the order of the names and then of the alphabet; hidden ones in directories do not count.

    Args:
      names: of files and directories; STANDARD_INPUT stays as it is.
      is_recursive: whether directories in directories count.

    Raises:
      UserError: a directory holds no file, or cannot be read.
    """
    paths = []
    for name in names:
        paths += _in_directory(name, is_recursive) if os.path.isdir(name) else [name]
    return paths


def _in_directory(directory, is_recursive):
    paths = []
    for place, folders, file_names in os.walk(directory, onerror=_fail):
        folders[:] = sorted(folder for folder in folders if is_recursive and not folder.startswith('.'))
        paths += [os.path.join(place, name) for name in sorted(file_names) if not name.startswith('.')]
    if not paths:
        raise UserError('%s holds no file%s: name another directory' % (
            directory, '' if is_recursive else ' (directories in it count with --recursive)'))
    return paths


def _fail(error):
    raise UserError('Cannot read the directory %s (%s): name another one' % (error.filename, error.strerror))


def read(path):
    """The bytes of a file, or of the standard input; see decoding.read."""
    if path != STANDARD_INPUT:
        return decoding.read(path)
    content = sys.stdin.buffer.read(decoding.MAX_BYTES + 1) if sys.stdin else b''
    if len(content) > decoding.MAX_BYTES:
        raise UserError('it is larger than %d MB' % (decoding.MAX_BYTES >> 20))
    return content
