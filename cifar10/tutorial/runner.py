"""Runner of unchanged TensorFlow 1 programs."""

import atexit
import json
import os
import shlex
import sys
import types

from cifar10.errors import UserError
from cifar10.system import files, signals
from cifar10.tutorial import error_hints, modules, tf1


def run(path, arguments, own_modules=False):
    """Run the program at `path` as a script, with TensorFlow 1 and the tutorial's modules.

    The program becomes `__main__`; its directory comes first in sys.path. After an error without a
    hint, print the program's traceback and exit with status 1.

    Args:
      path: path of a Python file.
      arguments: list of strings, the program's command line.
      own_modules: use the copies of the tutorial's modules beside the program if True.

    Raises:
      UserError: the program cannot be read, or its error has a hint in `error_hints`.
      SystemExit: the program exits, or its error has no hint.
    """
    code = _compile_program(path)
    directory = os.path.dirname(os.path.realpath(path))
    modules.install(os.path.realpath(path), own_modules)
    tf1.install()
    # This runs after the program's threads, and after its own atexit functions.
    atexit.register(tf1.close_sessions)
    signals.restore_handlers()
    sys.argv = [path] + arguments
    sys.path[0] = directory
    main = sys.modules['__main__'] = types.ModuleType('__main__')
    main.__file__ = code.co_filename
    try:
        exec(code, vars(main))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        _exit_with_error(
            error, directory, error.__traceback__.tb_next
        )  # without the frame of this function


def _exit_with_error(error, directory, frames):
    """Exit with the hint for an error, or else with its traceback."""
    line = error_hints.find_hint(error, directory)
    if line:
        raise UserError(line)
    sys.excepthook(type(error), error.with_traceback(frames), frames)
    sys.exit(1)


def _compile_program(path):
    try:
        files.check_regular_file(path, 'give the path of a Python file')
        with open(path, 'rb') as opened:
            source = opened.read()
        if path.endswith('.ipynb') or _is_notebook(source):
            raise UserError(
                f'{path} is a notebook, not a program: `jupyter nbconvert --to script {shlex.quote(path)}` converts it'
            )
        return compile(source, os.path.abspath(path), 'exec', dont_inherit=True)
    except OSError as error:
        raise UserError(
            f'Cannot read the program {path} ({error.strerror}): give the path of a Python file'
        )
    except SyntaxError as error:
        _exit_with_error(error, '', None)


def _is_notebook(source):
    """Return True if `source` is a JSON object, which can be valid Python."""
    try:
        return isinstance(json.loads(source), dict)
    except ValueError:
        return False
