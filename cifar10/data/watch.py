"""Watcher of the data files of a session."""

import contextlib
import os
import stat
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.data import verification
from cifar10.errors import UserError

_POLL_SECS = 5


class FileWatcher:
    """Poller that stops the session's Coordinator after a data file has changed.

    Otherwise, a reader thread could wait forever.
    """

    def __init__(self, split):
        """Take a Snapshot of the files of a Split, and verify them.

        Raises:
          UserError: a file is invalid, or its number of examples has changed.
        """
        self._coord = tf.train.Coordinator()  # replaced by `start`
        self._paths = split.paths
        self._snapshot = verification.Snapshot(split)
        verification.verify(split)

    def start(self, coord):
        """Poll until the tf.train.Coordinator stops."""
        self._coord = coord
        threading.Thread(target=self._poll, args=(coord,), daemon=True).start()

    def _poll(self, coord):
        while not coord.wait_for_stop(_POLL_SECS):
            if self._snapshot.find_change():
                coord.request_stop()  # This closes the queues, so waiting threads end.
        while not coord.joined and self._snapshot.find_change():
            for path in self._paths:
                _unblock_reader(path)
            time.sleep(0.1)

    @contextlib.contextmanager
    def translate_errors(self):
        """Translate a TensorFlow error in the block to a UserError if a file has changed."""
        try:
            yield
        except tf.errors.OpError as error:
            self.check(error)
            raise

    def check(self, error=None):
        """Raise UserError if a file has changed.

        Args:
          error: a tf.errors.OpError or None. The message of input.check_labels, in this error or
            in the Coordinator's error, also shows a change.
        """
        change = self._snapshot.find_change()
        if not change and error:
            lines = [errors.one_line_message(found) for found in (error, self._thread_error())]
            change = next((line for line in lines if verification.CHANGED_MESSAGE in line), None)
        if change:
            raise UserError(f'{change}: restore the data, and start again')

    def _thread_error(self):
        """Return the first error of a thread, or None."""
        try:
            self._coord.raise_requested_exception()
        except Exception as error:
            return error


def _unblock_reader(path):
    """End the read of a thread that waits for data from a FIFO."""
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.stat(path).st_mode):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
