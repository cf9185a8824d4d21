"""What cannot work on today's Python or TensorFlow, in one line: the place in the program, and the remedy."""
import os
import re
import traceback

from cifar10.errors import UserError

_PACKAGE_DIR = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), '')
_TO_PYTHON_3 = 'this is Python 2: convert the program with 2to3, which comes with Python up to 3.12'
_TF1 = "docs/tf1.md tells today's name"
_OWN_MODULES = "the tutorial's module is without it: if the program came with a copy of its own, give --own-modules before its name"
_REMEDIES = [  # pattern of the error's class and message, ' in ', and the program's line; remedy
    (r"NameError: name '(xrange|unicode|raw_input|reduce|long|unichr|basestring|execfile|reload)'", _TO_PYTHON_3),
    (r"(ModuleNotFound|Import)Error: .*\b(cPickle|cStringIO|StringIO|urllib2|urlparse|Queue|ConfigParser|Tkinter|tkMessageBox|"
     r"commands|cookielib|httplib|HTMLParser|__builtin__|copy_reg|thread|dummy_thread|xmlrpclib)\b", _TO_PYTHON_3),
    (r"AttributeError: 'dict' object has no attribute '(has_key|iteritems|iterkeys|itervalues)'", _TO_PYTHON_3),
    (r"ValueError: can't have unbuffered text I/O", _TO_PYTHON_3),
    (r"AttributeError: module '(urllib|string|itertools|os|sys)' has no attribute '(url\w+|quote|unquote|letters|lowercase|uppercase|"
     r"maketrans|join|split|replace|izip|imap|ifilter|getcwdu|maxint)'", _TO_PYTHON_3),
    (r"AttributeError: module 'numpy' has no attribute '(\w+)'\. `", 'NumPy has dropped this name: write {0} without np.'),
    (r"AttributeError: .*\(tf_slim has it\)", 'pip install tf_slim tf_keras'),
    (r"AttributeError: tf\.contrib|AttributeError: module 'tensorflow[\w.]*' has no attribute", _TF1),
    (r"(ModuleNotFound|Import)Error: .*tensorflow\.", _TF1),
    (r"as a Python `?bool`? is not allowed", 'a tensor has no truth value since TensorFlow 0.7: write `is not None`'),
    (r"not available with Keras 3", 'make it available: pip install tf_keras'),
    (r"(module|cannot import name '\w+' from) 'cifar10(_input|\.tutorial\.\w+)?'|No module named 'cifar10\.", _OWN_MODULES),
    (r"TypeError: (\w+)\(\) .* in .*cifar10(_input)?\.\1\(", _OWN_MODULES),
    (r"ModuleNotFoundError: No module named '(\w+)", 'put {0}.py beside the program, or install the package'),
    (r"^(UnrecognizedFlag|IllegalFlagValue|DuplicateFlag)?Error: .*(flag|Flag)", 'its own --help may list the flags of the program'),
]


def explain(error, directory):
    """One line about an error that is known; None for any other.

    Args:
      error: an exception that a program in `directory` raised, or SyntaxError.
      directory: an absolute path.
    """
    if isinstance(error, SyntaxError) and error.filename and os.path.exists(error.filename):
        return _explain_syntax(error)
    frame = _frame(error, directory)
    place = '%s:%d: ' % (frame.filename, frame.lineno) if frame else ''
    if isinstance(error, UserError):
        return place + str(error)
    told = '%s: %s' % (type(error).__name__, ' '.join(str(error).split()))
    for pattern, remedy in _REMEDIES:
        found = re.search(pattern, '%s in %s' % (told, frame and frame.line))
        if found:
            return '%s%s; %s' % (place, re.split(r'\.? You can |\. `|\.$', told)[0], remedy.format(*found.groups()))
    return None


def _explain_syntax(error):
    line = (error.text or '').strip()
    if 'unicode' in error.msg or 'UTF-8' in error.msg or 'codec' in error.msg:
        remedy = 'save the file as UTF-8, or name its encoding in the first line'
    elif re.search('Missing parentheses|exception types|leading zeros|invalid token|inconsistent use of tabs', error.msg) or re.search(
            r'^(print|exec|raise)\b|except .*,|<>|`', line):
        remedy = _TO_PYTHON_3
    else:
        remedy = 'correct it, or convert the program with 2to3 if it is Python 2'
    return '%s:%s: %s: `%s`; %s' % (error.filename, error.lineno, error.msg, line, remedy)


def _frame(error, directory):
    """The innermost frame of the error that is in the program's directory, and not in a package installed there; or None."""
    def is_of_program(path):
        return (path.startswith(os.path.join(directory, '')) and os.path.exists(path)
                and not path.startswith(_PACKAGE_DIR) and 'site-packages' not in path)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_of_program(os.path.realpath(frame.filename))]
    return frames[-1] if frames else None
