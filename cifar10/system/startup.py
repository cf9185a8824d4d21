"""Start of the scripts: missing packages, closed pipes, TensorFlow without its messages."""

import errno
import gc
import importlib.util
import io
import os
import sys

from cifar10.system import signals


def check_packages():
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
    level = os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    # Garbage collection takes a sixth of the import time, and finds no garbage.
    gc.disable()
    # Up to version 2.21, TensorFlow prints some messages before it reads the variable.
    stderr = os.dup(2)
    if level not in ('0', '1'):
        with open(os.devnull, 'w') as null:
            os.dup2(null.fileno(), 2)
    try:
        import tensorflow.compat.v1  # noqa: F401
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
    gc.freeze()
    gc.enable()


class _Stdout(io.FileIO):
    """Standard output; its end counts as a signal, such as that of `| head` or of a terminal."""

    def write(self, content):
        """Write bytes; return the number of written bytes."""
        try:
            return super().write(content)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EIO):  # EIO: the terminal is closed.
                raise
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            signals.receive_broken_pipe()
            return len(content)


def protect_stdout():
    """Let a closed pipe count as a signal, and escape characters outside the encoding.

    Each line is flushed, because a signal can end the process.
    """
    if sys.stdout is sys.__stdout__:
        sys.stdout.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Stdout(1, 'w', closefd=False)),
            sys.stdout.encoding,
            'backslashreplace',
            line_buffering=True,
        )
