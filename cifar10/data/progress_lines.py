"""Progress lines of a long operation."""

import datetime
import time

_MAX_SILENT_SECS = 10


class ProgressLines:
    """Lines with percentage, count, speed and remaining time.

    There is a line at each tenth of the total, and after ten seconds without one. Keras' Progbar
    would write control characters to a file.
    """

    def __init__(self, progress, action, total, unit='images'):
        """Set the text and the counts.

        Args:
          progress: a function of one line of text.
          action: a word like 'Converting'.
          total: the count at the end.
          unit: what is counted.
        """
        self._progress, self._action, self._total, self._unit = progress, action, total, unit
        self._done = 0
        self._start = self._last_line = time.monotonic()

    def advance(self, count):
        """Add `count`; show a line if it is due."""
        before, self._done = self._done, self._done + count
        now = time.monotonic()
        is_tenth = 10 * self._done // self._total > 10 * before // self._total
        if is_tenth or now >= self._last_line + _MAX_SILENT_SECS:
            self._last_line = now
            speed = max(self._done, 1) / max(now - self._start, 1e-3)
            left = datetime.timedelta(seconds=round((self._total - self._done) / speed))
            self._progress(
                f'{self._action} {100 * self._done // self._total}%: {self._done} of {self._total} '
                f'{self._unit}, {speed:.0f} {self._unit}/s, {left} left'
            )
