"""Runs a TensorFlow 1 program as printed."""
import os
import re
import signal
import sys
import traceback
import types

from cifar10.errors import UserError
from cifar10.tutorial import modules, remedies, version_1

_SCRIPT = getattr(sys.modules['__main__'], '__file__', __file__)  # which calls `run`


def run(path, arguments, own_modules=False):
    """Runs the program at `path` as Python would run it as a script, with version 1 of TensorFlow and the tutorial's modules.

    It becomes the module `__main__`, and its directory the first one on the path. An error that is not in `remedies` shows
    the traceback of the program and ends this process with status 1.

    Args:
      path: that of a Python file.
      arguments: list of strings, the program's command line.
      own_modules: whether the program gets the copies of the tutorial's modules that are beside it.

    Raises:
      UserError: the program cannot be read, or its error is in `remedies`.
      SystemExit: the program ends.
    """
    code = _compiled(path)
    modules.install(path, own_modules)
    version_1.install()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    directory = os.path.dirname(os.path.abspath(path))
    sys.argv = [path] + arguments
    sys.path[0] = directory
    main = sys.modules['__main__'] = types.ModuleType('__main__')
    main.__file__ = path
    try:
        exec(code, vars(main))
    except Exception as error:
        line = remedies.explain(error, directory)
        if line:
            raise UserError(line)
        _show(error)
        sys.exit(1)
    finally:
        version_1.close_sessions()


def _compiled(path):
    try:
        with open(path, 'rb') as source:
            return compile(source.read(), path, 'exec', dont_inherit=True)
    except OSError as error:
        raise UserError('Cannot read the program %s (%s): give the path of a Python file' % (path, error.strerror))
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte
        raise UserError(remedies.explain(error, '') or 'The program %s is not Python (%s)' % (path, error))


def _show(error):
    """Shows the traceback of the program, without the frames of this package that run it; TensorFlow repeats them in its messages."""
    text = ''.join(traceback.format_exception(type(error), error, error.__traceback__))
    for ours in (__file__, _SCRIPT):
        text = re.sub(r'(?m)^ *File "%s", line .*\n(?:    (?! *File ).*\n)*' % re.escape(ours), '', text)
    sys.stderr.write(text)
