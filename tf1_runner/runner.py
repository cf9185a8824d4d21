"""Runner of unchanged TensorFlow 1 programs and notebooks."""

import ast
import atexit
import json
import linecache
import os
import re
import signal
import sys
import textwrap
import threading
import traceback
import types

from cifar10.errors import UserError, warn
from tf1_runner import error_hints, modules, program_flags, queue_errors, sessions, tensorflow_1

# Line of a notebook that is not Python: magic, shell command, its result, request for help.
_MAGIC = re.compile(
    r'(?P<indent>\s*)(%time\s+(?P<statement>[^\s-].*)|[%!?].*|[\w,. \[\]]+=\s*[%!].*|[\w.*\[\]]+\?{1,2};?\s*)$'
)


def run(path, arguments, package_modules=False, option='package_modules'):
    """Run a program or notebook as a script, with TensorFlow 1 and the tutorial's modules.

    The program becomes `__main__`; its directory comes first in sys.path. Signals do what they do
    under Python. Skip the magics and shell commands of a notebook, with a warning each.

    Args:
      path: path of a Python file or a notebook.
      arguments: list of strings, the program's command line.
      package_modules: True to import the tutorial's modules of this package, not copies beside the
        program.
      option: what a user writes for package_modules, for messages.

    Raises:
      UserError: the program cannot be read, or its error has a hint in `error_hints`.
      KeyboardInterrupt: after Ctrl-C; its traceback has been printed.
      SystemExit: the program exits, or its error has no hint and its traceback has been printed.
    """
    codes, is_notebook = _compile_program(path)
    directory = os.path.dirname(os.path.realpath(path))
    find_remedy = modules.install(os.path.realpath(path), package_modules, option)
    tensorflow_1.install()
    queue_errors.install(directory)
    _add_hints_in_threads(directory)
    if is_notebook:
        program_flags.adapt_to_notebook()
    # These run after the program's threads, and after its own atexit functions.
    atexit.register(sessions.close)
    atexit.register(queue_errors.warn_untold, directory)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # see program.start
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [path] + arguments
    sys.path[0] = directory
    main = sys.modules['__main__'] = types.ModuleType('__main__')
    main.__file__ = os.path.abspath(path)
    if is_notebook:
        main.display = print
    try:
        for code in codes:
            exec(code, vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        frames = error.__traceback__.tb_next  # without the frame of this function
        if not isinstance(error, KeyboardInterrupt):
            _exit_with_error(error, directory, frames, find_remedy)
        _show(error, frames)
        sys.excepthook = lambda *unused_error: None  # It has been shown.
        raise  # Python ends its process with SIGINT, after the functions of atexit.


def _add_hints_in_threads(directory):
    """Print the hint for an error after the traceback of a thread."""
    show = threading.excepthook

    def show_with_hint(error):
        show(error)
        line = _find_line(error.exc_value, directory)
        if line:
            warn(line)

    threading.excepthook = show_with_hint


def _find_line(error, directory):
    """Return the cause of a queue's end, or the hint, for an error; None for any other."""
    return queue_errors.find_line(error, directory) or error_hints.find_hint(error, directory)


def _exit_with_error(error, directory, frames, find_remedy=lambda trace: None):
    """Exit with the hint for an error, or else with its traceback and the remedy for that."""
    line = _find_line(error, directory)
    if line:
        raise UserError(line)
    _show(error, frames)
    trace = ''.join(traceback.format_exception(type(error), error, frames))
    for line in (queue_errors.describe(error, directory), find_remedy(trace)):
        if line:
            warn(line)
    sys.exit(1)


def _show(error, frames):
    """Print a traceback as Python does, or as the program's own hook does."""
    if sys.excepthook is sys.__excepthook__:  # It would not show the lines of a cell.
        traceback.print_exception(type(error), error, frames)
    else:
        sys.excepthook(type(error), error.with_traceback(frames), frames)


def _compile_program(path):
    """Return the code objects of a program or notebook, and True for a notebook."""
    remedy = 'give the path of a Python file or a notebook'
    try:
        with open(path, 'rb') as opened:
            source = opened.read()
        try:
            notebook = json.loads(source)
        except ValueError:
            notebook = None
        if not isinstance(notebook, dict) and not path.endswith('.ipynb'):
            return [compile(source, os.path.abspath(path), 'exec', dont_inherit=True)], False
        codes = []
        for number, cell in enumerate(_read_cells(notebook, path), 1):
            codes += _compile_cell(cell, f'{os.path.abspath(path)}, cell {number}')
        return codes, True
    except OSError as error:
        raise UserError(f'Cannot read the program {path} ({error.strerror}): {remedy}')
    except SyntaxError as error:
        _exit_with_error(error, '', None)


def _read_cells(notebook, path):
    """Return the sources of the code cells of a parsed notebook."""
    try:
        language = notebook.get('metadata', {}).get('language_info', {}).get('name', 'python')
        if 'python' not in language.lower():
            raise UserError(f'{path} is a notebook for {language}: give one for Python')
        # Up to version 3 of the format, the cells are in worksheets.
        cells = [
            cell for sheet in notebook.get('worksheets', [notebook]) for cell in sheet['cells']
        ]
        return [
            ''.join(cell.get('source', cell.get('input')))
            for cell in cells
            if cell['cell_type'] == 'code'
        ]
    except (AttributeError, KeyError, TypeError):
        raise UserError(f'{path} is a damaged notebook: open it in Jupyter, and save it again')


def _compile_cell(source, name):
    """Return the code objects of a cell; the last one prints the value of a final expression."""
    lines = textwrap.dedent(source).split('\n')
    first = next((line for line in lines if line.strip()), '')
    if first.startswith('%%') and not re.match(r'%%(capture|time)\b', first):
        warn(f'{os.path.basename(name)}: skips the cell {first}')
        return []
    while True:
        text = '\n'.join(lines) + '\n'
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)  # for tracebacks
        try:
            tree = compile(text, name, 'exec', ast.PyCF_ONLY_AST, dont_inherit=True)
            break
        except SyntaxError as error:
            _replace_magic(lines, error, name)
    is_shown = tree.body and isinstance(tree.body[-1], ast.Expr) and not text.endswith(';\n')
    final = tree.body[-1:] if is_shown else []
    del tree.body[len(tree.body) - len(final) :]
    return [
        compile(part, name, mode, dont_inherit=True)
        for part, mode in [(tree, 'exec'), (ast.Interactive(final), 'single')]
    ]


def _replace_magic(lines, error, name):
    """Replace the line of a SyntaxError by `pass`, or `%time STATEMENT` by its statement.

    Raises:
      SyntaxError: the line is neither a magic nor a shell command.
    """
    index = (error.lineno or 0) - 1
    found = _MAGIC.match(lines[index]) if 0 <= index < len(lines) else None
    if not found:
        raise error
    if found.group('statement'):
        lines[index] = found.group('indent') + found.group('statement')
        return
    warn(f'{os.path.basename(name)}, line {index + 1}: skips {lines[index].strip()}')
    last = index
    while lines[last].endswith('\\') and last + 1 < len(lines):  # The command continues.
        last += 1
    lines[index : last + 1] = [found.group('indent') + 'pass'] + [''] * (last - index)
