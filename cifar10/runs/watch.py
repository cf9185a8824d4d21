"""Watches the files that a session reads: what a reader waits for may never come."""
import contextlib
import os
import stat
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10.data import snapshot, verification
from cifar10.errors import UserError

_SECONDS = 5


class Watch:
    """Looks at the files every few seconds, and stops the session's Coordinator when one has changed."""

    def __init__(self, records, num_examples=None):
        """Notes what the files are now.

        Args:
          records: the Records in the files.
          num_examples: that were found in them before; None if they are verified after this.

        Raises:
          UserError: a file is missing or malformed, or they hold another number of examples.
        """
        self._paths = records.paths
        self._snapshot = snapshot.Snapshot(self._paths)
        if num_examples is not None and verification.verify(records) != num_examples:
            raise UserError('%s or a file beside it has changed: start again' % self._paths[0])

    def start(self, coord):
        """Starts to look, until the tf.train.Coordinator stops."""
        threading.Thread(target=self._look, args=(coord,), daemon=True).start()

    def _look(self, coord):
        while not coord.wait_for_stop(_SECONDS):
            if self._snapshot.changed():
                coord.request_stop()  # which closes the queues, so that nobody waits for them
        while not coord.joined and self._snapshot.changed():
            for path in self._paths:
                _release(path)
            time.sleep(0.1)

    @contextlib.contextmanager
    def explaining(self):
        """Raises UserError in place of an error of TensorFlow in the block if a file has changed."""
        try:
            yield
        except tf.errors.OpError:
            self.check()
            raise

    def check(self):
        """Raises UserError if a file has changed."""
        change = self._snapshot.changed()
        if change:
            raise UserError('%s: put the data back as it was, and start again' % change)


def _release(path):
    """Lets a thread go on that waits at a FIFO: it finds its end."""
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.stat(path).st_mode):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
