"""UserError, lines for the user, reasons of errors."""

import contextlib
import os
import re
import sys

# TensorFlow puts these lines before the message of an operation.
_PLACE = re.compile(
    r"(?s)Graph execution error:\n\n(Detected at.*\nNode: '[^\n]*\n)?|From /job:[^\n]*\n"
)


class UserError(Exception):
    """Error of the user; the message is one line with cause and remedy.

    The scripts print the line and exit with status 1, as for an OSError. A bug keeps its traceback.
    """

    def _render_traceback_(self):  # Jupyter shows these lines instead of a traceback.
        return [f'UserError: {self}']


def escape_unprintable(text):
    """Return a text with escapes for unprintable characters, like a newline in a file name."""
    return ''.join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def show(line):
    """Print a line on stdout, at once; a `progress` of functions that take long."""
    print(line, flush=True)


def warn(message):
    """Print a warning on stderr, in one line."""
    line = escape_unprintable(str(message))
    if sys.stderr is not None:  # print(file=None) writes to stdout
        with contextlib.suppress(OSError):  # The reader may have closed the pipe.
            print(f'{os.path.basename(sys.argv[0])}: {line}', file=sys.stderr, flush=True)


def reason(error):
    """Return the cause of an error in one line, without the place in the graph or program."""
    message = getattr(error, 'strerror', None) or getattr(error, 'message', None) or str(error)
    message = _PLACE.sub('', message).strip().partition('Original error:\n')  # of a restore
    return (message[2] or message[0]).strip().split('\n')[0] or type(error).__name__
