"""Directories that one process at a time works in."""
import contextlib
import os

from cifar10.errors import UserError

try:
    import fcntl
except ImportError:  # Windows: two processes in one directory are not told apart there
    fcntl = None


def make(path):
    """Makes the directory `path` and its parents unless it is there.

    Raises:
      UserError: it cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError('Cannot make the directory %s (%s): give another one' % (path, error.strerror))


@contextlib.contextmanager
def locked(path, busy=None):
    """Holds a lock on the directory `path`, which no other process can hold then.

    Yields whether there is a lock: Windows and some network file systems have none.

    Args:
      path: a directory that is there.
      busy: what the UserError says if another process holds the lock; without it, wait.
    """
    handle = None if fcntl is None else os.open(path, os.O_RDONLY)
    try:
        held = handle is not None and _lock(handle, path, busy)
        if held and not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise UserError('%s has just been moved by another process: start again' % path)
        yield held
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle, path, busy):
    """Locks what `handle` has open; returns whether that can be done here at all."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if busy:
            raise UserError(busy)
        print('Waiting for another process that works in %s' % path, flush=True)
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        return False
    return True
