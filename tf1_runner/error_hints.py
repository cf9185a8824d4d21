"""Hints for errors of TensorFlow 1 programs on today's Python or TensorFlow.

A hint is one line with the file, the line number and the remedy.
"""

import contextlib
import difflib
import importlib.util
import linecache
import operator
import os
import re
import shlex
import sys
import traceback

import tensorflow.compat.v1 as tf

from cifar10 import errors
from tf1_runner import contrib_slim, remedies

_PACKAGE_DIRS = tuple(  # of cifar10 and of this package
    os.path.join(os.path.dirname(os.path.realpath(module.__file__)), '')
    for module in (errors, remedies)
)
_MISSING_NAME_PATTERNS = [  # of error messages
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
    r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
    r"No module named '(?P<module>[\w.]+)\.(?P<name>\w+)",
    r"No module named '(?P<module>)(?P<name>\w+)",
    r'(?P<module>tf\.contrib[\w.]*)\.(?P<name>\w+) is not in',
]
_TENSORFLOW = re.compile(r'^tensorflow(_core)?(\._api\.v\d)?(\.compat\.v1)?(?=\.|$)')


def find_hint(error, directory):
    """Return the hint for a known error; None for any other.

    Args:
      error: an exception of a program in `directory`, or SyntaxError.
      directory: an absolute path.
    """
    # linecache has the cells of a notebook.
    if isinstance(error, SyntaxError) and (
        os.path.exists(error.filename or '') or error.filename in linecache.cache
    ):
        remedy = find_syntax_remedy(error)
        line = (error.text or '').strip()
        return remedy and f'{error.filename}:{error.lineno}: {error.msg}: `{line}`; {remedy}'
    entries = program_entries(error.__traceback__, directory)
    frame = _frame(entries[-1]) if entries else None
    place = f'{frame.filename}:{frame.lineno}: ' if frame else ''
    if isinstance(error, errors.UserError):
        return place + str(error)
    remedy = find_remedy(error, entries, directory)
    cause = re.split(r'\.? You can |\. Did you mean|\. `|\.$| \(', _one_line(error))[0]
    return remedy and f'{place}{cause}; {remedy}'


def program_entries(trace, directory):
    """Return the entries of a traceback in the program, without packages in its directory.

    The program is the module `__main__`, and the files in `directory`, an absolute path.
    """
    entries = []
    while trace:
        frame = _frame(trace)
        is_main = trace.tb_frame.f_globals is vars(sys.modules['__main__'])
        if frame.line and (is_main or is_beside(frame.filename, directory)):
            entries.append(trace)
        trace = trace.tb_next
    return entries


def is_beside(path, directory):
    """Return True if a file is in the program's directory, and not in a package there."""
    return os.path.realpath(path).startswith(os.path.join(directory, '')) and not is_package(path)


def is_package(path):
    """Return True if a file belongs to one of the two packages here, or to an installed one."""
    path = os.path.realpath(path)
    return path.startswith(_PACKAGE_DIRS) or re.search('(site|dist)-packages', path) is not None


def _frame(entry):
    return traceback.extract_tb(entry, limit=1)[0]


def find_remedy(error, entries, directory):
    """Return the remedy for a known error; None for any other.

    Args:
      error: an exception.
      entries: list of the entries of its traceback in the program; see `program_entries`.
      directory: that of the program, an absolute path.
    """
    # An OpError has none, because its message may contain the traceback of a tf.py_func.
    if isinstance(error, tf.errors.OpError):
        return None
    frame = _frame(entries[-1]) if entries else None
    text = _one_line(error)
    line = f'{text} in {frame and frame.line}'
    known = [remedy for pattern, remedy in remedies.REMEDIES if re.search(pattern, line)]
    remedy = known[0] if known else _find_name_remedy(text, frame and frame.line, directory)
    return _adapt_to_place(remedy, frame and frame.filename)


def _adapt_to_place(remedy, path):
    """Return the remedy for a line of a file, or of a cell, which 2to3 cannot read."""
    is_cell = path and not os.path.exists(path)
    return remedies.PYTHON_3_NOTEBOOK if remedy == remedies.PYTHON_3 and is_cell else remedy


def _one_line(error):
    return f'{type(error).__name__}: {" ".join(str(error).split())}'


def _find_name_remedy(text, line, directory):
    """Return the remedy for a missing module, or name of TensorFlow or the tutorial, or None."""
    found = next(
        filter(None, (re.search(pattern, text) for pattern in _MISSING_NAME_PATTERNS)), None
    )
    if not found:
        return None
    module, name = found.group('module', 'name')
    owner = sys.modules.get(re.sub(r'^tf\b', 'tensorflow', module))
    similar = difflib.get_close_matches(name, dir(owner), 1, 0.85)
    question = f"did you mean '{similar[0]}'? " if similar else ''
    path = f'{_TENSORFLOW.sub("tf", module)}.{name}'.lstrip('.')
    is_new = tf.__version__ >= '2'
    for pattern, sentence in remedies.GONE:
        gone = re.match(rf'(?:{pattern})\b', path)
        if gone and (is_new or not path.startswith('tf.')):
            return sentence
    if (getattr(owner, '__file__', None) or '').startswith(_PACKAGE_DIRS[0]):
        return question + "the tutorial's module has no such name: " + remedies.COPY
    if contrib_slim.has(module, name) and not importlib.util.find_spec('tf_slim'):
        return 'make it available: pip install tf_slim'
    if is_new and re.match(r'tf\.contrib\b', path):
        return f'{question}{remedies.LAST}tf.contrib; docs/tf1.md has some remedies'
    if is_new and path.startswith('tf.'):
        with contextlib.suppress(AttributeError):
            operator.attrgetter(path[len('tf.') :])(tf.compat.v2)
            return 'only TensorFlow 2 has this name: run a program for TensorFlow 2 with python'
    if path.startswith('tf.'):
        return question + 'docs/tf1.md has remedies for removed names'
    if 'No module named' in text or '(unknown location)' in text:
        return _find_module_remedy(path, line or '', directory)
    return None


def _find_module_remedy(path, line, directory):
    """Return the remedy for a missing module with a dotted name, in a line of the program."""
    package = path.partition('.')[0]
    if package in remedies.PACKAGES:
        return 'pip install ' + remedies.PACKAGES[package]
    wanted = re.search(rf'\b{package}(\.\w+)*', line)
    above = remedies.find_above(directory, wanted[0] if wanted else package)
    if above:
        return f'it is in {above}: set PYTHONPATH={shlex.quote(above)}'
    return 'put this module beside the program, or install its package with pip'


def find_syntax_remedy(error):
    """Return the remedy for Python 2 or a line of a notebook; None for any other syntax error."""
    without_strings = re.sub(r'(["\'])(?:\\.|(?!\1).)*\1|#.*', "''", (error.text or '').strip())
    if isinstance(error, TabError):
        return 'in Python 2, a tab was 8 spaces: replace each one (expand -t 8)'
    if without_strings.startswith(('%', '!')):
        return remedies.NOTEBOOK
    if re.search('unterminated|EOL while scanning', error.msg):
        return None
    if re.search('Missing parentheses', error.msg) or re.search(
        remedies.PYTHON_2_SYNTAX, without_strings
    ):
        return _adapt_to_place(remedies.PYTHON_3, error.filename)
    return None
