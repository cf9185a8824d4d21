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

    Args:
      path: a directory that is there.
      busy: what the UserError says if another process holds the lock; without it, wait.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
    except BlockingIOError:
        os.close(handle)
        raise UserError(busy)
    except OSError:  # some network file systems have no locks
        pass
    try:
        yield
    finally:
        os.close(handle)
