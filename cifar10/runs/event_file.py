"""An event file, which TensorBoard reads: written line by line, so that what cannot be written is
known at once.

tf.summary.FileWriter writes in a thread of its own. There, an error is lost (a directory that is
read-only), or shows as the traceback of the thread (a full disk).
"""

import contextlib
import errno
import os
import socket
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors, files

_MAX_UNWRITTEN = 100  # events that wait in memory, the oldest ones, while the disk is full


class EventFile:
    """Writes events to a new file in a directory, and to another one after an error.

    A context manager: its end raises UserError if the disk was full for so long that events are
    lost.
    """

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
        self._num_lost = 0
        self._writer = self._stat = None
        self._write([])

    def write(self, event):
        """Writes an event, and what an error has kept from being written before the others; it is
        on the disk at once.

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
            if not self._is_in_place():
                raise OSError(errno.ENOENT, '%s has been removed' % os.path.basename(self._path))
            self._unwritten, self._good_size = [], os.path.getsize(self._path)
        except (RuntimeError, OSError, tf.errors.OpError) as error:
            waiting = self._unwritten + events
            self._unwritten = waiting[:_MAX_UNWRITTEN]
            self._num_lost += len(waiting) - len(self._unwritten)
            self._close()
            self._cut()
            raise errors.UserError(
                'Cannot write summaries (%s): make room in %s, or give another directory'
                % (errors.reason(error), self._directory)
            )

    def _is_in_place(self):
        try:
            return os.path.samestat(self._stat, os.lstat(self._path))
        except OSError:
            return False

    def _open(self):
        name = 'events.out.tfevents.%010d.%s' % (time.time(), socket.gethostname())
        self._stat = None
        # several processes may write to one directory
        with files.open_new(os.path.join(self._directory, name)) as new:
            self._path = new.name
        self._stat, self._good_size = os.stat(self._path), 0
        self._writer = tf.io.TFRecordWriter(self._path)
        self._writer.write(
            tf.Event(wall_time=time.time(), file_version='brain.Event:2').SerializeToString()
        )

    def _cut(self):
        """Cuts off what was being written when the disk was full: TensorBoard would read no
        further."""
        if self._stat and self._is_in_place():
            with contextlib.suppress(OSError):
                if self._good_size:
                    os.truncate(self._path, self._good_size)
                else:
                    os.remove(self._path)

    def _close(self):
        if self._writer is not None:
            # every write has been flushed, or has failed
            with contextlib.suppress(RuntimeError, tf.errors.OpError):
                self._writer.close()
            self._writer = None

    def __enter__(self):
        return self

    def __exit__(self, error_type, *unused_error):
        self._close()
        if self._num_lost and error_type is None:
            raise errors.UserError(
                'Lost summaries: %d in %s, because the disk was full: make room before the next run'
                % (self._num_lost, self._directory)
            )
