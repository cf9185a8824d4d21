"""Directories: trust, creation, atomic writing, locks."""

import contextlib
import glob
import os
import shutil
import stat
import tempfile

from cifar10.errors import UserError
from cifar10.system import files

try:
    import fcntl
except ImportError:
    # Windows has no such locks.
    fcntl = None

_INCOMPLETE = '.cifar10-incomplete-'


def check_trusted(path):
    """Reject a path that another user could have planted in a world-writable directory.

    That user could redirect or replace the files of this process. Root is trusted.

    Raises:
      UserError: a directory or link of the path belongs to another user.
    """
    if not hasattr(os, 'getuid'):  # Windows
        return
    paths = [os.path.abspath(path)]
    for ancestor in paths:
        parent = os.path.dirname(ancestor)
        if (
            os.path.lexists(ancestor)
            and os.stat(parent).st_mode & stat.S_IWOTH
            and os.lstat(ancestor).st_uid not in (os.getuid(), 0)
        ):
            raise UserError(
                f'{ancestor} belongs to another user, in a place where every user can write: give another directory'
            )
        next_paths = [parent]
        if os.path.islink(ancestor):
            next_paths.append(os.path.normpath(os.path.join(parent, os.readlink(ancestor))))
        paths += [path for path in next_paths if path not in paths]


def check_checkpoint_dir(directory):
    """Check that `directory` is not a file, and that its name is not a pattern for TensorFlow.

    With * ? [ ] or a backslash in a checkpoint's name, TensorFlow would read, or delete, files in
    other directories.

    Raises:
      UserError: `directory` or a parent is not a directory, or the name is invalid.
    """
    files.check_name(directory)
    path = os.path.abspath(directory)
    files.check_name(path)
    check_no_file(path)
    check_no_wildcards(path)


def check_no_wildcards(path):
    """Raise UserError if `path` is a pattern for TensorFlow; see check_checkpoint_dir."""
    if any(character in path for character in '*?[]\\' if character != os.sep):
        raise UserError(
            f'{path} has one of the characters * ? [ ] \\, which TensorFlow reads as a pattern: rename it, or give another '
            'directory'
        )


def missing_directories(path):
    """Return the missing directories among `path` and its parents, innermost first."""
    path, found = os.path.abspath(path), []
    # On Windows the drive itself may be missing.
    while not os.path.lexists(path) and path != os.path.dirname(path):
        found.append(path)
        path = os.path.dirname(path)
    return found


def check_no_file(path):
    """Raise UserError if `path` or a parent exists but is no directory."""
    absent = missing_directories(path)
    ancestor = os.path.dirname(absent[-1]) if absent else path
    if not os.path.isdir(ancestor):
        raise UserError(f'{ancestor} is not a directory: give another one')


def check_exists(path, hint):
    """Raise UserError unless `path` is a directory; `hint` is the remedy if it is missing."""
    check_no_file(path)
    if not os.path.isdir(path):
        raise UserError(f'{path} does not exist: {hint}')


def make(path):
    """Make the directory `path` and its parents if they do not exist.

    Raises:
      UserError: the directory cannot be made, its name is invalid, or check_trusted rejects it.
    """
    files.check_name(path)
    check_trusted(path)
    check_no_file(path)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(f'Cannot make the directory {path} ({error.strerror}): give another one')


class Lock:
    """Exclusive lock on a directory; a context manager.

    Attributes:
      is_held: True if the lock was acquired; False on a system without locks.
    """

    def __init__(self, path, busy_message=None):
        """Set the directory, and the UserError's message if another process holds the lock.

        Without a message, __enter__ waits for that process.
        """
        self._path, self._busy_message = path, busy_message
        self._handle = None
        self.is_held = False

    def __enter__(self):
        if fcntl is not None:
            # An open directory keeps its inode number, so `check` detects a replacement.
            self._handle = os.open(self._path, os.O_RDONLY)
            try:
                self._lock()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *unused_error):
        if self._handle is not None:
            os.close(self._handle)

    def _lock(self):
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if self._busy_message:
                raise UserError(self._busy_message)
            print(f'Waiting for another process in {self._path}', flush=True)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        except OSError:  # The file system has no locks.
            return
        self.is_held = True
        self.check('has just been moved or removed by another process: start again')

    def check(
        self,
        message='has been moved or removed: put it back, and start again; the saved files are intact',
    ):
        """Raise UserError if the directory has been moved, removed or replaced."""
        if self._handle is None:
            return
        try:
            is_same = os.path.samestat(os.fstat(self._handle), os.stat(self._path))
        except OSError:
            is_same = False
        if not is_same:
            raise UserError(f'{self._path} {message}')


@contextlib.contextmanager
def atomic_directory(path):
    """Yield a temporary directory, then rename it to `path`; remove it after an error.

    Raises:
      OSError: the directory cannot be made or renamed.
    """
    parent, name = os.path.split(os.path.abspath(path))
    incomplete = tempfile.mkdtemp(prefix=_INCOMPLETE, dir=parent)
    try:
        directory = os.path.join(incomplete, name)
        os.mkdir(directory)
        yield directory
        os.rename(directory, path)
    finally:
        shutil.rmtree(incomplete, ignore_errors=True)


@contextlib.contextmanager
def write_lock(directory):
    """Hold the lock on a directory; before and after, remove leftovers of atomic_directory.

    A process that is killed, or gets a signal in mkdtemp, leaves such a directory.
    """
    with Lock(directory) as lock:
        try:
            _remove_incomplete(directory, lock)
            yield
        finally:
            _remove_incomplete(directory, lock)


def _remove_incomplete(parent, lock):
    for leftover in glob.glob(os.path.join(glob.escape(parent), _INCOMPLETE + '*')):
        if lock.is_held:  # Without locks, another process may be writing.
            shutil.rmtree(leftover, ignore_errors=True)


def is_locked(path):
    """Return True if a process holds the lock on a directory."""
    try:
        with Lock(path, 'busy'):
            return False
    except UserError:
        return True
