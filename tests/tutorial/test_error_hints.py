"""One line with the place and the remedy, for what cannot work."""

import sys

import numpy as np
import pytest
import tensorflow

from cifar10.errors import UserError
from cifar10.tutorial import error_hints

TO_PYTHON_3 = 'convert the program with 2to3'


def _explain(text, directory):
    program = directory / 'program.py'
    program.write_text('# a program\n' + text + '\n')
    try:
        exec(compile(program.read_text(), str(program), 'exec'), {})
    except Exception as error:
        return error_hints.explain(error, str(directory))
    raise AssertionError('no error')


@pytest.mark.parametrize(
    'text, line, remedy',
    [
        ('print "step"', 2, TO_PYTHON_3),
        ('\ntry:\n  x = 1\nexcept ValueError, error:\n  pass', 5, TO_PYTHON_3),
        ('def f():\n  return xrange(3)\nf()', 3, TO_PYTHON_3),
        ('import cPickle', 2, TO_PYTHON_3),
        ('{}.iteritems()', 2, TO_PYTHON_3),
        ('import urllib\nurllib.urlretrieve()', 3, TO_PYTHON_3),
        ('open(__import__("os").devnull, "w", 0)', 2, TO_PYTHON_3),
        pytest.param(
            'import numpy as np\nnp.float',
            3,
            'write float without np.',
            marks=pytest.mark.skipif(hasattr(np, 'float'), reason='this NumPy has it'),
        ),
        pytest.param(
            'import tensorflow.contrib.learn',
            2,
            'docs/tf1.md',
            marks=pytest.mark.skipif(tensorflow.__version__ < '2', reason='this TensorFlow has it'),
        ),
        ('import tensorflow.compat.v1 as tf\ntf.scalar_summary', 3, 'docs/tf1.md'),
        ('import tensorflow.compat.v1 as tf\ntf.float', 3, "did you mean 'float"),
        ('import tensorflow.compat.v1 as tf\ntf.int', 3, "did you mean '"),
        (
            "raise ImportError(\"cannot import name 'derivative' from 'scipy.misc'\")",
            2,
            'its release notes name the successor',
        ),
        ('import tensorflow.compat.v1 as tf\ntf.nn.bais_add', 3, "did you mean 'bias_add'?"),
        ('from tensorflow.compat.v1 import placehodler', 2, "did you mean 'placeholder'?"),
        (
            'import cifar10.tutorial.cifar10_input as c\nc.distored_inputs',
            3,
            "did you mean 'distorted_inputs'? The tutorial's module has no such name. If the program came with its own copy",
        ),
        (
            'raise AttributeError("tf.contrib.model_pruning is not in this TensorFlow")',
            2,
            'TensorFlow 1.15 may have it',
        ),
        (
            'import tensorflow.compat.v1 as tf\nwith tf.Graph().as_default(), tf.Session() as s:\n  a = tf.zeros([])\n  s.run(a, a)',
            5,
            'write run([a, b])',
        ),
        (
            'import tensorflow.compat.v1 as tf\nwith tf.Graph().as_default(), tf.Session() as s:\n  a = tf.zeros([])\n  s.run(a, [a])',
            5,
            'write run([a, b])',
        ),
        (
            'import tensorflow.compat.v1 as tf\nimport numpy as np\nwith tf.Graph().as_default(), tf.Session() as s:\n'
            '  s.run(tf.zeros([]), np.zeros(2))',
            5,
            'write run([a, b])',
        ),
        (
            'import tensorflow.compat.v1 as tf\nwith tf.Graph().as_default(), tf.Session() as s:\n  a = tf.zeros([])\n'
            '  s.run(a if a > 0 else a)',
            5,
            'write `is not None`',
        ),
        ('import tensorflow.compat.v1 as tf\ntf.error', 3, "did you mean 'errors'?"),
        (
            'import cifar10.tutorial.cifar10_input as c\nc.distorted_inputs2',
            3,
            "'? The tutorial's module has no such name. If",
        ),
        (
            'get_ipython().run_line_magic("matplotlib", "inline")',
            2,
            'this line is of a notebook: remove it',
        ),
        ('import sys\nprint >>sys.stderr, "x"', 3, TO_PYTHON_3),
        ('raise ModuleNotFoundError("No module named \'scipy\'")', 2, 'pip install scipy'),
        ('raise ModuleNotFoundError("No module named \'PIL\'")', 2, 'pip install pillow'),
        (
            'import tensorflow.compat.v1 as tf\nwith tf.Graph().as_default():\n  bool(tf.constant(1))',
            4,
            'write `is not None`',
        ),
        (
            'raise AttributeError("`conv2d` is not available with Keras 3.")',
            2,
            'pip install tf_keras',
        ),
        ('import cifar10.my_network', 2, '--own-modules'),
        (
            'import a_package_that_nobody_has.part',
            2,
            'put a_package_that_nobody_has.py beside the program',
        ),
        ('import cifar10\ncifar10.my_network', 3, "; the tutorial's module has no such name. If"),
        ('from cifar10 import my_network', 2, '--own-modules'),
        ('import cifar10\ncifar10.inference()', 3, "the tutorial's function differs. If"),
        (
            'from absl import flags\nflags.FLAGS(["x", "--nix"])',
            3,
            'its own --help may list the flags',
        ),
    ],
)
def test_the_place_and_the_remedy(tmp_path, text, line, remedy):
    message = _explain(text, tmp_path)
    assert message.startswith('%s:%d: ' % (tmp_path / 'program.py', line))
    assert remedy in message and '\n' not in message and len(message) < 400


@pytest.mark.skipif(tensorflow.__version__ < '2', reason='this TensorFlow has tf.contrib')
@pytest.mark.parametrize(
    'name, remedy',
    [
        (
            'layers.xavier_initialiser',
            "did you mean 'xavier_initializer'? If not, pip install tf_slim tf_keras",
        ),
        ('slim.arg_scope', 'pip install tf_slim tf_keras'),
        ('rnn', 'docs/tf1.md has a remedy for this name'),
    ],
)
def test_names_of_contrib(tmp_path, name, remedy):
    try:
        message = _explain(
            'from cifar10.tutorial import contrib\ncontrib.install().' + name, tmp_path
        )
    finally:
        for module in [module for module in sys.modules if module.startswith('tensorflow.contrib')]:
            del sys.modules[module]
    assert message == '%s:3: AttributeError: tf.contrib.%s is not in this TensorFlow; %s' % (
        tmp_path / 'program.py',
        name,
        remedy,
    )


def test_a_user_error_gets_the_place(tmp_path):
    message = _explain(
        'from cifar10.data import verification\nverification.check_file("nix.bin")', tmp_path
    )
    assert message.startswith('%s:3: nix.bin is missing' % (tmp_path / 'program.py'))


def test_other_errors_keep_their_traceback(tmp_path):
    in_py_func = (
        'import numpy as np\nimport tensorflow.compat.v1 as tf\ndef f(x):\n  if x > 0:\n    return x\n'
        'with tf.Graph().as_default(), tf.Session() as s:\n  s.run(tf.py_func(f, [np.ones(2)], tf.float64))'
    )
    for text in (
        'raise ValueError(3)',
        '1 / 0',
        'my_name',
        '{}["key"]',
        'def train(): pass\ntrain(3)',
        in_py_func,
    ):
        assert _explain(text, tmp_path) is None


def test_a_name_that_is_only_like_one(tmp_path):
    for text in (
        'import tensorflow.compat.v1 as tf\ntf.saver',
        'import os\nos.nix',
        'file',
        'raise SyntaxError("my own")',
        'import ast\nast.literal_eval("1 +")',
    ):
        assert _explain(text, tmp_path) is None


def _explain_syntax(path, text):
    path.write_bytes(text)
    with pytest.raises(SyntaxError) as caught:
        compile(text, str(path), 'exec')
    return error_hints.explain(caught.value, str(path.parent))


@pytest.mark.parametrize(
    'text',
    [
        'print 3',
        'print "step %d" % (x,',
        'if 1:\n  raise ValueError, "a"',
        'try:\n  pass\nexcept (A, B), error:\n  pass',
        'x <> y',
        'x = `y`',
        'x = 0777',
        'x = 10L',
        'x = 0xffL',
        'if x: print "a"',
        'x = 1; print x',
        'if x: raise ValueError, "a"',
        'def f(a, (b, c)): pass',
        'def f((a, b), c): pass',
        'lambda (a, b): a',
        'exec "x"',
    ],
)
def test_syntax_of_python_2(tmp_path, text):
    assert 'this is Python 2: convert' in _explain_syntax(tmp_path / 'program.py', text.encode())


@pytest.mark.parametrize(
    'text',
    [
        'print("step %d" % (x)',
        'print(x)))',
        'x = \u201ca\u201d',
        '  x = 1\n y = 2',
        'raise ValueError("a"',
        'print("a <> `b`"',
        'x = (',
        'def f(x=(1, 2): pass',
        'def f(x): return g((1, 2)',
        'def f(a, b) return (a, (b))',
        '```python\nx',
        'optimizer(0.01',
        'f(stddev=5e-04, wd=0.0',
        'x = [0.01, 2019-01-02',
        'print("It is `x`',
        'def f(x, shape=((1, 2), (3, 4)): pass',
        'open("C:\\Users")',
    ],
)
def test_other_syntax_errors_are_not_those_of_python_2(tmp_path, text):
    assert _explain_syntax(tmp_path / 'program.py', text.encode()) is None


def test_another_encoding(tmp_path):
    message = _explain_syntax(tmp_path / 'program.py', 'x = "\u00e9"\n'.encode('latin-1'))
    assert (
        message.startswith('%s:' % (tmp_path / 'program.py'))
        and 'save the file as UTF-8, or name its encoding' in message
    )


def test_an_error_without_a_frame_in_the_directory(tmp_path):
    assert error_hints.explain(UserError('A line'), str(tmp_path)) == 'A line'
