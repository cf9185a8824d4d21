"""Files that are written whole, and directories that one process at a time works in."""
import contextlib
import os

from cifar10.errors import UserError

try:
    import fcntl
except ImportError:  # Windows has no such locks: two processes in one directory do not notice each other there
    fcntl = None


def write_whole(path, content, remedy):
    """Writes a file completely, or leaves what was there.

    Args:
      path: the file.
      content: a string or bytes.
      remedy: what the user can do where it cannot be written.

    Raises:
      UserError: it cannot be written.
    """
    new_path = path + '.new'
    try:
        with open(new_path, 'wb') as new:
            new.write(content if isinstance(content, bytes) else content.encode())
        os.replace(new_path, path)
    except OSError as error:
        raise UserError('Cannot write %s (%s): %s' % (path, error.strerror, remedy))
    finally:
        if os.path.exists(new_path):
            os.remove(new_path)


def make_directory(path):
    """Makes the directory `path` and its parents if they do not exist.

    Raises:
      UserError: it cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError('Cannot make the directory %s (%s): give another one' % (path, error.strerror))


@contextlib.contextmanager
def locked(path, busy=None):
    """Holds a lock on the directory `path`, which only one process can hold at a time.

    Yields whether there is a lock: Windows and some network file systems have none.

    Args:
      path: an existing directory.
      busy: what the UserError says if another process holds the lock; if None, wait for that process.
    """
    handle = None if fcntl is None else os.open(path, os.O_RDONLY)
    try:
        is_locked = handle is not None and _lock(handle, path, busy)
        if is_locked and not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise UserError('%s has just been moved by another process: start again' % path)
        yield is_locked
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle, path, busy):
    """Locks the open directory `handle`; returns whether the file system supports locks."""
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
