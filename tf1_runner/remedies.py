"""Remedies for errors of programs for TensorFlow 1 or Python 2, and for missing names."""

import glob
import os
import pathlib

_TO_PYTHON_3 = 'with 2to3 -w (from Python 3.13 on: pip install fissix, python -m fissix -w), or rewrite the line'
PYTHON_3 = f'this is Python 2: convert the program {_TO_PYTHON_3}'
PYTHON_3_NOTEBOOK = (
    'this is Python 2: convert the notebook to a program (pip install nbconvert, python -m nbconvert '
    f'--to python), and that {_TO_PYTHON_3}'
)
COPY = "the program needs its author's copy beside it, without package_modules"
NOTEBOOK = 'this line is from a notebook: remove it'
PYTHON_2_SYNTAX = '|'.join(  # for a line with emptied strings
    [
        r"(^|[:;]) *(print|exec) +[\w'{-]",
        r'(^|[:;]) *print *>>',
        r'(^|[:;]) *raise +[\w.]+ *,',
        r'\bexcept\b.*[\w)] *, *\w+ *:',
    ]
)
_PYTHON_2_ERRORS = '|'.join(  # that 2to3 repairs
    [
        r"NameError: name '(xrange|unicode|raw_input|reduce|long|unichr|basestring|execfile|reload)'",
        r"No module named '(cPickle|cStringIO|StringIO|urllib2|urlparse|Queue|ConfigParser|Tkinter|"
        r'tkMessageBox|commands|cookielib|httplib|HTMLParser|__builtin__|copy_reg|thread|'
        r"xmlrpclib)['.]",
        r"'dict' object has no attribute '(has_key|iteritems|iterkeys|itervalues)'",
        r"module '(urllib|itertools|os|sys)' has no attribute '(url\w+|quote|unquote|izip|imap|"
        r"ifilter|getcwdu|maxint)'",
        r"cannot import name '(url\w+|quote|unquote)' from 'urllib'",
    ]
)
REMEDIES = [  # (pattern of 'Class: message in program line', remedy)
    (r"NameError: name 'get_ipython'", NOTEBOOK),
    (_PYTHON_2_ERRORS, PYTHON_3),
    (
        r"'(numpy\.)?float\d*' object cannot be interpreted as an integer|"
        r'slice indices must be integers|indices must be integers.*, not float|'
        r'DataType float32 not in list of allowed values: int32, int64|'
        r"Expected int(32|64).*, got -?\d+\.0 of type 'float'|IndexError: only integers, slices .*/|"
        r'num_or_size_splits .* provided: \d+\.0|'
        r"a sequence of integers or a single integer, got '|Dimension value must be integer",
        'in Python 3, 8 / 2 is 4.0: write 8 // 2, or int(...), for an integer',
    ),
    (
        r"UnicodeDecodeError: 'ascii' .* in .*pickle|UnicodeDecodeError: .* 0x80 in position 0",
        "this is Python 2: write pickle.load(open(path, 'rb'), encoding='latin1')",
    ),
    (
        r'inhomogeneous shape(?!.* in .*\b(run|eval)\()',
        'NumPy needs a type for lists of different lengths: write np.array(..., dtype=object)',
    ),
    (
        r'only 0-dimensional arrays can be converted to Python scalars|'
        r'%[dif] format: a (real )?number is required, not numpy\.ndarray',
        'NumPy converts no array with axes to a number: write array.item() for its only number',
    ),
    (  # tf_keras lacks those names, too.
        r"module 'keras\._tf_keras\.keras[\w.]*' has no attribute '(?!multi_gpu_model|HDF5Matrix|"
        r'convert_all_kernels|Keras(Classifier|Regressor)|PeepholeLSTMCell|(Noisy)?LinearCosineDecay)',
        'make it available: pip install tf_keras',
    ),
    (
        r"got an unexpected keyword argument 'n_iter' in .*TSNE",
        'scikit-learn has renamed it: write max_iter=',
    ),
    (r'Cannot download https?://', 'check the network'),
    (
        r'^ValueError: Variable .* already exists, disallowed',
        'give it another name; share it with tf.variable_scope(NAME, reuse=tf.AUTO_REUSE); or, for '
        'another graph, call tf.reset_default_graph() first',
    ),
    (
        r'^(UnrecognizedFlag|IllegalFlagValue)?Error: .*(flag|Flag)',
        '--help may list the flags of the program',
    ),
]
# Module -> what `pip install` needs. Each was imported on Python 3.13 with TensorFlow 2.21.
PACKAGES = {
    'PIL': 'pillow',
    'cv2': 'opencv-python-headless (or opencv-python, which also opens windows)',
    'gym': 'gymnasium',
    'skimage': 'scikit-image',
    'sklearn': 'scikit-learn',
    'yaml': 'pyyaml',
    **{name: name for name in 'keras pandas scipy tf_keras tf_slim tflearn tqdm'.split()},
}
LAST = 'TensorFlow 1.15 (docs/requirements-1.15.txt) is the last with '
GONE = [  # (pattern of the begin of a dotted name, sentence)
    (
        r'tf\.contrib\.learn',
        f'{LAST}these models; tf.estimator has such models with other arguments: with Python 3.11, '
        'pip install "tensorflow<2.16"',
    ),
    (
        'prettytensor',
        'its last version does not work with TensorFlow 1.15 and newer: use tf.layers instead',
    ),
]


def find_above(directory, name):
    """Return the directory above a program's that has a module or package; None if there is none.

    Args:
      directory: of the program, an absolute path.
      name: dotted, of the module; a package has Python files, or its subdirectories have.
    """
    package, *rest = name.split('.')
    for parent in list(pathlib.Path(directory).parents)[:-1]:  # without the root, which has `lib`
        place = os.path.join(str(parent), package, *rest)
        files = [glob.escape(place) + end for end in ('.py', '/*.py', '/*/*.py')]
        if os.path.join(str(parent), package) != directory and any(map(glob.glob, files)):
            return str(parent)
    return None
