"""Hints for errors of TensorFlow 1 programs on today's Python or TensorFlow.

A hint is one line with the file, the line number and the remedy.
"""

import difflib
import importlib.util
import linecache
import os
import re
import sys
import traceback

from tensorflow.compat import v2 as tensorflow_2
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.tf1 import missing_names

_PACKAGE_DIR = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), '')
_PYTHON_3_HINT = (
    'this is Python 2: convert the program with 2to3 (in Python up to 3.12), or rewrite the line'
)
_COPY_HINT = "the program needs its author's copy beside it, without package_modules"
_PYTHON_2_SYNTAX = '|'.join(  # for a line with emptied strings
    [
        r"(^|[:;]) *(print|exec) +[\w'{-]",
        r'(^|[:;]) *print *>>',
        r'(^|[:;]) *raise +[\w.]+ *,',
        r'\bexcept\b.*[\w)] *, *\w+ *:',
        r'<>',
        r'(?<!`)`[^`]+`(?!`)',
        r'(?<![\w.+-])0[0-7]+(?![\w.])',
        r'\b(\d+|0[xX][\da-fA-F]+)[lL]\b',
        r"\bur'",
        r'\blambda *\(',
        r'\bdef +\w+ *\((?:[^=()]*,)? *\(',
    ]
)
_PYTHON_2_ERRORS = '|'.join(
    [
        r"NameError: name '(xrange|unicode|raw_input|reduce|long|unichr|basestring|execfile|reload)'",
        r'Error: .*\b(cPickle|cStringIO|StringIO|urllib2|urlparse|Queue|ConfigParser|Tkinter|'
        r'tkMessageBox|commands|cookielib|httplib|HTMLParser|__builtin__|copy_reg|thread|'
        r'dummy_thread|xmlrpclib)\b',
        r"'dict' object has no attribute '(has_key|iteritems|iterkeys|itervalues)'",
        r"can't have unbuffered text I/O",
        r"module '(urllib|string|itertools|os|sys)' has no attribute '(url\w+|quote|unquote|letters|"
        r"lowercase|uppercase|maketrans|join|split|replace|izip|imap|ifilter|getcwdu|maxint)'",
        r"cannot import name '(url\w+|quote|unquote)' from 'urllib'",
        r"unsupported operand type\(s\) for >>: 'builtin_function_or_method'",
        r"'cmp' is an invalid keyword argument for sort|"
        r"sort(ed)?\(\) got an unexpected keyword argument 'cmp'",
    ]
)
_MISSING_NAME_PATTERNS = [  # of error messages
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
    r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
    r"No module named '(?P<module>tensorflow[\w.]*|cifar10)\.(?P<name>\w+)",
    r'(?P<module>tf\.contrib[\w.]*)\.(?P<name>\w+) is not in',
]
_NOTEBOOK_HINT = 'this line is from a notebook: remove it'
_REMEDIES = [  # (pattern of 'Class: message in program line', remedy)
    (r"NameError: name 'get_ipython'", _NOTEBOOK_HINT),
    (_PYTHON_2_ERRORS, _PYTHON_3_HINT),
    (
        r"'(numpy\.)?float\d*' object cannot be interpreted as an integer|"
        r'slice indices must be integers|indices must be integers.*, not float|'
        r'DataType float32 not in list of allowed values: int32, int64|'
        r"a sequence of integers or a single integer, got '|Dimension value must be integer",
        'in Python 3, 8 / 2 is 4.0: write 8 // 2, or int(...), for an integer',
    ),
    (
        r"'(zip|map|filter|range|dict_\w+)' object (is not subscriptable|does not support item)|"
        r"'dict_\w+' object has no attribute 'sort'|"
        r"object of type '(zip|map|filter)' has no len|operand .* for \+: '(range|dict_\w+)'|"
        r'Failed to convert .*(<(zip|map|filter) object|dict_)|Expected values range\(',
        'in Python 3, this is no list: write list(...) around it',
    ),
    (
        r"UnicodeDecodeError: 'ascii' .* in .*pickle|UnicodeDecodeError: .* 0x80 in position 0",
        "this is Python 2: write pickle.load(open(path, 'rb'), encoding='latin1')",
    ),
    (
        r'write\(\) argument must be str, not bytes.* in .*dump\(',
        "this is Python 2: pickle needs a binary file, open(path, 'wb')",
    ),
    (r"'str' object has no attribute 'decode'", 'in Python 3, a str is text: delete .decode()'),
    (
        r'inhomogeneous shape',
        'NumPy needs a type for lists of different lengths: write np.array(..., dtype=object)',
    ),
    (
        r'only (0-dimensional|length-1|size-1) arrays can be converted to Python scalars',
        'NumPy converts no array with axes to a number: write array.item()',
    ),
    (
        r"module 'numpy' has no attribute '\w+'\. `",
        'NumPy has removed this name: delete the prefix `np.`',
    ),
    (
        r'^(?!.*feed_dict=).*(as a Python `?bool`? is not allowed|must be a dictionary|'
        r'truth value of an array).* in .*\brun\(',
        'run takes one list of fetches: write run([a, b])',
    ),
    (
        r"numpy' has no attribute 'bool8'.* in .*\.step\(",
        'gym does not run with NumPy 2: pip install gymnasium',
    ),
    (r"module 'numpy' has no attribute", 'NumPy may have removed this name: see its release notes'),
    (
        r'as a Python `?bool`? is not allowed',
        'a tensor has no truth value since TensorFlow 0.7: write `is not None`',
    ),
    (r'not available with Keras 3', 'make it available: pip install tf_keras'),
    (
        r'TypeError: (\w+)\(\) .* in .*cifar10(_input)?\.\1\(',
        "the tutorial's function differs: " + _COPY_HINT,
    ),
    *missing_names.MODULES,
    (
        r"(cannot import name '\w+' from|module) 'scipy[\w.]*'",
        'SciPy has moved or removed this name: see its release notes',
    ),
    (
        r"No module named '(?!tensorflow|cifar10)",
        'put this module beside the program, or install its package with pip',
    ),
    (r'Cannot download https?://', 'check the network'),
    (
        r'^ValueError: Variable .* already exists, disallowed',
        'give it another name; share it with tf.variable_scope(NAME, reuse=tf.AUTO_REUSE); or, for '
        'another graph, call tf.reset_default_graph() first',
    ),
    (r'^DuplicateFlagError', 'give one of the two flags another name'),
    (
        r'^(UnrecognizedFlag|IllegalFlagValue)?Error: .*(flag|Flag)',
        '--help may list the flags of the program',
    ),
]


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
    if isinstance(error, UserError):
        return place + str(error)
    remedy = find_remedy(error, frame and frame.line)
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
    """Return True if a file belongs to this package, or to an installed one."""
    path = os.path.realpath(path)
    return path.startswith(_PACKAGE_DIR) or re.search('(site|dist)-packages', path) is not None


def _frame(entry):
    return traceback.extract_tb(entry, limit=1)[0]


def find_remedy(error, line):
    """Return the remedy for a known error in a line of the program; None for any other."""
    # An OpError has none, because its message may contain the traceback of a tf.py_func.
    if isinstance(error, tf.errors.OpError):
        return None
    text = _one_line(error)
    remedies = [remedy for pattern, remedy in _REMEDIES if re.search(pattern, f'{text} in {line}')]
    return next(iter(remedies or _find_name_remedies(text)), None)


def _one_line(error):
    return f'{type(error).__name__}: {" ".join(str(error).split())}'


def _find_name_remedies(text):
    """Return a list with the remedy for a missing name of TensorFlow or the tutorial, or []."""
    found = next(
        filter(None, (re.search(pattern, text) for pattern in _MISSING_NAME_PATTERNS)), None
    )
    if not found:
        return []
    module, name = found.group('module', 'name')
    owner = sys.modules.get(re.sub(r'^tf\b', 'tensorflow', module))
    similar = difflib.get_close_matches(name, dir(owner), 1, 0.85)
    question = f"did you mean '{similar[0]}'? " if similar else ''
    newer = _find_in_version_2(module, name)
    if newer:
        return [f'TensorFlow 2 has it: {newer}']
    if (getattr(owner, '__file__', None) or '').startswith(_PACKAGE_DIR):
        return [question + "the tutorial's module has no such name: " + _COPY_HINT]
    may_be_in_slim = (
        re.match(r'(tensorflow|tf)\.contrib\.(slim|layers|framework)', module)
        and not re.search(missing_names.NOT_IN_TF_SLIM, name)
        and not importlib.util.find_spec('tf_slim')
    )
    if may_be_in_slim:
        return [question + 'More names: pip install tf_slim']
    if re.match(r'(tensorflow(_core)?|tf\.contrib)\b', module):
        return [
            question + 'docs/tf1.md has remedies for removed names; TensorFlow 1.15 '
            '(docs/requirements-1.15.txt) may have the name'
        ]
    return []


def _find_in_version_2(module, name):
    """Return the name in tf.compat.v2 of a name that a module of version 1 lacks, or None."""
    path = re.sub(
        r'^tensorflow(_core)?(\._api\.v\d)?(\.compat\.v1)?(?=\.|$)', 'tf.compat.v2', module
    )
    owner = tensorflow_2
    for part in path.split('.')[3:]:
        owner = getattr(owner, part, None)
    return f'{path}.{name}' if path.startswith('tf.compat.v2') and name in dir(owner) else None


def find_syntax_remedy(error):
    """Return the remedy for Python 2 or a wrong encoding; None for any other syntax error."""
    without_strings = re.sub(r'(["\'])(?:\\.|(?!\1).)*\1|#.*', "''", (error.text or '').strip())
    if re.search("UTF-8|(?<!unicodeescape' )codec can't decode", error.msg):
        return 'save the file as UTF-8, or name its encoding in the first line'
    if isinstance(error, TabError):
        return 'in Python 2, a tab was 8 spaces: replace each one (expand -t 8)'
    if without_strings.startswith(('%', '!')):
        return _NOTEBOOK_HINT
    if re.search('unterminated|EOL while scanning', error.msg):
        return None
    if re.search('Missing parentheses', error.msg) or re.search(_PYTHON_2_SYNTAX, without_strings):
        return _PYTHON_3_HINT
    return None
