"""Directories: creation, atomic writing, locks."""

import contextlib
import os
import shutil

from cifar10.errors import UserError

try:
    import fcntl
except ImportError:
    # Windows has no such locks.
    fcntl = None

LOCK_FILE = '.cifar10.lock'
_INCOMPLETE = '.cifar10-incomplete-'


def check_checkpoint_dir(directory):
    """Raise UserError if `directory` is a file, or a pattern for TensorFlow."""
    check_no_file(directory)
    check_no_wildcards(directory)


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
      UserError: the directory cannot be made.
    """
    check_no_file(path)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(f'Cannot make the directory {path} ({error.strerror}): give another one')


def is_empty(path):
    """Return True if a directory is empty, except for the file of a Lock."""
    return not set(os.listdir(path)) - {LOCK_FILE}


class Lock:
    """Exclusive lock on a directory, by flock on a file in it; a context manager.

    On a system or file system without such locks, it locks nothing.
    """

    def __init__(self, path, busy_error=None, progress=None):
        """Set the directory, and the UserError to raise if another process holds the lock.

        Without an error, __enter__ waits for that process, and first calls `progress` with a line
        that says so. If the lock file cannot be written, it continues without the lock: the
        writer's own error has a better remedy.
        """
        self._path, self._busy_error, self._progress = path, busy_error, progress
        self._directory = None  # file descriptor
        self._cleanup = contextlib.ExitStack()

    def __enter__(self):
        if fcntl is not None:
            with self._cleanup as cleanup:
                # An open directory keeps its inode number, so `check` detects a replacement.
                self._directory = os.open(self._path, os.O_RDONLY)
                cleanup.callback(os.close, self._directory)
                self._lock()
                self._cleanup = cleanup.pop_all()
        return self

    def __exit__(self, *unused_error):
        self._cleanup.close()

    def _lock(self):
        path = os.path.join(self._path, LOCK_FILE)
        is_locked = False
        while not is_locked:
            try:
                # NFS locks only files that are open for writing.
                file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                if not self._busy_error:
                    return
                raise UserError(
                    f'Cannot write {path} ({error.strerror}): '
                    'make room there, make it writable, or give another directory'
                )
            self._cleanup.callback(os.close, file)
            self._acquire(file)
            # The former holder may have removed the file while this process waited.
            is_locked = _is_at(path, file)
        self._cleanup.callback(self._remove_file)

    def _acquire(self, file):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if self._busy_error:
                raise self._busy_error
            if self._progress:
                self._progress(f'Waiting for another process in {self._path}')
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # The file system has no locks.
            pass

    def _remove_file(self):
        with contextlib.suppress(OSError):
            os.unlink(LOCK_FILE, dir_fd=self._directory)

    def check(self):
        """Raise UserError if the directory has been moved, removed or replaced."""
        if self._directory is not None and not _is_at(self._path, self._directory):
            raise UserError(
                f'{self._path} has been moved or removed: '
                'if it was moved, put it back; then start again'
            )


def _is_at(path, descriptor):
    """Return True if `path` is the open file or directory."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def is_locked(path):
    """Return True if a process holds the lock on a directory, which may be read-only."""
    try:
        with open(os.path.join(path, LOCK_FILE)) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # There is no file, or the file system has no locks.
        return False


@contextlib.contextmanager
def atomic_directory(path):
    """Yield a temporary directory, then rename it to `path`; remove it after an error.

    The caller holds the Lock on the parent, so the leftover of a killed process is replaced.

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
