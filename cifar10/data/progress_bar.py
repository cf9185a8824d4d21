"""A progress bar on a terminal; a line for each tenth in a file."""

import datetime
import sys
import time

_WIDTH = 30
_SECONDS = 0.2  # between two changes


class ProgressBar:
    """Shows how many of a number of images are done, how fast, and the time that is left; a context
    manager."""

    def __init__(self, action, total, stream=None):
        """Takes a word for what is done, like 'Converting', the number of images, and where to
        write: None for the standard output."""
        self._stream = stream or sys.stdout
        self._action, self._total, self._done = action, total, 0
        self._terminal = self._stream.isatty()
        self._start, self._shown_at, self._tenths = time.monotonic(), 0, 0

    def __enter__(self):
        return self

    def __exit__(self, *unused_error):
        if self._terminal and 0 < self._done < self._total:
            print(file=self._stream, flush=True)  # what is told now begins a new line

    def clear(self):
        """Removes the bar from a terminal, so that something else can be printed there; `advance`
        shows it again."""
        if self._terminal and self._done:
            print('\r\033[K', end='', file=self._stream, flush=True)
            self._shown_at = 0

    def advance(self, count):
        """Notes that so many more images are done, and shows it if it is time."""
        self._done += count
        done, now = self._done, time.monotonic()
        if self._terminal and now - self._shown_at < _SECONDS and done < self._total:
            return
        tenths, self._shown_at = 10 * done // self._total, now
        if self._terminal or tenths > self._tenths:
            self._tenths = tenths
            speed = done / max(now - self._start, 1e-3)
            left = datetime.timedelta(seconds=round((self._total - done) / max(speed, 1e-3)))
            filled = '#' * (_WIDTH * done // self._total)
            bar = '[%-*s] ' % (_WIDTH, filled) if self._terminal else ''
            print(
                '%s%s %s%d%%: %d of %d images, %.0f images/s, %s left'
                % (
                    '\r' if self._terminal else '',
                    self._action,
                    bar,
                    100 * done // self._total,
                    done,
                    self._total,
                    speed,
                    left,
                ),
                end='' if self._terminal and done < self._total else '\n',
                file=self._stream,
                flush=True,
            )
