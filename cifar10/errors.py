"""UserError, lines for the user, causes of errors."""

import contextlib
import os
import re
import sys

# TensorFlow puts these lines before the message of an operation.
_PLACE = re.compile(
    r"(?s)Graph execution error:\n\n(Detected at.*\nNode: '[^\n]*\n)?|From /job:[^\n]*\n"
)


class UserError(Exception):
    """Error of the user, with cause and remedy in one line.

    The scripts print the line and exit with status 1, as for an OSError. A bug keeps its traceback.

    Attributes:
      cause: the cause.
      remedy: the remedy; None if the cause says all.
      parameters: the names of the parameters that cause and remedy have in braces, such as {seed}.
        The command line shows them as flags.
    """

    def __init__(self, cause, remedy=None, *parameters):
        super().__init__(cause, remedy, *parameters)  # the arguments, for pickle
        self.cause, self.remedy, self.parameters = cause, remedy, parameters

    def line(self, style='`{}`'):
        """Return the line with the parameters' names in a style, such as '--{}' for flags."""
        line = f'{self.cause}: {self.remedy}' if self.remedy else self.cause
        for name in self.parameters:  # str.format would fail at a path with braces.
            line = line.replace(f'{{{name}}}', style.format(name))
        return line

    def __str__(self):
        return self.line()

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
