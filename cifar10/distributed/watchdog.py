"""Watches the clock while a task waits for others: says for whom, and ends the process when it has waited too long.

A call of TensorFlow's runtime never returns if its peer is stopped or cut off, so the process has to end from another thread.
"""
import contextlib
import os
import sys
import threading
import time

from cifar10 import errors
from cifar10.distributed import statuses

_LOOK_SECS = 0.2
_FIRST_MESSAGE_SECS = 5
_NEXT_MESSAGE_SECS = 30


class Watchdog:
    """A thread that ends the process when nothing has progressed for too long."""

    def __init__(self):
        self._watched = None
        threading.Thread(target=self._guard, daemon=True).start()

    def watch(self, waits_for, secs, flag):
        """From now on, the process ends when `progress` has not been called for `secs` seconds.

        Args:
          waits_for: a function that returns whom the task waits for, or '' if it cannot tell; it may take a few seconds.
          secs: the longest time without progress.
          flag: the flag that gives `secs`.
        """
        self.progress()
        self._watched = waits_for, secs, flag

    def rest(self):
        """Ends the watch."""
        self._watched = None

    def progress(self):
        """Something has progressed."""
        self._progressed = time.monotonic()

    def _guard(self):
        try:
            self._look()
        except Exception as error:  # without it the process could wait for ever
            end('The watchdog failed (%s): start this task again' % error)

    def _look(self):
        progressed, next_message = None, _FIRST_MESSAGE_SECS
        while True:
            time.sleep(_LOOK_SECS)
            watched = self._watched  # which another thread can set at any moment
            if watched is None:
                continue
            waits_for, secs, flag = watched
            if progressed != self._progressed:
                progressed, next_message = self._progressed, _FIRST_MESSAGE_SECS
            waited = time.monotonic() - progressed
            if waited < min(next_message, secs):
                continue
            awaited = waits_for()
            if progressed != self._progressed or self._watched is None:
                continue
            if waited >= secs:
                end('Waited %d seconds (--%s) for %s: start this task again when the others are there'
                    % (secs, flag, awaited or 'the others, although all of them answer'))
            if awaited:
                print('Waiting for %s' % awaited, flush=True)
            next_message += _NEXT_MESSAGE_SECS


def end(message):
    """Ends the process with the status by which whoever supervises it starts it again."""
    errors.warn(message)
    with contextlib.suppress(OSError, ValueError):  # nobody may read any more
        sys.stdout.flush()
    os._exit(statuses.STALLED)
