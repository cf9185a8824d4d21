"""Quiet start of the scripts.

Handles signals, hides the start-up messages of TensorFlow, and tolerates a full or closed standard
output.
"""

import contextlib
import gc
import importlib.util
import io
import os
import signal
import sys
import tempfile

from cifar10 import errors
from cifar10.system import signals


def start(name):
    """Start a script: open its standard streams, handle signals, check the packages.

    It comes before the other imports, which could fail on a missing package. It does nothing in a
    library. In a child process of multiprocessing, it imports TensorFlow, and leaves Ctrl-C to the
    parent.

    Args:
      name: the `__name__` of the script.
    """
    if name not in ('__main__', '__mp_main__'):
        return
    _open_standard_streams()
    if name == '__main__':
        signals.install_handlers()
        _check_packages()
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        import_tensorflow()


def _open_standard_streams():
    """Open /dev/null for closed standard streams: the next file would get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the first free number


def _check_packages():
    """End the script with one line if a package is missing."""
    for name in ('absl', 'numpy', 'six', 'tensorflow'):
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            sys.exit(
                f'{os.path.basename(sys.argv[0])}: error: the package {name} is not installed: activate the environment (. '
                'venv/bin/activate), or run pip install -r requirements.txt in the checkout'
            )


def import_tensorflow():
    """Import TensorFlow, without messages unless TF_CPP_MIN_LOG_LEVEL is 0 or 1."""
    # Level 3 also hides errors. Important errors are Python exceptions too.
    is_quiet = os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3') not in ('0', '1')
    # Garbage collection takes a sixth of the import time, and finds no garbage.
    gc.disable()
    with _capture_stderr() if is_quiet else contextlib.nullcontext():
        import tensorflow.compat.v1  # noqa: F401
    gc.freeze()
    gc.enable()


@contextlib.contextmanager
def _capture_stderr():
    """Redirect stderr to a temporary file; print the file if the block fails."""
    # Up to version 2.21, TensorFlow prints some messages before it reads the variable.
    stderr = os.dup(2)
    signals.stderr_fd = stderr
    with _temporary_file() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except BaseException:
            messages.seek(0)
            os.write(stderr, messages.read())
            raise
        finally:
            os.dup2(stderr, 2)
            signals.stderr_fd = 2
            os.close(stderr)


def _temporary_file():
    try:
        return tempfile.TemporaryFile()
    except OSError:  # the disk is full
        return open(os.devnull, 'w+b')


class _TolerantStdout(io.TextIOWrapper):
    """Standard output that does not raise errors."""

    error = None  # the first error, except of a closed pipe

    def write(self, text):
        """Write a text; return its length, even if the text is lost."""
        self._attempt(super().write, text)
        return len(text)

    def flush(self):
        """Flush if possible."""
        self._attempt(super().flush)

    def close(self):
        """Close the stream; the text that remains may be lost."""
        self._attempt(super().close)  # Python 3.13 prints errors of the finalization.

    def _attempt(self, action, *args):
        try:
            action(*args)
        except BrokenPipeError:  # such as `| head`
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            signals.raise_signal(signals.BROKEN_PIPE_SIGNAL)
        except OSError as error:  # such as a full disk: training continues
            if self.error is None:
                self.error = error
                errors.warn(
                    f'cannot write to the standard output ({error.strerror}): lines are lost'
                )


def protect_stdout():
    """Replace sys.stdout by a stream without errors.

    Characters outside the encoding are escaped. A closed pipe counts as a signal. After other
    errors, the line is lost and `has_lost_output` is true. Each line is flushed, because a signal
    can end the process.
    """
    if sys.stdout is None:  # it is closed
        sys.stdout = open(os.devnull, 'w', errors='backslashreplace')  # noqa: SIM115 (until the end)
    elif sys.stdout is sys.__stdout__:
        sys.stdout.flush()
        sys.stdout = _TolerantStdout(
            io.BufferedWriter(io.FileIO(1, 'w', closefd=False)),
            sys.stdout.encoding,
            'backslashreplace',
            line_buffering=True,
        )


def has_lost_output():
    """Return True if lines could not be written."""
    return getattr(sys.stdout, 'error', None) is not None
