"""Progress of a long task, in a line that changes on a terminal, and in ten lines in a file."""

import datetime
import sys
import time


class ProgressBar:
    """Shows how much is done, how fast, and the time that is left.

    Keras' Progbar would fill a file with control characters.
    """

    def __init__(self, action, total, unit='images', stream=None):
        """Takes a word for what is done, like 'Converting', how much there is to do, and where to
        write: None for the standard output."""
        self._action, self._total, self._unit = action, total, unit
        self._stream = stream or sys.stdout
        self._start, self._done, self._steps = time.monotonic(), 0, 0

    def advance(self, count):
        """Notes that so much more is done, and shows it at each percent, or each tenth in a
        file."""
        self._done += count
        is_terminal = self._stream.isatty()
        percent = 100 * self._done // self._total
        steps = percent // (1 if is_terminal else 10)
        if steps > self._steps:
            self._steps = steps
            speed = self._done / max(time.monotonic() - self._start, 1e-3)
            left = datetime.timedelta(seconds=round((self._total - self._done) / speed))
            # The next text overwrites this one, also that of an error.
            end = '\033[K\r' if is_terminal and self._done < self._total else '\n'
            print(
                '%s %d%%: %d of %d %s, %.0f %s/s, %s left'
                % (
                    self._action,
                    percent,
                    self._done,
                    self._total,
                    self._unit,
                    speed,
                    self._unit,
                    left,
                ),
                end=end,
                file=self._stream,
                flush=True,
            )
