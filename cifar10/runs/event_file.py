"""An event file, which TensorBoard reads: written line by line, so that what cannot be written is known at once.

tf.summary.FileWriter writes in a thread of its own. There, an error is lost (a directory that is read-only), or shows as the
traceback of the thread (a full disk).
"""
import contextlib
import itertools
import os
import socket
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors


class EventFile:
    """Writes events to a new file in a directory, and to another one after an error; a context manager."""

    def __init__(self, directory, first_events=()):
        """Opens the file.

        Args:
          directory: where TensorBoard looks.
          first_events: the tf.Events that come before all others.

        Raises:
          UserError: the file cannot be written.
        """
        self._directory = directory
        self._unwritten = list(first_events)
        self._writer = None
        self._write([])

    def write(self, event):
        """Writes an event, and what an error has kept from being written before the others; it is on the disk at once.

        Args:
          event: a tf.Event; it gets the time.

        Raises:
          UserError: it cannot be written, or the file has been removed.
        """
        event.wall_time = time.time()
        self._write([event])

    def _write(self, events):
        try:
            if self._writer is None:
                self._open()
            for event in self._unwritten + events:
                self._writer.write(event.SerializeToString())
            self._writer.flush()
            if not os.path.samestat(self._stat, os.stat(self._path)):
                raise FileNotFoundError
            self._unwritten = []
        except (RuntimeError, OSError, tf.errors.OpError) as error:
            self._close()
            why = '%s has been removed' % self._path if isinstance(error, FileNotFoundError) else str(error).splitlines()[0]
            raise errors.UserError('Cannot write summaries to %s (%s): make room there, or give another directory'
                                   % (self._directory, why))

    def _open(self):
        name = 'events.out.tfevents.%010d.%s' % (time.time(), socket.gethostname())
        for number in itertools.count():  # several processes may write to one directory
            self._path = os.path.join(self._directory, '%s.%d' % (name, number))
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                break
        self._stat = os.stat(self._path)
        self._writer = tf.io.TFRecordWriter(self._path)
        self._writer.write(tf.Event(wall_time=time.time(), file_version='brain.Event:2').SerializeToString())

    def _close(self):
        if self._writer is not None:
            with contextlib.suppress(RuntimeError, tf.errors.OpError):  # every write has been flushed, or has failed
                self._writer.close()
            self._writer = None

    def __enter__(self):
        return self

    def __exit__(self, *unused_error):
        self._close()
