"""Progress lines of a long operation."""

import datetime
import sys
import time


class ProgressBar:
    """Progress lines at each tenth of the total: count, speed, remaining time.

    Keras' Progbar would write control characters to a file.
    """

    def __init__(self, action, total, unit='images', stream=None):
        """Set an action like 'Converting' and the total count; `stream` defaults to stdout."""
        self._action, self._total, self._unit, self._stream = action, total, unit, stream
        self._start, self._done = time.monotonic(), 0

    def advance(self, count):
        """Add `count`; print a line at each tenth."""
        before, self._done = self._done, self._done + count
        if 10 * self._done // self._total > 10 * before // self._total:
            speed = self._done / max(time.monotonic() - self._start, 1e-3)
            left = datetime.timedelta(seconds=round((self._total - self._done) / speed))
            percent = 100 * self._done // self._total
            print(
                f'{self._action} {percent}%: {self._done} of {self._total} {self._unit}, '
                f'{speed:.0f} {self._unit}/s, {left} left',
                file=self._stream or sys.stdout,
                flush=True,
            )
