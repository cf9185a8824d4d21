"""Tables of remedies for errors of programs for TensorFlow 1 or Python 2."""

from tf1_runner import missing_names

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
        r'<>',
        r'(?<!`)`[^`]+`(?!`)',
        r'(?<![\w.+-])0[0-7]+(?![\w.])',
        r'\b(\d+|0[xX][\da-fA-F]+)[lL]\b',
        r"\bur'",
        r'\blambda *\(',
        r'\bdef +\w+ *\((?:[^=()]*,)? *\(',
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
        r"unsupported operand type\(s\) for >>: 'builtin_function_or_method'",
        r"unsupported operand type\(s\) for .*: 'NoneType' and .* in print *\(",
    ]
)
REMEDIES = [  # (pattern of 'Class: message in program line', remedy)
    (r"NameError: name 'get_ipython'", NOTEBOOK),
    (_PYTHON_2_ERRORS, PYTHON_3),
    (r"can't have unbuffered text I/O", 'in Python 3, text has a buffer: leave out the size 0'),
    (
        r"'cmp' is an invalid keyword argument for sort|"
        r"sort(ed)?\(\) got an unexpected keyword argument 'cmp'",
        'in Python 3, write key=functools.cmp_to_key(...)',
    ),
    (
        r"module 'string' has no attribute '(letters|lowercase|uppercase)'",
        'in Python 3, this name begins with ascii_, as string.ascii_letters',
    ),
    (
        r"module 'string' has no attribute '(maketrans|join|split|strip|replace|lower|upper)'",
        'in Python 3, write str.maketrans(a, b), separator.join(words), text.split(), text.lower()',
    ),
    (
        r'initial_value must be str or None, not bytes',
        'in Python 3, bytes need io.BytesIO, not StringIO',
    ),
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
        r'inhomogeneous shape(?!.* in .*\b(run|eval)\()',
        'NumPy needs a type for lists of different lengths: write np.array(..., dtype=object)',
    ),
    (
        r'only 0-dimensional arrays can be converted to Python scalars|'
        r'%[dif] format: a (real )?number is required, not numpy\.ndarray',
        'NumPy converts no array with axes to a number: write array.item() for its only number',
    ),
    (
        r"module 'numpy' has no attribute '\w+'\. `",
        'NumPy has removed this name: delete the prefix `np.`',
    ),
    (
        r'^(?!.*feed_dict=).*(as a Python `?bool`? is not allowed|must be a dictionary|'
        r'truth value of an array).* in .*\brun\(.*,',
        'run takes one list of fetches: write run([a, b])',
    ),
    (
        r"numpy' has no attribute 'bool8'.* in .*\.step\(",
        'gym does not run with NumPy 2: pip install gymnasium',
    ),
    (
        r"'numpy\.\w+' object has no attribute '(tostring|itemset|newbyteorder|ptp)'",
        'NumPy has removed this method (tobytes is the new name of tostring): with Python up to 3.12, '
        "pip install 'numpy<2' 'ml_dtypes<0.6'",
    ),
    (r"module 'numpy' has no attribute", 'NumPy may have removed this name: see its release notes'),
    (
        r'as a Python `?bool`? is not allowed.* in (el)?if (not )?[\w.\[\]]+\s*:',
        'a tensor has no truth value since TensorFlow 0.7: write `is not None`',
    ),
    (
        r'as a Python `?bool`? is not allowed',
        'a tensor has no value while the graph is built: write tf.cond or tf.where',
    ),
    (  # tf_keras lacks those names, too.
        r"module 'keras\._tf_keras\.keras[\w.]*' has no attribute '(?!multi_gpu_model|HDF5Matrix|"
        r'convert_all_kernels|Keras(Classifier|Regressor)|PeepholeLSTMCell|(Noisy)?LinearCosineDecay)',
        'make it available: pip install tf_keras',
    ),
    (r'not available with Keras 3', 'make it available: pip install tf_keras'),
    (
        r'TypeError: (\w+)\(\) .* in .*cifar10(_input)?\.\1\(',
        "the tutorial's function differs: " + COPY,
    ),
    *missing_names.MODULES,
    (
        r"(cannot import name '\w+' from|module) 'scipy[\w.]*'",
        'SciPy has moved or removed this name: see its release notes',
    ),
    (
        r"got an unexpected keyword argument 'n_iter' in .*TSNE",
        'scikit-learn has renamed it: write max_iter=',
    ),
    (
        r"'FigureCanvas\w*' object has no attribute 'set_window_title'",
        'Matplotlib has moved it: write canvas.manager.set_window_title(...)',
    ),
    (
        r"'Legend' object has no attribute 'draggable'",
        'Matplotlib has renamed it: write set_draggable(True)',
    ),
    (r'Cannot download https?://', 'check the network'),
    (
        r'^ValueError: Variable .* already exists, disallowed',
        'give it another name; share it with tf.variable_scope(NAME, reuse=tf.AUTO_REUSE); or, for '
        'another graph, call tf.reset_default_graph() first',
    ),
    (r'^DuplicateFlagError', 'give one of the two flags another name'),
    (
        r'^IllegalFlagValueError: .* found <class .numpy\.',
        'the default of this flag must be a number of Python: write int(...) or float(...) around it',
    ),
    (
        r'^(UnrecognizedFlag|IllegalFlagValue)?Error: .*(flag|Flag)',
        '--help may list the flags of the program',
    ),
]
