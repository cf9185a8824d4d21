"""UserError, warnings, failed outputs of a run, one-line messages."""

import contextlib
import errno
import os
import re
import sys

# Prefixes of uninformative lines in TensorFlow's messages.
_BOILERPLATE_PREFIXES = (
    'Graph execution error',
    'Detected at node',
    'Node:',
    'File "',
    '[[',
    '2 root',
    '(0)',
    '(1)',
    'Original stack',
    '====',
    'From /job:',
    'UNAVAILABLE: From /job:',
    'Additional GRPC',
)
_OS_ERROR_MESSAGES = {os.strerror(number) for number in errno.errorcode}


class UserError(Exception):
    """Error of the user, with cause and remedy in one line.

    The scripts print the line and exit with status 1, as for an OSError. A bug keeps its traceback.
    """

    def _render_traceback_(self):  # Jupyter shows these lines instead of a traceback.
        return [f'UserError: {self}']


def escape_unprintable(text):
    """Return a text with escapes for unprintable characters, like a newline in a file name."""
    return ''.join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def warn(message):
    """Print a warning on stderr, in one line."""
    line = escape_unprintable(str(message))
    if sys.stderr is not None:  # print(file=None) writes to stdout
        with contextlib.suppress(OSError):  # The reader may have closed the pipe.
            print(f'{os.path.basename(sys.argv[0])}: {line}', file=sys.stderr, flush=True)


def reason(error):
    """Return the cause of an error, without the path of the file."""
    message = getattr(error, 'strerror', None) or one_line_message(error)
    last = message.rsplit('; ', 1)[-1]  # TensorFlow: 'PATH; No space left on device'
    return last if last in _OS_ERROR_MESSAGES else message


def one_line_message(error):
    """Return the first informative line of an error's message."""
    lines = [part.strip() for part in getattr(error, 'message', str(error)).splitlines()]
    message_lines = [
        part
        for before, part in zip([''] + lines, lines)
        # The line after 'File "' is source code.
        if part and not part.startswith(_BOILERPLATE_PREFIXES) and not before.startswith('File "')
    ]
    return (
        re.sub(r'^assertion failed: \[(.*)\]$', r'\1', message_lines[0])
        if message_lines
        else type(error).__name__
    )
