"""Hints: one line with the place and the remedy."""

import operator
import sys

import numpy as np
import pytest
import tensorflow

from tf1_runner import error_hints

TO_PYTHON_3 = 'convert the program with 2to3'
LAST = 'TensorFlow 1.15 (docs/requirements-1.15.txt) is the last with tf.contrib; docs/tf1.md'
IN_SLIM = 'make it available: pip install tf_slim'
TF = 'import tensorflow.compat.v1 as tf\n'
INPUT = 'import cifar10.tutorial.cifar10_input as c\n'
only_with_2 = pytest.mark.skipif(tensorflow.__version__ < '2', reason='1.15 has tf.contrib')


def _execute(text, directory):
    program = directory / 'program.py'
    program.write_text('# a program\n' + text + '\n')
    exec(compile(program.read_text(), str(program), 'exec'), {})


def _explain(text, directory):
    try:
        _execute(text, directory)
    except Exception as error:
        return error_hints.find_hint(error, str(directory))
    raise AssertionError('no error')


ABSL = 'from absl import flags\n'
VERIFY = 'from cifar10.data import dataset\n'


@pytest.mark.parametrize(
    'text, line, hint',
    [
        ('\ntry:\n  x = 1\nexcept ValueError, error:\n  pass', 5, TO_PYTHON_3),
        pytest.param('import tensorflow.contrib.opt', 2, LAST, marks=only_with_2),
        (TF + 'tf.nn.bais_add', 3, "did you mean 'bias_add'? docs/tf1.md"),
        ('from tensorflow.compat.v1 import placehodler', 2, "did you mean 'placeholder'?"),
        (INPUT + 'c.distored_inputs', 3, "did you mean 'distorted_inputs'? the tutorial's module"),
        ('import cifar10.my_network', 2, "the program needs its author's copy beside it"),
        ('import cifar10\ncifar10.my_network', 3, "; the tutorial's module has no such name: the"),
        (ABSL + 'flags.FLAGS(["x", "--nix"])', 3, '; --help may list'),
        (VERIFY + 'dataset.is_present("/dev/null")', 3, 'is not a directory'),
        ('import sklearn_.svm', 2, 'put this module beside the program, or install its package'),
        ('raise ImportError("No module named \'sklearn.svm\'")', 2, 'pip install scikit-learn'),
        ('raise ImportError("No module named \'prettytensor\'")', 2, 'use tf.layers instead'),
    ],
)
def test_the_place_and_the_hint(tmp_path, text, line, hint):
    message = _explain(text, tmp_path)
    assert message.startswith(f'{tmp_path / "program.py"}:{line}: ')
    assert hint in message and '\n' not in message and len(message) < 400


@only_with_2
@pytest.mark.parametrize(
    'text, name',
    [
        ('tf.losses.MeanSquaredError', 'losses.MeanSquaredError'),
        ('tf.random.set_seed(1)', 'random.set_seed'),
        ('from tensorflow.compat.v1 import optimizers', 'optimizers'),
    ],
)
def test_names_that_only_version_2_has(tmp_path, text, name):
    message = _explain(TF + text, tmp_path)
    assert message.endswith(
        'only TensorFlow 2 has this name: run a program for TensorFlow 2 with python'
    )
    # What the remedy starts.
    assert operator.attrgetter(name)(tensorflow)


NUMPY = 'import numpy as np\n'
GRAPH = TF + 'with tf.Graph().as_default():\n  '


@pytest.mark.parametrize(
    'start, line, remedy, changed_line',
    [
        (NUMPY, 'np.ones(8 / 2)', '8 // 2', 'np.ones(8 // 2)'),
        (NUMPY, 'np.ones([4])[4 / 2]', '8 // 2', 'np.ones([4])[4 // 2]'),
        ('', '[1, 2][: 2 / 2]', '8 // 2', '[1, 2][: 2 // 2]'),
        ('x = [1, 2]\n', 'x[2 / 2]', '8 // 2', 'x[2 // 2]'),
        (NUMPY, 'range(np.ceil(1.5))', 'int(...)', 'range(int(np.ceil(1.5)))'),
        (GRAPH, 'tf.reshape([1, 2], [4 / 2])', '8 // 2', 'tf.reshape([1, 2], [4 // 2])'),
        pytest.param(
            GRAPH,
            'tf.placeholder(tf.int32, [4 / 2])',
            '8 // 2',
            'tf.placeholder(tf.int32, [4 // 2])',
            marks=only_with_2,
        ),
        (GRAPH, 'tf.one_hot([1], 4 / 2)', '8 // 2', 'tf.one_hot([1], 4 // 2)'),
        (
            'import pickle\n',
            'pickle.loads(b"\\x80\\x02U\\x01\\xffq\\x00.")',
            "encoding='latin1'",
            'pickle.loads(b"\\x80\\x02U\\x01\\xffq\\x00.", encoding="latin1")',
        ),
        pytest.param(
            NUMPY,
            'np.array([[1], [1, 2]])',
            'dtype=object',
            'np.array([[1], [1, 2]], dtype=object)',
            marks=pytest.mark.skipif(np.__version__ < '1.24', reason='this NumPy makes an array'),
        ),
        pytest.param(
            NUMPY,
            'float(np.ones([1, 1]))',
            'array.item()',
            'np.ones([1, 1]).item()',
            marks=pytest.mark.skipif(np.__version__ < '2.4', reason='this NumPy converts it'),
        ),
        (
            GRAPH + 'for _ in range(2): ',
            'tf.get_variable("w", [1])',
            'tf.variable_scope(NAME, reuse=tf.AUTO_REUSE)',
            'tf.variable_scope("a", reuse=tf.AUTO_REUSE)',
        ),
        (
            'class TSNE:\n  def __init__(self, max_iter):\n    pass\n',
            'TSNE(n_iter=1)',
            'write max_iter=',
            'TSNE(max_iter=1)',
        ),
        ('', 'get_ipython().run_line_magic("matplotlib")', 'from a notebook: remove it', ''),
    ],
)
def test_a_remedy_works(tmp_path, start, line, remedy, changed_line):
    """The line that is changed as the remedy says has no error."""
    message = _explain(start + line, tmp_path)
    assert message.startswith(f'{tmp_path / "program.py"}:{start.count(chr(10)) + 2}: ')
    assert remedy in message and '\n' not in message and len(message) < 400
    _execute(start + changed_line, tmp_path)


@pytest.mark.parametrize(
    'text',
    [
        'for _ in xrange(3): unicode(long(3)), unichr(3), isinstance("", basestring)',
        'import string\nreload(string)\nreduce(max, [1, 2])\nexecfile("/dev/null")',
        'import cPickle, cStringIO, StringIO, urllib2, urlparse, Queue, ConfigParser, commands, cookielib',
        'import httplib, HTMLParser, __builtin__, copy_reg, thread, xmlrpclib',
        '{}.has_key(1), {}.iteritems(), {}.iterkeys(), {}.itervalues()',
        'import urllib\nurllib.urlretrieve, urllib.urlopen, urllib.quote, urllib.unquote',
        'from urllib import urlretrieve, quote',
        'import itertools, os, sys\nitertools.izip([1], [2]), itertools.imap(int, "1"), os.getcwdu(), sys.maxint',
        'if 0: raise ValueError, "a"',
        'try: {}[1]\nexcept (KeyError, ValueError), error: print error',
        'exec "x = 1"',
    ],
)
def test_2to3_repairs_what_it_is_recommended_for(tmp_path, text):
    package = 'lib2to3' if sys.version_info < (3, 13) else 'fissix'
    refactor = pytest.importorskip(package + '.refactor')
    try:
        message = _explain(text, tmp_path)
    except SyntaxError as error:
        message = error_hints.find_hint(error, str(tmp_path))
    assert TO_PYTHON_3 in message
    tool = refactor.RefactoringTool(refactor.get_fixers_from_package(package + '.fixes'))
    _execute(str(tool.refactor_string(text + '\n', 'program.py')), tmp_path)


@pytest.mark.parametrize(
    'text',
    [
        'raise ValueError(3)',
        'def train(): pass\ntrain(3)',
        'import os\nos.nix',
        'raise SyntaxError("my own")',
        'import ast\nast.literal_eval("1 +")',
        'import numpy as np\n' + TF + 'def f(x):\n  if x > 0:\n    return x\n'
        'with tf.Graph().as_default(), tf.Session() as s:\n'
        '  s.run(tf.py_func(f, [np.ones(2)], tf.float64))',
    ],
)
def test_other_errors_keep_their_traceback(tmp_path, text):
    assert _explain(text, tmp_path) is None


def _explain_syntax(path, text):
    path.write_bytes(text)
    with pytest.raises(SyntaxError) as caught:
        compile(text, str(path), 'exec')
    return error_hints.find_hint(caught.value, str(path.parent))


@pytest.mark.parametrize(
    'text',
    [
        'print("step %d" % (x)',
        'x = \u201ca\u201d',
        '```python\nx',
        'print("It is `x`',
        'def f(x, shape=((1, 2), (3, 4)): pass',
        'open("C:\\Users")',
    ],
)
def test_other_syntax_errors_are_not_those_of_python_2(tmp_path, text):
    assert _explain_syntax(tmp_path / 'program.py', text.encode()) is None


def test_other_hints_for_syntax_errors(tmp_path):
    mixed = _explain_syntax(tmp_path / 'program.py', b'if 1:\n        x = 1\n\ty = 2\n')
    assert mixed.endswith('in Python 2, a tab was 8 spaces: replace each one (expand -t 8)')
    for line in (b'%matplotlib inline', b'!pip install tqdm'):
        hint = _explain_syntax(tmp_path / 'program.py', line + b'\nx = 1\n')
        assert hint.endswith('; this line is from a notebook: remove it')


def test_only_slips_of_the_keyboard_are_corrected(tmp_path):
    for name in ('get_step', 'RegisterShapeFunction', 'ServerSpec'):
        assert 'did you mean' not in _explain(TF + f'tf.train.{name}', tmp_path)
