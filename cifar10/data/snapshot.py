"""Data files that must not change under a run."""
import os

from cifar10 import files
from cifar10.data import verification


class Snapshot:
    """Size and time of each file at the start of a run."""

    def __init__(self, paths):
        """Raises UserError if a file is missing, or is not a regular file."""
        self._stats = {}
        for path in paths:
            verification.check_file(path)
            self._stats[path] = os.stat(path)

    def changed(self):
        """None, or a line that names the first file that has changed, and says how.

        It looks at sizes and times only: to open a file could wait for ever, if it has been replaced by a FIFO.
        """
        for path, before in self._stats.items():
            try:
                now = os.stat(path)
            except OSError as error:
                return '%s %s' % (path, 'has been removed' if isinstance(error, FileNotFoundError) else
                                  'cannot be read any more (%s)' % error.strerror)
            kind = files.special_kind(now.st_mode)
            if kind:
                return '%s is now %s' % (path, kind)
            if now.st_size != before.st_size:
                return '%s has changed: it had %d bytes, now %d' % (path, before.st_size, now.st_size)
            if now.st_mtime_ns != before.st_mtime_ns:
                return '%s has changed since the start' % path
        return None
