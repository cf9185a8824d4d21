"""The exception for a user's mistake, warnings, and TensorFlow's errors in one line."""
import contextlib
import os
import sys

# What TensorFlow's messages have around what they tell.
_AROUND = ('Graph execution error', 'Detected at node', 'Node:', 'File "', '[[', '2 root', '(0)', '(1)', 'Original stack', '====',
           'From /job:', 'UNAVAILABLE: From /job:', 'Additional GRPC')


class UserError(Exception):
    """Bad input: one line that names the culprit and the remedy.

    The scripts print it and exit with status 1, as they do for errors of the operating system. A bug keeps its traceback.
    """


def printable(text):
    """A text in one line; what cannot be printed, like the end of a line in the name of a file, is written as an escape."""
    return ''.join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def warn(message):
    """Tells on stderr what went wrong while the work goes on, in one line, whatever names are in the message."""
    line = printable(str(message))
    if sys.stderr is not None:  # or print would write to the standard output
        with contextlib.suppress(OSError):  # nobody may read it any more
            print('%s: %s' % (os.path.basename(sys.argv[0]), line), file=sys.stderr, flush=True)


def reason(error):
    """The message of an error, like a tf.errors.OpError, in one line, without the names of nodes and the stack around it."""
    lines = [line.strip() for line in getattr(error, 'message', str(error)).splitlines()]
    told = [line for before, line in zip([''] + lines, lines)
            if line and not line.startswith(_AROUND) and not before.startswith('File "')]  # after which a line of source may come
    return told[0] if told else type(error).__name__
