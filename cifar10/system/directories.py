"""Directories: creation, atomic writing, locks."""

import contextlib
import glob
import os
import re
import shutil
import socket
import tempfile
import time

from cifar10.errors import UserError

try:
    import fcntl
except ImportError:
    # Windows has no such locks.
    fcntl = None

LOCK_FILE = '.cifar10.lock'
_INCOMPLETE = '.cifar10-incomplete-'
_JUST_MOVED = 'has just been moved or removed by another process: start again'


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
    """Exclusive lock on a directory; a context manager.

    It locks a file in the directory. NFS keeps a lock on a directory, or on a file that is not open
    for writing, local to the machine.

    Attributes:
      is_held: True if the lock was acquired; False on a system without locks.
    """

    def __init__(self, path, busy_error=None):
        """Set the directory, and the UserError to raise if another process holds the lock.

        Without an error, __enter__ waits for that process. If the lock file cannot be written, it
        continues without the lock.
        """
        self._path, self._busy_error = path, busy_error
        self._directory = None  # file descriptor
        self._cleanup = contextlib.ExitStack()
        self.is_held = False

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
        is_removed = True
        while is_removed:
            file = self._open_file()
            if file is None:
                return
            self._cleanup.callback(os.close, file)
            self.is_held = self._acquire(file)
            # The former holder may have removed the file while this process waited.
            is_removed = not self._is_lock_file(file)
        self._cleanup.callback(self._remove_file)
        self.check(_JUST_MOVED)

    def _is_lock_file(self, file):
        """Return True if a descriptor's file is still in the directory."""
        try:
            found = os.stat(LOCK_FILE, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(os.fstat(file), found)

    def _open_file(self):
        """Return a descriptor of the lock file; None to continue without the lock."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        try:
            return os.open(LOCK_FILE, flags, 0o666, dir_fd=self._directory)
        except OSError as error:
            self.check(_JUST_MOVED)
            # A killed process of another user may have left the file. A local lock needs no
            # permission to write.
            with contextlib.suppress(OSError):
                return os.open(LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._directory)
            if self._busy_error:
                raise UserError(
                    f'Cannot write {os.path.join(self._path, LOCK_FILE)} ({error.strerror}): make room there, make it '
                    'writable, or give another directory'
                )

    def _acquire(self, file):
        """Lock the file; return False if its file system has no locks."""
        try:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                except BlockingIOError:
                    # A process in is_locked holds a shared lock for a moment. Only the exclusive
                    # lock of a Lock makes this line raise the same error.
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    fcntl.flock(file, fcntl.LOCK_UN)
                    time.sleep(0.01)
        except BlockingIOError:
            if self._busy_error:
                raise self._busy_error
            print(f'Waiting for another process in {self._path}', flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
            return True
        except OSError:
            return False

    def _remove_file(self):
        with contextlib.suppress(OSError):
            os.unlink(LOCK_FILE, dir_fd=self._directory)

    def check(
        self,
        message='has been moved or removed: put it back, and start again; the saved files are intact',
    ):
        """Raise UserError if the directory has been moved, removed or replaced."""
        if self._directory is None:
            return
        try:
            is_same = os.path.samestat(os.fstat(self._directory), os.stat(self._path))
        except OSError:
            is_same = False
        if not is_same:
            raise UserError(f'{self._path} {message}')


def process_mark():
    """Return a part of a file name that identifies the machine and this process."""
    return f'~{socket.gethostname()}~{os.getpid()}~'


def is_abandoned(path):
    """Return True if the process whose process_mark is in the name of `path` has surely ended.

    The processes of other machines are in doubt, even for the holder of a Lock: some network file
    systems keep every lock local.
    """
    mark = re.search(rf'~{re.escape(socket.gethostname())}~(\d{{1,9}})~', os.path.basename(path))
    if not mark or mark.group(0) == process_mark():
        return bool(mark)
    if fcntl is None:
        return True  # On Windows, os.kill would end the process, and open files cannot be removed.
    try:
        os.kill(int(mark.group(1)), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # a process of another user
        pass
    return False


@contextlib.contextmanager
def atomic_directory(path):
    """Yield a temporary directory, then rename it to `path`; remove it after an error.

    Raises:
      OSError: the directory cannot be made or renamed.
    """
    parent, name = os.path.split(os.path.abspath(path))
    incomplete = tempfile.mkdtemp(prefix=_INCOMPLETE + process_mark(), dir=parent)
    try:
        directory = os.path.join(incomplete, name)
        os.mkdir(directory)
        yield directory
        with contextlib.suppress(OSError):  # `path` or the file does not exist.
            if is_empty(path):  # Without the file, the new directory can replace it.
                os.remove(os.path.join(path, LOCK_FILE))
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
        # Without the lock, another thread or container may have this process id.
        if lock.is_held and is_abandoned(leftover):
            shutil.rmtree(leftover, ignore_errors=True)


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
