"""The exception for a user's mistake, warnings, the failed outputs of a run, and TensorFlow's errors in one line."""
import contextlib
import errno
import os
import re
import sys

# What TensorFlow's messages have around what they tell.
_AROUND = ('Graph execution error', 'Detected at node', 'Node:', 'File "', '[[', '2 root', '(0)', '(1)', 'Original stack', '====',
           'From /job:', 'UNAVAILABLE: From /job:', 'Additional GRPC')
_CAUSES = {os.strerror(number) for number in errno.errorcode}


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


class Failures:
    """Failed outputs of a run, like a summary or a trace. They do not stop the run, but it then ends with an error.

    Attributes:
      is_over: whether the run has made its last step, after which no line says that training goes on.
    """

    def __init__(self):
        self._errors = {}
        self.is_over = False

    def add(self, name, error):
        """Adds the UserError of the output called `name`, and warns of it, unless the output failed for the same reason before."""
        is_new = str(self._errors.get(name)) != str(error)
        self._errors[name] = error
        if is_new and not self.is_over:
            warn('%s. Training goes on' % error)

    def remove(self, name):
        """Removes an output that has succeeded after all."""
        self._errors.pop(name, None)

    def check(self):
        """Raises UserError if an output has failed."""
        if self._errors:
            raise UserError('. '.join('%s. Missing: %s' % (error, name) for name, error in self._errors.items()))


def reason(error):
    """The cause in the message of an error: without the path that an error of files names, as the line around it does."""
    told = getattr(error, 'strerror', None) or line(error)
    last = told.rsplit('; ', 1)[-1]  # of TensorFlow's 'PATH; No space left on device'
    return last if last in _CAUSES else told


def line(error):
    """The message of an error, like a tf.errors.OpError, in one line, without the names of nodes and the stack around it."""
    lines = [part.strip() for part in getattr(error, 'message', str(error)).splitlines()]
    told = [part for before, part in zip([''] + lines, lines)
            if part and not part.startswith(_AROUND) and not before.startswith('File "')]  # after which a line of source may come
    return re.sub(r'^assertion failed: \[(.*)\]$', r'\1', told[0]) if told else type(error).__name__
