"""Watches the clock while a task waits for others: says for whom, and ends the process when it has
waited too long.

A call of TensorFlow's runtime never returns if its peer is stopped or cut off, so the process has
to end from another thread.
"""

import contextlib
import os
import sys
import threading
import time

from cifar10 import errors
from cifar10.distributed import statuses
from cifar10.distributed.cluster import FILLING

_LOOK_SECS = 0.2
_FIRST_MESSAGE_SECS = 5
_NEXT_MESSAGE_SECS = 30
_ATTEMPTS = 3  # each of --connect_timeout_secs, to reach tasks that may never come


class Watchdog:
    """A thread that ends the process when nothing has progressed for too long."""

    def __init__(self):
        self._watched = None
        threading.Thread(target=self._guard, daemon=True).start()

    def watch(self, describe, secs, flag):
        """From now on, the process ends when `progress` has not been called for `secs` seconds.

        It waits three times as long for what may never come, and then ends with status 1, so that
        nobody starts it again.

        Args:
          describe: a function that returns the phase, the tasks for which it waits as a text, '' if
            it cannot tell, and the reason why they may never come, or ''. It may take a few
            seconds.
          secs: the longest time without progress.
          flag: the flag that gives `secs`.
        """
        self.progress()
        self._watched = describe, secs, flag

    def rest(self):
        """Ends the watch."""
        self._watched = None

    def progress(self):
        """Starts the time anew."""
        self._progressed = time.monotonic()

    def _guard(self):
        try:
            self._look()
        except Exception as error:  # without it the process could wait for ever
            end('The watchdog failed (%s): start this task again' % error)

    def _look(self):
        progressed, next_message, attempts = None, _FIRST_MESSAGE_SECS, 1
        while True:
            time.sleep(_LOOK_SECS)
            watched = self._watched  # which another thread can set at any moment
            if watched is None:
                continue
            describe, secs, flag = watched
            if progressed != self._progressed:
                progressed, next_message, attempts = self._progressed, _FIRST_MESSAGE_SECS, 1
            waited = time.monotonic() - progressed
            if waited < min(next_message, attempts * secs):
                continue
            phase, awaited, doubt = describe()
            waited = time.monotonic() - progressed
            if progressed != self._progressed or self._watched is None:
                continue
            if waited >= attempts * secs:
                waited_text = '%s: waited %d seconds (%s--%s)' % (
                    phase.capitalize(),
                    attempts * secs,
                    '%d times ' % attempts if attempts > 1 else '',
                    flag,
                )
                if not doubt:
                    end(waited_text + _remedy(phase, awaited))
                if attempts == _ATTEMPTS:
                    end('%s for %s: %s' % (waited_text, awaited, doubt), status=1)
                attempts += 1
            if waited >= next_message:
                next_message += _NEXT_MESSAGE_SECS
                if awaited:
                    print('%s: waiting for %s' % (phase.capitalize(), awaited), flush=True)


def _remedy(phase, awaited):
    if phase == FILLING:
        return ': start this task again, with a longer time if the disk is slow'
    return ' for %s: start this task again when the others are there' % (
        awaited or 'the others, although all of them answer'
    )


def end(message, status=statuses.STALLED):
    """Ends the process, by default with the status by which whoever supervises it starts it
    again."""
    errors.warn(message)
    with contextlib.suppress(OSError, ValueError):  # nobody may read any more
        sys.stdout.flush()
    os._exit(status)
