"""Progress lines of a long operation."""

import datetime
import sys
import time

_MAX_SILENT_SECS = 10


class ProgressBar:
    """Progress lines: count, speed, remaining time.

    There is a line at each tenth of the total, and after ten seconds without one. Keras' Progbar
    would write control characters to a file.
    """

    def __init__(self, action, total, unit='images', stream=None, done=0):
        """Set an action like 'Converting', the total count, and the count of an earlier part.

        `stream` defaults to stdout.
        """
        self._action, self._total, self._unit, self._stream = action, total, unit, stream
        self._first = self._done = done
        self._start = self._last_line = time.monotonic()

    def advance(self, count):
        """Add `count`; print a line if it is due."""
        before, self._done = self._done, self._done + count
        now = time.monotonic()
        is_tenth = 10 * self._done // self._total > 10 * before // self._total
        if is_tenth or now >= self._last_line + _MAX_SILENT_SECS:
            self._last_line = now
            speed = max(self._done - self._first, 1) / max(now - self._start, 1e-3)
            left = datetime.timedelta(seconds=round((self._total - self._done) / speed))
            percent = 100 * self._done // self._total
            print(
                f'{self._action} {percent}%: {self._done} of {self._total} {self._unit}, '
                f'{speed:.0f} {self._unit}/s, {left} left',
                file=self._stream or sys.stdout,
                flush=True,
            )
