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
from cifar10.distributed.cluster import FILLING

_LOOK_SECS = 0.2
_FIRST_MESSAGE_SECS = 5
_NEXT_MESSAGE_SECS = 30
_ATTEMPTS = 3  # to reach any other task, each of --connect_timeout_secs


class Watchdog:
    """A thread that ends the process when nothing has progressed for too long."""

    def __init__(self):
        self._watched = None
        threading.Thread(target=self._guard, daemon=True).start()

    def watch(self, describe, secs, flag):
        """From now on, the process ends when `progress` has not been called for `secs` seconds.

        It waits three times as long while no other task has ever answered. Then the run may be over, so it ends with status 1.

        Args:
          describe: a function that returns the phase, the tasks for which it waits as a text, '' if it cannot tell, and whether no
            other task has ever answered; it may take a few seconds.
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
            phase, awaited, is_alone = describe()
            if progressed != self._progressed or self._watched is None:
                continue
            if waited >= attempts * secs:
                _check(phase.capitalize(), attempts * secs, flag, awaited, is_alone and attempts)
                attempts += 1
            if waited >= next_message:
                next_message += _NEXT_MESSAGE_SECS
                if awaited:
                    print('%s: waiting for %s' % (phase.capitalize(), awaited), flush=True)


def _check(phase, waited, flag, awaited, attempts):
    """Ends the process, unless no other task has ever answered and further attempts are left; `attempts` is 0 if one has."""
    if attempts == _ATTEMPTS:
        end('%s: no other task has answered for %d seconds (%d times --%s). The run may have ended; if not, check the addresses%s'
            % (phase, waited, _ATTEMPTS, flag, awaited and ': ' + awaited), status=1)
    if attempts:
        return
    who = ' for %s' % (awaited or 'the others, although all of them answer')
    remedy = ' when the others are there'
    if phase == FILLING.capitalize():
        who, remedy = '', ', with a longer time if the disk is slow'
    end('%s: waited %d seconds (--%s)%s: start this task again%s' % (phase, waited, flag, who, remedy))


def end(message, status=statuses.STALLED):
    """Ends the process, by default with the status by which whoever supervises it starts it again."""
    errors.warn(message)
    with contextlib.suppress(OSError, ValueError):  # nobody may read any more
        sys.stdout.flush()
    os._exit(status)
