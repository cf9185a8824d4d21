"""Progress of a long task, in ten lines."""

import datetime
import sys
import time


class ProgressBar:
    """Progress lines at each tenth: amount done, speed, time left.

    Keras' Progbar would fill a file with control characters.
    """

    def __init__(self, action, total, unit='images', stream=None):
        """Take an action like 'Converting', the total, and the stream; None for stdout."""
        self._line = action + f' %d%%: %d of %d {unit}, %.0f {unit}/s, %s left'
        self._total, self._stream = total, stream
        self._start, self._done = time.monotonic(), 0

    def advance(self, count):
        """Add `count` to the amount done."""
        before, self._done = self._done, self._done + count
        if 10 * self._done // self._total > 10 * before // self._total:
            speed = self._done / max(time.monotonic() - self._start, 1e-3)
            left = datetime.timedelta(seconds=round((self._total - self._done) / speed))
            values = 100 * self._done // self._total, self._done, self._total, speed, left
            print(self._line % values, file=self._stream or sys.stdout, flush=True)
