"""The standard output of a script: what happens to the work when it cannot be written."""

import contextlib
import ctypes
import io
import os
import sys

from cifar10 import errors
from cifar10.runs import signals

_IOLBF = 1  # setvbuf's mode "line buffered", in glibc, musl and the C library of macOS


class _Output(io.TextIOWrapper):
    """The standard output, whose errors do not interrupt what is being printed about."""

    error = None  # the first one, other than that nobody reads any more

    def write(self, text):
        self._attempt(super().write, text)
        return len(text)

    def flush(self):
        self._attempt(super().flush)

    def _attempt(self, action, *args):
        try:
            action(*args)
        except BrokenPipeError:  # as after `| head`
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            signals.receive(signals.NOBODY_READS)
        except OSError as error:  # a full disk, say, while training goes on
            if self.error is None:
                self.error = error
                errors.warn(
                    'cannot write to the standard output (%s): lines are lost' % error.strerror
                )


def guard():
    """Replaces sys.stdout by one that works on where a character or a line cannot be written.

    Characters that its encoding lacks are written as escapes. When nobody reads any more, as after
    `| head`, that counts as a signal to end. After other errors the line is lost; `lost` tells.
    Each line is written at once: a signal can end the process at any moment.
    """
    if sys.stdout is None:  # it is closed: nobody wants to read
        sys.stdout = open(os.devnull, 'w', errors='backslashreplace')
    elif sys.stdout is sys.__stdout__:
        sys.stdout.flush()
        _line_buffer_c_stdout()
        sys.stdout = _Output(
            io.BufferedWriter(io.FileIO(1, 'w', closefd=False)),
            sys.stdout.encoding,
            'backslashreplace',
            line_buffering=True,
        )


def _line_buffer_c_stdout():
    """Makes C's stdout line buffered: TensorFlow prints device placements there, and neither
    os._exit nor a signal flushes it."""
    if os.name != 'posix':
        return
    libc = ctypes.CDLL(None)
    with contextlib.suppress(ValueError):  # An unusual C library has another name for it.
        stdout = ctypes.c_void_p.in_dll(libc, '__stdoutp' if sys.platform == 'darwin' else 'stdout')
        libc.setvbuf(stdout, None, _IOLBF, 0)


def flush():
    """Writes what has been printed."""
    sys.stdout.flush()


def lost():
    """Whether lines could not be written."""
    return getattr(sys.stdout, 'error', None) is not None
