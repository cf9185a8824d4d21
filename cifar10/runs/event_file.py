"""An event file, which TensorBoard reads: written line by line, so that what cannot be written is
known at once.

tf.summary.FileWriter writes in a thread of its own. TensorFlow 1.15 loses its errors; 2.21 raises
the first one, with the traceback of the thread, and drops all later events.
"""

import contextlib
import os
import socket
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.system import files

_ERRORS = RuntimeError, OSError, tf.errors.OpError


class EventFile:
    """Writes events to a new file in a directory, and to another one after an error; a context
    manager."""

    def __init__(self, directory):
        """Opens a file in the directory, where TensorBoard looks; raises UserError if it cannot be
        written."""
        self._directory = directory
        self._unwritten = []
        self._writer = None
        self._write()

    def write(self, event):
        """Writes an event, and what an error has kept from being written before it; it is on the
        disk at once.

        Args:
          event: a tf.Event; it gets the time.

        Raises:
          UserError: it cannot be written, or the file has been removed.
        """
        event.wall_time = time.time()
        self._unwritten.append(event)
        self._write()

    def _write(self):
        try:
            if self._writer is None:
                self._open()
            for event in self._unwritten:
                self._writer.write(event.SerializeToString())
            self._writer.flush()
            self._good_size = os.path.getsize(self._path)  # raises if it has been removed
            self._unwritten = []
        except _ERRORS as error:
            self._close()
            raise errors.UserError(
                'Cannot write summaries (%s): make room in %s, or give another directory'
                % (errors.reason(error), self._directory)
            )

    def _open(self):
        name = 'events.out.tfevents.%010d.%s' % (time.time(), socket.gethostname())
        # several processes may write to one directory
        with files.open_new(os.path.join(self._directory, name)) as new:
            self._path, self._good_size = new.name, 0
        self._writer = tf.io.TFRecordWriter(self._path)
        version = tf.Event(wall_time=time.time(), file_version='brain.Event:2')
        self._writer.write(version.SerializeToString())

    def _close(self):
        """Closes the file, and cuts off what was being written when the disk was full: TensorBoard
        would read no further."""
        if self._writer is None:
            return
        with contextlib.suppress(*_ERRORS):
            self._writer.close()
        self._writer = None
        with contextlib.suppress(OSError):
            os.truncate(self._path, self._good_size)
            if not self._good_size:
                os.remove(self._path)

    def __enter__(self):
        return self

    def __exit__(self, *unused_error):
        self._close()
