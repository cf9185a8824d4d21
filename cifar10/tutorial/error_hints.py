"""What cannot work on today's Python or TensorFlow, in one line: the place in the program, and the
remedy."""

import difflib
import os
import re
import sys
import traceback

import tensorflow.compat.v1 as tf

from cifar10.errors import UserError

_PACKAGE_DIR = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), '')
_TO_PYTHON_3 = 'this is Python 2: convert the program with 2to3, which comes with Python up to 3.12'
_PAGE = os.path.join(_PACKAGE_DIR, os.pardir, 'docs', 'tf1.md')
_ONE_LIST = 'run takes one list of fetches, and its second argument is feed_dict: write run([a, b])'
_OWN_MODULES = 'If the program came with its own copy, give --own-modules before its name'
_PYTHON_2 = [  # patterns of a line in which the strings are empty
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
_NO_NAME = [  # patterns of messages, with the module and the name
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
    r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
    r"No module named '(?P<module>tensorflow[\w.]*|cifar10)\.(?P<name>\w+)",
    r'(?P<module>tf\.contrib[\w.]*)\.(?P<name>\w+) is not in',
]
_REMEDIES = [  # pattern of the error's class and message, ' in ', and the program's line; remedy
    (r"NameError: name 'get_ipython'", 'this line is of a notebook: remove it'),
    (
        r"NameError: name '(xrange|unicode|raw_input|reduce|long|unichr|basestring|execfile|reload)'",
        _TO_PYTHON_3,
    ),
    (
        r'(ModuleNotFound|Import)Error: .*\b(cPickle|cStringIO|StringIO|urllib2|urlparse|Queue|ConfigParser|Tkinter|tkMessageBox|'
        r'commands|cookielib|httplib|HTMLParser|__builtin__|copy_reg|thread|dummy_thread|xmlrpclib)\b',
        _TO_PYTHON_3,
    ),
    (
        r"AttributeError: 'dict' object has no attribute '(has_key|iteritems|iterkeys|itervalues)'",
        _TO_PYTHON_3,
    ),
    (r"ValueError: can't have unbuffered text I/O", _TO_PYTHON_3),
    (
        r"AttributeError: module '(urllib|string|itertools|os|sys)' has no attribute '(url\w+|quote|unquote|letters|lowercase|uppercase|"
        r"maketrans|join|split|replace|izip|imap|ifilter|getcwdu|maxint)'",
        _TO_PYTHON_3,
    ),
    (
        r"AttributeError: module 'numpy' has no attribute '(\w+)'\. `",
        'NumPy has dropped this name: write {0} without np.',
    ),
    (
        r"TypeError: unsupported operand type\(s\) for >>: 'builtin_function_or_method'",
        _TO_PYTHON_3,
    ),
    (
        r"^(?!.*feed_dict=).*(as a Python `?bool`? is not allowed|(dict'|input) must be a dictionary|truth value of an array)"
        r'.* in Session\.run',
        _ONE_LIST,
    ),
    (
        r'as a Python `?bool`? is not allowed',
        'a tensor has no truth value since TensorFlow 0.7: write `is not None`',
    ),
    (r'not available with Keras 3', 'make it available: pip install tf_keras'),
    (
        r'TypeError: (\w+)\(\) .* in .*cifar10(_input)?\.\1\(',
        "the tutorial's function differs. " + _OWN_MODULES,
    ),
    (r"ModuleNotFoundError: No module named 'PIL'", 'pip install pillow'),
    (
        r"(cannot import name '\w+' from|module) 'scipy[\w.]*'",
        'SciPy has moved or removed this name: its release notes name the successor',
    ),
    (r"No module named '(scipy|matplotlib|pandas)'", 'pip install {0}'),
    (
        r"ModuleNotFoundError: No module named '(?!tensorflow|cifar10)(\w+)",
        'put {0}.py beside the program, or install the package',
    ),
    (
        r'^(UnrecognizedFlag|IllegalFlagValue|DuplicateFlag)?Error: .*(flag|Flag)',
        'its own --help may list the flags of the program',
    ),
]


def explain(error, directory):
    """Returns one line about an error that is known; None for any other.

    Args:
      error: an exception that a program in `directory` raised, or SyntaxError.
      directory: an absolute path.
    """
    if isinstance(error, SyntaxError) and error.filename and os.path.exists(error.filename):
        return _explain_syntax(error)
    frames = traceback.extract_tb(error.__traceback__)
    frame = _frame(frames, directory)
    place = '%s:%d: ' % (frame.filename, frame.lineno) if frame else ''
    if isinstance(error, UserError):
        return place + str(error)
    # its message has the traceback of the program's tf.py_func
    if isinstance(error, tf.errors.OpError):
        return None
    text = '%s: %s' % (type(error).__name__, ' '.join(str(error).split()))
    is_run = any(
        found.name == 'run' and os.path.basename(found.filename) == 'session.py' for found in frames
    )
    for pattern, remedy in _REMEDIES:
        found = re.search(
            pattern,
            '%s in %s%s' % (text, frame and frame.line, ' in Session.run' if is_run else ''),
        )
        if found:
            return '%s%s; %s' % (
                place,
                re.split(r'\.? You can |\. `|\.$', text)[0],
                remedy.format(*found.groups()),
            )
    remedy = isinstance(error, (AttributeError, ImportError)) and _remedy_of_name(text)
    return '%s%s; %s' % (place, re.sub(r' \(.*', '', text), remedy) if remedy else None


def _remedy_of_name(text):
    """Returns the remedy for a name that is not in a module of TensorFlow or of the tutorial; None
    if there is none."""
    found = next(filter(None, (re.search(pattern, text) for pattern in _NO_NAME)), None)
    if not found:
        return None
    module, name = found.group('module', 'name')
    owner = sys.modules.get(re.sub(r'^tf\b', 'tensorflow', module))
    similar = [
        close for close in difflib.get_close_matches(name, dir(owner), 1, 0.7) if close != name
    ]
    question = "did you mean '%s'?" % similar[0] if similar else ''
    if (getattr(owner, '__file__', None) or '').startswith(_PACKAGE_DIR):
        return "%s tutorial's module has no such name. %s" % (
            question + ' The' if similar else 'the',
            _OWN_MODULES,
        )
    if 'tf_slim' in text:
        return (question + ' If not, ' if similar else '') + 'pip install tf_slim tf_keras'
    if not re.match(r'(tensorflow(_core)?|tf\.contrib)\b', module):
        return None
    if name in _names_on_page():
        return 'docs/tf1.md has a remedy for this name'
    return question or (
        'TensorFlow 1.15 may have it: docs/requirements-1.15.txt installs that'
        if 'contrib' in module
        else None
    )


def _names_on_page():
    """Returns the names of TensorFlow in the first column of the tables in docs/tf1.md, where the
    last column has a remedy."""
    if not os.path.exists(_PAGE):
        return []
    with open(_PAGE, encoding='utf-8') as page:
        rows = re.findall(
            r'(?m)^\|([^|\n]*)\|(?:.*\|)?[^|\n]*\w[^|\n]*\|$',
            page.read().partition('\n## Python 3')[0],
        )
    # without the methods of objects
    names = re.findall(r'`(?!(?:x|saver|model|[A-Z]\w*)\.)([\w.]+)', ' '.join(rows))
    return re.findall(r'\w+', ' '.join(names))


def _explain_syntax(error):
    """Returns one line about Python 2 or an unknown encoding; None for other errors, which Python
    shows better."""
    line = (error.text or '').strip()
    without_strings = re.sub(r'(["\'])(?:\\.|(?!\1).)*\1|#.*', "''", line)
    if (
        re.search("codec can't decode", error.msg)
        and 'unicodeescape' not in error.msg
        or 'UTF-8' in error.msg
    ):
        remedy = 'save the file as UTF-8, or name its encoding in the first line'
    elif re.search('unterminated|EOL while scanning', error.msg):
        return None
    elif 'Missing parentheses' in error.msg or any(
        re.search(pattern, without_strings) for pattern in _PYTHON_2
    ):
        remedy = _TO_PYTHON_3
    else:
        return None
    return '%s:%s: %s: `%s`; %s' % (error.filename, error.lineno, error.msg, line, remedy)


def _frame(frames, directory):
    """Returns the innermost of the frames that is in the program's directory, and not in a package
    installed there; or None."""

    def is_of_program(path):
        return (
            path.startswith(os.path.join(directory, ''))
            and os.path.exists(path)
            and not path.startswith(_PACKAGE_DIR)
            and 'site-packages' not in path
        )

    found = [frame for frame in frames if is_of_program(os.path.realpath(frame.filename))]
    return found[-1] if found else None
