"""Directories: creation, atomic writing, locks."""

import contextlib
import fcntl
import os
import shutil

from cifar10.errors import UserError

LOCK_FILE = '.cifar10.lock'
_INCOMPLETE = '.cifar10-incomplete-'


def check_no_wildcards(path):
    """Raise UserError if `path` is a pattern for TensorFlow.

    With * ? [ ] or a backslash in a checkpoint's name, TensorFlow would read, or delete, files in
    other directories.
    """
    path = os.path.abspath(path)
    if any(character in path for character in '*?[]\\' if character != os.sep):
        raise UserError(
            f'{path} has one of the characters * ? [ ] \\, which TensorFlow reads as a pattern: '
            'rename it, or give another directory'
        )


def check_no_file(path, remedy='give another one'):
    """Raise UserError if `path` or a parent exists but is no directory."""
    ancestor = os.path.abspath(path)
    while not os.path.lexists(ancestor):
        ancestor = os.path.dirname(ancestor)
    if not os.path.isdir(ancestor):
        raise UserError(f'{ancestor} is not a directory: {remedy}')


def check_exists(path, hint):
    """Raise UserError unless `path` is a directory; `hint` is the remedy if it is missing."""
    check_no_file(path)
    if not os.path.isdir(path):
        raise UserError(f'{path} does not exist: {hint}')


def make(path):
    """Make the directory `path` and its parents if they do not exist.

    Raises:
      UserError: the directory cannot be made.
    """
    check_no_file(path)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(f'Cannot make the directory {path} ({error.strerror}): give another one')


def is_empty(path):
    """Return True if a directory is empty, except for the file of `lock`."""
    return not set(os.listdir(path)) - {LOCK_FILE}


@contextlib.contextmanager
def lock(path, busy=None, progress=None):
    """Make a directory, and hold the exclusive lock on it: flock on a file in it.

    A file system without locks has no effect.

    Args:
      path: the directory.
      busy: the message of the UserError if another process holds the lock; None waits for it.
      progress: a function of the line that is printed before the wait, or None.

    Raises:
      UserError: the directory cannot be made or written; see also `busy`.
    """
    make(path)
    file_path = os.path.join(path, LOCK_FILE)
    try:
        # NFS locks only files that are open for writing. In /tmp, another user may own the file.
        mode = 'a' if busy or not os.path.exists(file_path) else 'r'
        file = open(file_path, mode)  # noqa: SIM115 (it is closed below)
    except OSError as error:
        raise UserError(
            f'Cannot write {file_path} ({error.strerror}): '
            'make room there, make it writable, or give another directory'
        )
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if busy:
                raise UserError(busy)
            if progress:
                progress(f'Waiting for another process in {path}')
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # The file system has no locks.
            pass
        yield


def is_locked(path):
    """Return True if a process holds the lock on a directory, which may be read-only."""
    try:
        with open(os.path.join(path, LOCK_FILE)) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # There is no file, or the file system has no locks.
        return False


@contextlib.contextmanager
def atomic_directory(path):
    """Yield a temporary directory, then rename it to `path`; remove it after an error.

    The caller holds the lock on the parent, so the leftover of a killed process is replaced.

    Raises:
      OSError: the directory cannot be made or renamed.
    """
    parent, name = os.path.split(os.path.abspath(path))
    incomplete = os.path.join(parent, _INCOMPLETE + name)
    shutil.rmtree(incomplete, ignore_errors=True)
    try:
        os.mkdir(incomplete)
        yield incomplete
        os.rename(incomplete, path)
    finally:
        shutil.rmtree(incomplete, ignore_errors=True)
