"""A quiet start: a signal ends the script with one line, and TensorFlow is imported without its
start-up messages."""

import contextlib
import gc
import importlib.util
import os
import sys
import tempfile

from cifar10.runs import signals

_PACKAGES = ['absl', 'numpy', 'six', 'tensorflow']


def start(name):
    """Makes ready what a script needs from its first moment on; does nothing if the script is
    imported as a library.

    A script calls it with its `__name__` before everything else.
    """
    # the second is the script's name in the processes that multiprocessing starts
    if name not in ('__main__', '__mp_main__'):
        return
    _open_standard_files()
    _check_packages()
    os.umask(os.umask(0o022) | 0o002)  # what a script makes is not for every user to write
    if name == '__main__':
        signals.end_on_signals()
    else:
        import_tensorflow()


def _open_standard_files():
    """Opens /dev/null for what is closed of the input, the output and stderr, or the next file
    would be taken for it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which gets the first free number


def _check_packages():
    """Ends the script with one line if a package is missing: often the virtual environment has not
    been activated."""
    for name in _PACKAGES:
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            sys.exit(
                '%s: error: the package %s is not installed: activate the environment (. venv/bin/activate), or run pip install '
                '-r requirements.txt in the checkout' % (os.path.basename(sys.argv[0]), name)
            )


def import_tensorflow():
    """Imports TensorFlow. Set TF_CPP_MIN_LOG_LEVEL to 0 or 1 to see its messages."""
    # Level 3 also hides errors: those that matter reach Python as exceptions.
    is_quiet = os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3') not in ('0', '1')
    # there is nothing to collect: to look for it would take a sixth of the time of the import
    gc.disable()
    with _no_messages() if is_quiet else contextlib.nullcontext():
        import tensorflow.compat.v1  # noqa: F401
    gc.freeze()
    gc.enable()


@contextlib.contextmanager
def _no_messages():
    """Makes a temporary file of stderr; its content is shown if the block fails."""
    # Up to TensorFlow 2.21 some messages are written before the variable takes effect.
    stderr = os.dup(2)
    signals.stderr = stderr
    with _scratch() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except BaseException:
            messages.seek(0)
            os.write(stderr, messages.read())
            raise
        finally:
            os.dup2(stderr, 2)
            signals.stderr = 2
            os.close(stderr)


def _scratch():
    try:
        return tempfile.TemporaryFile()
    except OSError:  # the disk is full
        return open(os.devnull, 'w+b')
