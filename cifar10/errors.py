"""UserError, warnings, failed outputs of a run, and TensorFlow's errors in one line."""

import contextlib
import errno
import os
import re
import sys

# Beginnings of lines without information in TensorFlow's messages.
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
    """Bad input: one line that names the cause and the remedy.

    The scripts print it and exit with status 1, as they do for errors of the operating system. A
    bug keeps its traceback.
    """


def escape_unprintable(text):
    """Return a text in one line.

    Unprintable characters, like a newline in a file name, become escapes.
    """
    return ''.join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def warn(message):
    """Print a warning on stderr, in one line, whatever names are in it."""
    line = escape_unprintable(str(message))
    if sys.stderr is not None:  # or print would write to the standard output
        with contextlib.suppress(OSError):  # nobody may read it any more
            print(f'{os.path.basename(sys.argv[0])}: {line}', file=sys.stderr, flush=True)


class MissingOutputsError(UserError):
    """Missing outputs of a saved run.

    `stop_signal` is the signal that stopped the run, or None if it is complete.
    """

    def __init__(self, message, stop_signal):
        super().__init__(message)
        self.stop_signal = stop_signal


class OutputErrors:
    """Failed outputs of a run, like a summary or a trace.

    They do not stop the run, but it then ends with an error.

    Attributes:
      training_ended: whether the run has made its last step; then no line says that training
        goes on.
    """

    def __init__(self):
        self._errors = {}
        self.training_ended = False

    def add(self, name, error):
        """Add the UserError of the output `name`; warn unless it has failed likewise before."""
        is_new = str(self._errors.get(name)) != str(error)
        self._errors[name] = error
        if is_new and not self.training_ended:
            warn(f'{error}. Training goes on')

    @contextlib.contextmanager
    def collect(self, name):
        """Catch and add a UserError of the block, which makes the output `name`."""
        try:
            yield
        except UserError as error:
            self.add(name, error)

    def remove(self, name):
        """Remove an output that has succeeded after all."""
        self._errors.pop(name, None)

    def check(self, stop_signal):
        """Raise MissingOutputsError if an output has failed."""
        if self._errors:
            missing = '; '.join(f'without {name}: {error}' for name, error in self._errors.items())
            raise MissingOutputsError(f'The run is saved, but {missing}', stop_signal)


def reason(error):
    """Return the cause in the message of an error, without a path, which the caller names."""
    message = getattr(error, 'strerror', None) or one_line_message(error)
    last = message.rsplit('; ', 1)[-1]  # of TensorFlow's 'PATH; No space left on device'
    return last if last in _OS_ERROR_MESSAGES else message


def one_line_message(error):
    """Return the message of an error in one line, without TensorFlow's nodes and stack."""
    lines = [part.strip() for part in getattr(error, 'message', str(error)).splitlines()]
    message_lines = [
        part
        for before, part in zip([''] + lines, lines)
        # after which a line of source may come
        if part and not part.startswith(_BOILERPLATE_PREFIXES) and not before.startswith('File "')
    ]
    return (
        re.sub(r'^assertion failed: \[(.*)\]$', r'\1', message_lines[0])
        if message_lines
        else type(error).__name__
    )
