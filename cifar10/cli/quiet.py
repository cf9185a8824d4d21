"""A quiet start: TensorFlow is imported without its start-up messages, and a signal during the import gives one line."""
import os
import tempfile

from cifar10.runs import signals


def start(name, needs_tensorflow=True):
    """Imports TensorFlow quietly if the caller is a program, and does nothing if it is imported as a library.

    A script calls it with its `__name__` before the imports that need TensorFlow. Set TF_CPP_MIN_LOG_LEVEL to 0 or 1 to see
    TensorFlow's messages.
    """
    if name not in ('__main__', '__mp_main__'):  # the second is the script's name in the processes that multiprocessing starts
        return
    _open_standard_files()
    if name == '__main__':
        signals.end_on_signals()
    os.umask(os.umask(0o022) | 0o002)  # what a script makes is not for every user to write
    # Level 3 also hides errors: those that matter reach Python as exceptions.
    if os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3') not in ('0', '1') and needs_tensorflow:
        _import_tensorflow()


def _open_standard_files():
    """Opens /dev/null for what is closed of the input, the output and stderr, or the next file would be taken for it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which gets the first free number


def _import_tensorflow():
    # Up to TensorFlow 2.21 some messages are written before the variable takes effect. So during the import file descriptor 2
    # is a temporary file; its content is shown if the import fails.
    stderr = os.dup(2)
    signals.stderr = stderr
    with _scratch() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            import tensorflow.compat.v1  # noqa: F401
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
