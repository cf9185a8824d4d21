"""Quiet start of the scripts.

A signal ends the script with one line, TensorFlow is imported without its start-up messages, and
the standard output may be full or closed.
"""

import contextlib
import gc
import importlib.util
import io
import os
import sys
import tempfile

from cifar10 import errors
from cifar10.system import signals

_SCRIPTS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), 'scripts'
)
_is_started = False


def start_early():
    """Start a script of this package before it imports anything else; do nothing in a library."""
    global _is_started
    path = getattr(sys.modules['__main__'], '__file__', None) or ''
    if os.path.dirname(os.path.realpath(path)) == _SCRIPTS:
        start('__main__')
        _check_packages()
        _is_started = True


def start(name):
    """Set up the standard streams, the umask and the signal handlers of a script.

    It does nothing if the script is imported as a library, or started already.

    Args:
      name: the `__name__` of the script.
    """
    # the second is the script's name in the processes that multiprocessing starts
    if name not in ('__main__', '__mp_main__') or _is_started:
        return
    _open_standard_streams()
    os.umask(os.umask(0o022) | 0o002)  # what a script makes is not for every user to write
    if name == '__main__':
        signals.install_handlers()
    else:
        import_tensorflow()


def _open_standard_streams():
    """Open /dev/null for closed standard streams.

    The next file that is opened would replace them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which gets the first free number


def _check_packages():
    """End the script with one line if a package is missing.

    Often the virtual environment is not activated.
    """
    for name in ('absl', 'numpy', 'six', 'tensorflow'):
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            sys.exit(
                f'{os.path.basename(sys.argv[0])}: error: the package {name} is not installed: activate the environment (. '
                'venv/bin/activate), or run pip install -r requirements.txt in the checkout'
            )


def import_tensorflow():
    """Import TensorFlow. Set TF_CPP_MIN_LOG_LEVEL to 0 or 1 to see its messages."""
    # Level 3 also hides errors: those that matter reach Python as exceptions.
    is_quiet = os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3') not in ('0', '1')
    # there is nothing to collect: to look for it would take a sixth of the time of the import
    gc.disable()
    with _capture_stderr() if is_quiet else contextlib.nullcontext():
        import tensorflow.compat.v1  # noqa: F401
    gc.freeze()
    gc.enable()


@contextlib.contextmanager
def _capture_stderr():
    """Redirect stderr to a temporary file; print its content if the block fails."""
    # Up to TensorFlow 2.21 some messages are written before the variable takes effect.
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
    """Standard output whose errors do not interrupt the program."""

    error = None  # the first one, other than that nobody reads any more

    def write(self, text):
        """Write a text; return its length even if it is lost."""
        self._attempt(super().write, text)
        return len(text)

    def flush(self):
        """Flush, as far as possible."""
        self._attempt(super().flush)

    def _attempt(self, action, *args):
        try:
            action(*args)
        except BrokenPipeError:  # as after `| head`
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            signals.raise_signal(signals.BROKEN_PIPE_SIGNAL)
        except OSError as error:  # a full disk, say, while training goes on
            if self.error is None:
                self.error = error
                errors.warn(
                    f'cannot write to the standard output ({error.strerror}): lines are lost'
                )


def protect_stdout():
    """Replace sys.stdout by one that survives unwritable characters and lines.

    Characters that its encoding lacks are written as escapes. A closed pipe, as after `| head`,
    counts as a signal to end. After other errors the line is lost, and `has_lost_output` is true.
    Each line is written at once: a signal can end the process at any moment.
    """
    if sys.stdout is None:  # it is closed: nobody wants to read
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
    """Return whether lines could not be written."""
    return getattr(sys.stdout, 'error', None) is not None
