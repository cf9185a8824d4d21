"""Data files that must not change under a run."""

import os

from cifar10 import files
from cifar10.data import verification


class Snapshot:
    """Size, times and checksum of each file at the start of a run."""

    def __init__(self, records):
        """Takes a Records; raises UserError if one of its files is missing, or is not a regular
        file."""
        self._label_weights = records.label_weights
        self._found = {}
        for path in records.paths:
            verification.check_file(path)
            self._found[path] = os.stat(path), verification.checksum(path, self._label_weights)

    def changed(self):
        """None, or a line that names the first file that has changed, and says how.

        Sizes and times are compared: to open a file could wait for ever, if it has been replaced by
        a FIFO. Nobody can set back the change time (ctime), but permissions and hard links change
        it too. If nothing else differs, the checksum decides.
        """
        for path, (before, checksum) in self._found.items():
            try:
                now = os.stat(path)
                kind = files.special_kind(now.st_mode)
                if kind:
                    return '%s is now %s' % (path, kind)
                if now.st_size != before.st_size:
                    return '%s has changed: it had %d bytes, now %d' % (
                        path,
                        before.st_size,
                        now.st_size,
                    )
                if now.st_mtime_ns != before.st_mtime_ns or (
                    now.st_ctime_ns != before.st_ctime_ns
                    and verification.checksum(path, self._label_weights) != checksum
                ):
                    return '%s has changed since the start' % path
            except OSError as error:
                return '%s %s' % (
                    path,
                    'has been removed'
                    if isinstance(error, FileNotFoundError)
                    else 'cannot be read any more (%s)' % error.strerror,
                )
        return None
