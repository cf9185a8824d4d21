"""Runs a TensorFlow 1 program as printed."""

import atexit
import json
import os
import re
import shlex
import sys
import traceback
import types

from cifar10 import files
from cifar10.errors import UserError
from cifar10.runs import signals
from cifar10.tutorial import error_hints, modules, scipy_misc, tf1

_SCRIPT = getattr(sys.modules['__main__'], '__file__', __file__)  # which calls `run`


def run(path, arguments, own_modules=False):
    """Runs the program at `path` as Python would run it as a script, with version 1 of TensorFlow
    and the tutorial's modules.

    It becomes the module `__main__`, and its directory the first one on the path. An error that is
    not in `error_hints` shows the traceback of the program and ends this process with status 1.

    Args:
      path: that of a Python file.
      arguments: list of strings, the program's command line.
      own_modules: whether the program gets the copies of the tutorial's modules that are beside it.

    Raises:
      UserError: the program cannot be read, or its error is in `error_hints`.
      SystemExit: the program ends.
    """
    code = _compiled(path)
    directory = os.path.dirname(os.path.realpath(path))
    modules.install(os.path.realpath(path), own_modules)
    tf1.install()
    scipy_misc.install()
    # after the program's own threads have ended, and after what it registers itself
    atexit.register(tf1.close_sessions)
    signals.restore_defaults()
    sys.argv = [path] + arguments
    sys.path[0] = directory
    main = sys.modules['__main__'] = types.ModuleType('__main__')
    main.__file__ = code.co_filename
    try:
        exec(code, vars(main))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        line = error_hints.explain(error, directory)
        if line:
            raise UserError(line)
        _show(error)
        sys.exit(1)


def _compiled(path):
    try:
        files.check_regular(path, 'give the path of a Python file')
        with open(path, 'rb') as opened:
            source = opened.read()
        if path.endswith('.ipynb') or _is_json(source):
            raise UserError(
                '%s is a notebook or other JSON, not a program: `jupyter nbconvert --to script %s` makes a program of a '
                'notebook' % (path, shlex.quote(path))
            )
        return compile(source, os.path.abspath(path), 'exec', dont_inherit=True)
    except OSError as error:
        raise UserError(
            'Cannot read the program %s (%s): give the path of a Python file'
            % (path, error.strerror)
        )
    except SyntaxError as error:
        line = error_hints.explain(error, '')
        if line:
            raise UserError(line)
        sys.stderr.write(''.join(traceback.format_exception_only(type(error), error)))
        sys.exit(1)
    except (ValueError, RecursionError, MemoryError) as error:
        # ValueError: a null byte; the others: nested too deeply
        raise UserError('%s is not a Python program: %s' % (path, error))


def _is_json(source):
    """Returns whether the bytes are a JSON object or list, which is often a valid Python program
    that does nothing."""
    try:
        return isinstance(json.loads(source.decode('utf-8-sig')), (dict, list))
    except (ValueError, RecursionError):
        return False


def _show(error):
    """Shows the traceback of the program, without the frames of this package that run it;
    TensorFlow repeats them in its messages."""
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, error.__traceback__.tb_next)
        return
    text = ''.join(traceback.format_exception(type(error), error, error.__traceback__))

    def unless_ours(frame):
        # TensorFlow 1.15 leaves out the beginning that all paths have in common
        path = '/' + frame.group(1).lstrip('/')
        is_ours = any(('/' + ours).endswith(path) for ours in (__file__, tf1.__file__, _SCRIPT))
        return '' if is_ours else frame.group()

    sys.stderr.write(
        re.sub(r'(?m)^[ |]*File "(.*)", line .*\n(?:[ |]*    (?! *File ).*\n)*', unless_ours, text)
    )
