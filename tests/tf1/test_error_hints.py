"""Hints: one line with the place and the remedy."""

import sys

import numpy as np
import pytest
import tensorflow

from cifar10.errors import UserError
from cifar10.tf1 import error_hints

TO_PYTHON_3 = 'convert the program with 2to3'
TF = 'import tensorflow.compat.v1 as tf\n'
INPUT = 'import cifar10.tutorial.cifar10_input as c\n'
only_with_2 = pytest.mark.skipif(tensorflow.__version__ < '2', reason='1.15 has tf.contrib')


def _explain(text, directory):
    program = directory / 'program.py'
    program.write_text('# a program\n' + text + '\n')
    try:
        exec(compile(program.read_text(), str(program), 'exec'), {})
    except Exception as error:
        return error_hints.find_hint(error, str(directory))
    raise AssertionError('no error')


@pytest.mark.parametrize(
    'text, line, hint',
    [
        ('print "step"', 2, TO_PYTHON_3),
        ('\ntry:\n  x = 1\nexcept ValueError, error:\n  pass', 5, TO_PYTHON_3),
        ('def f():\n  return xrange(3)\nf()', 3, TO_PYTHON_3),
        ('import cPickle', 2, TO_PYTHON_3),
        ('{}.iteritems()', 2, TO_PYTHON_3),
        ('import urllib\nurllib.urlretrieve()', 3, TO_PYTHON_3),
        ('open(__import__("os").devnull, "w", 0)', 2, TO_PYTHON_3),
        ('import sys\nprint >>sys.stderr, "x"', 3, TO_PYTHON_3),
        pytest.param(
            'import numpy as np\nnp.float',
            3,
            "'float'; NumPy has removed this name",
            marks=pytest.mark.skipif(hasattr(np, 'float'), reason='this NumPy has it'),
        ),
        pytest.param('import tensorflow.contrib.learn', 2, 'docs/tf1.md', marks=only_with_2),
        (TF + 'tf.random.set_seed(1)', 3, '; TensorFlow 2 has it: tf.compat.v2.random.set_seed'),
        (
            'from tensorflow.compat.v1 import optimizers',
            2,
            '; TensorFlow 2 has it: tf.compat.v2.optimizers',
        ),
        (
            'import tensorflow.compat.v1.optimizers',
            2,
            '; TensorFlow 2 has it: tf.compat.v2.optimizers',
        ),
        (
            TF + 'tf.metrics.Accuracy()',
            3,
            "'Accuracy'; TensorFlow 2 has it: tf.compat.v2.metrics.Accuracy",
        ),
        (TF + 'tf.scalar_summary', 3, 'docs/tf1.md'),
        (TF + 'tf.nn.bais_add', 3, "did you mean 'bias_add'? docs/tf1.md"),
        ('from tensorflow.compat.v1 import placehodler', 2, "did you mean 'placeholder'?"),
        (TF + 'with tf.Graph().as_default():\n  bool(tf.constant(1))', 4, 'write `is not None`'),
        ('raise AttributeError("`conv2d` is not available with Keras 3.")', 2, 'tf_keras'),
        (
            'get_ipython().run_line_magic("matplotlib")',
            2,
            'this line is from a notebook: remove it',
        ),
        (
            "raise ImportError(\"cannot import name 'a' from 'scipy.misc'\")",
            2,
            'see its release notes',
        ),
        ('raise ModuleNotFoundError("No module named \'PIL\'")', 2, 'pip install pillow'),
        ('import a_package_that_nobody_has.part', 2, 'put this module beside the program'),
        (INPUT + 'c.distored_inputs', 3, "did you mean 'distorted_inputs'? the tutorial's module"),
        ('import cifar10.my_network', 2, "the program needs its author's copy beside it"),
        ('import cifar10\ncifar10.my_network', 3, "; the tutorial's module has no such name: the"),
        (
            'import cifar10\ncifar10.inference()',
            3,
            "the tutorial's function differs: the program needs",
        ),
        ('from absl import flags\nflags.FLAGS(["x", "--nix"])', 3, '; --help may list'),
        (
            TF + "define = tf.flags.DEFINE_string\nfor _ in 'ab':\n  define('my_flag', '', '')",
            5,
            '; give one of the two flags another name',
        ),
        ('import numpy as np\nnp.ones(8 / 2)', 3, 'write 8 // 2, or int(...), for an integer'),
        ('[1, 2][: 2 / 2]', 2, 'write 8 // 2'),
        ('import numpy as np\nrange(np.ceil(1.5))', 3, 'int(...)'),
        (
            TF
            + 'with tf.Graph().as_default():\n  for _ in range(2):\n    tf.get_variable("w", [1])',
            5,
            'ValueError: Variable w already exists, disallowed; give it another name; share it with ',
        ),
        ('{}.keys().sort()', 2, 'list(...)'),
        ('[].sort(cmp=max)', 2, 'Python 2'),
        ('import numpy as np\nnp.nix', 3, 'release notes'),
        (
            'import os, pickle\nwith open(os.devnull, "w") as file:\n  pickle.dump(1, file)',
            4,
            "open(path, 'wb')",
        ),
        ('zip([1], [2])[0]', 2, 'write list(...) around it'),
        ('range(3) + [1]', 2, 'write list(...) around it'),
        (TF + 'tf.constant(map(int, "12"))', 3, 'write list(...) around it'),
        (
            'import pickle\npickle.loads(b"\\x80\\x02U\\x01\\xffq\\x00.")',
            3,
            "encoding='latin1'",
        ),
        ('"a".decode("utf-8")', 2, 'delete .decode()'),
        ('import numpy as np\nfloat(np.ones([2]))', 3, 'write array.item()'),
        pytest.param(
            'import numpy as np\nnp.array([[1], [1, 2]])',
            3,
            'dtype=object',
            marks=pytest.mark.skipif(np.__version__ < '1.24', reason='this NumPy makes an array'),
        ),
        (
            'from cifar10.data import verification\nverification.check_file("nix.bin")',
            3,
            'nix.bin is missing',
        ),
    ],
)
def test_the_place_and_the_hint(tmp_path, text, line, hint):
    message = _explain(text, tmp_path)
    assert message.startswith(f'{tmp_path / "program.py"}:{line}: ')
    assert hint in message and '\n' not in message and len(message) < 400


@only_with_2
@pytest.mark.parametrize(
    'name, hint',
    [
        ('layers.xavier_initialiser', "did you mean 'xavier_initializer'? More names: pip install"),
        ('slim.arg_scope', 'More names: pip install tf_slim'),
        ('framework.arg_scope', 'More names: pip install tf_slim'),
        ('framework.fuse_op', 'docs/tf1.md has remedies for removed names'),
        ('layers.embed_sequence', 'docs/tf1.md has remedies for removed names'),
    ],
)
def test_names_of_contrib(tmp_path, name, hint):
    try:
        text = 'from cifar10.tf1 import contrib\ncontrib.install().' + name
        message = _explain(text, tmp_path)
    finally:
        for module in [module for module in sys.modules if module.startswith('tensorflow.contrib')]:
            del sys.modules[module]
    assert message.startswith(
        f'{tmp_path / "program.py"}:3: AttributeError: tf.contrib.{name} is not in this TensorFlow; {hint}'
    )


def test_slim_is_not_the_remedy_if_it_is_installed(tmp_path, monkeypatch):
    (tmp_path / 'tf_slim.py').write_text('')
    monkeypatch.syspath_prepend(str(tmp_path))
    message = _explain('raise AttributeError("tf.contrib.slim.nix is not in this")', tmp_path)
    assert '; docs/tf1.md has remedies' in message and 'pip install' not in message


@pytest.mark.parametrize(
    'module, remedy',
    [
        ('imghdr', 'Python has removed this module: pip install standard-imghdr'),
        ('telnetlib', 'Python has removed this module: pip install standard-telnetlib'),
        ('cgi', 'Python has removed this module: pip install legacy-cgi'),
        ('imp', 'Python has removed this module: replace it by importlib, or pip install zombie-'),
        ('distutils.core', 'Python has removed this module: pip install setuptools'),
        ('nis', 'Python has removed this module: use Python 3.12, which has it'),
        ('important', 'put this module beside the program'),
        ('pkg_resources', 'pip install "setuptools<82"'),
        ('google.colab', 'it exists on Google Colab only: remove the lines that use it, and give'),
        ('google.cloud', 'put this module beside the program'),
    ],
)
def test_missing_modules(tmp_path, module, remedy):
    """The error is raised here, because the Python or its environment may have the module."""
    message = _explain(f'raise ImportError("No module named {module!r}")', tmp_path)
    assert f"No module named '{module}'; {remedy}" in message


@pytest.mark.parametrize(
    'line',
    ['from google.colab import drive', 'import google.colab.files', 'from google import colab'],
)
def test_google_colab(tmp_path, line):
    """`google` is a package, of protobuf, or there is none."""
    assert 'it exists on Google Colab only: remove' in _explain(line, tmp_path)


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
        'print "step %d" % (x,',
        'if x: print "a"',
        'if x: raise ValueError, "a"',
        'try:\n  pass\nexcept (A, B), error:\n  pass',
        'x <> y',
        'x = `y`',
        'x = 0777',
        'x = 0xffL',
        'x = ur"a"',
        'def f(a, (b, c)): pass',
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
        'x = \u201ca\u201d',
        'print("a <> `b`"',
        'def f(x): return g((1, 2)',
        '```python\nx',
        'f(stddev=5e-04, wd=0.0',
        'print("It is `x`',
        'def f(x, shape=((1, 2), (3, 4)): pass',
        'open("C:\\Users")',
    ],
)
def test_other_syntax_errors_are_not_those_of_python_2(tmp_path, text):
    assert _explain_syntax(tmp_path / 'program.py', text.encode()) is None


def test_a_package_that_is_installed_in_the_directory(tmp_path):
    path = tmp_path / 'site-packages' / 'package.py'
    path.parent.mkdir()
    path.write_text('import cPickle')
    message = _explain(f'exec(compile("import cPickle", {str(path)!r}, "exec"))', tmp_path)
    assert message.startswith(f'{tmp_path / "program.py"}:2: ')


def test_an_error_without_a_frame_in_the_directory(tmp_path):
    assert error_hints.find_hint(UserError('A line'), str(tmp_path)) == 'A line'


def test_other_hints_for_syntax_errors(tmp_path):
    message = _explain_syntax(tmp_path / 'program.py', 'x = "\u00e9"\n'.encode('latin-1'))
    assert 'save the file as UTF-8, or name its encoding' in message
    mixed = _explain_syntax(tmp_path / 'program.py', b'if 1:\n        x = 1\n\ty = 2\n')
    assert mixed.endswith('in Python 2, a tab was 8 spaces: replace each one (expand -t 8)')
    for line in (b'%matplotlib inline', b'!pip install tqdm'):
        hint = _explain_syntax(tmp_path / 'program.py', line + b'\nx = 1\n')
        assert hint.endswith('; this line is from a notebook: remove it')


def test_only_slips_of_the_keyboard_are_corrected(tmp_path):
    for name in ('get_step', 'RegisterShapeFunction', 'ServerSpec'):
        assert 'did you mean' not in _explain(TF + f'tf.train.{name}', tmp_path)
