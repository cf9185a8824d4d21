"""One line with the place and the remedy, for what cannot work."""
import numpy as np
import pytest
import tensorflow

from cifar10.errors import UserError
from cifar10.tutorial import remedies

TO_PYTHON_3 = 'convert the program with 2to3'


def _explain(text, directory):
    program = directory / 'program.py'
    program.write_text('# a program\n' + text + '\n')
    try:
        exec(compile(program.read_text(), str(program), 'exec'), {})
    except Exception as error:
        return remedies.explain(error, str(directory))
    raise AssertionError('no error')


@pytest.mark.parametrize('text, line, remedy', [
    ('print "step"', 2, TO_PYTHON_3),
    ('\ntry:\n  x = 1\nexcept ValueError, error:\n  pass', 5, TO_PYTHON_3),
    ('def f():\n  return xrange(3)\nf()', 3, TO_PYTHON_3),
    ('import cPickle', 2, TO_PYTHON_3),
    ('{}.iteritems()', 2, TO_PYTHON_3),
    ('import urllib\nurllib.urlretrieve()', 3, TO_PYTHON_3),
    ('open(__import__("os").devnull, "w", 0)', 2, TO_PYTHON_3),
    pytest.param('import numpy as np\nnp.float', 3, 'write float without np.', marks=pytest.mark.skipif(
        hasattr(np, 'float'), reason='this NumPy has it')),
    pytest.param('import tensorflow.contrib.learn', 2, 'docs/tf1.md', marks=pytest.mark.skipif(
        tensorflow.__version__ < '2', reason='this TensorFlow has it')),
    ('import tensorflow.compat.v1 as tf\ntf.scalar_summary', 3, 'docs/tf1.md'),
    ('import tensorflow.compat.v1 as tf\nwith tf.Graph().as_default():\n  bool(tf.constant(1))', 4, 'write `is not None`'),
    ('raise AttributeError("`conv2d` is not available with Keras 3.")', 2, 'pip install tf_keras'),
    ('import cifar10.my_network', 2, '--own-modules'),
    ('import a_package_that_nobody_has.part', 2, 'put a_package_that_nobody_has.py beside the program'),
    ('import cifar10\ncifar10.my_network', 3, '--own-modules'),
    ('from cifar10 import my_network', 2, '--own-modules'),
    ('import cifar10\ncifar10.inference()', 3, '--own-modules'),
    ('from absl import flags\nflags.FLAGS(["x", "--nix"])', 3, 'its own --help may list the flags')])
def test_the_place_and_the_remedy(tmp_path, text, line, remedy):
    told = _explain(text, tmp_path)
    assert told.startswith('%s:%d: ' % (tmp_path / 'program.py', line))
    assert remedy in told and '\n' not in told and len(told) < 400


def test_a_user_error_gets_the_place(tmp_path):
    told = _explain('from cifar10.data import verification\nverification.check_file("nix.bin")', tmp_path)
    assert told.startswith('%s:3: nix.bin is missing' % (tmp_path / 'program.py'))


def test_other_errors_keep_their_traceback(tmp_path):
    for text in ('raise ValueError(3)', '1 / 0', 'my_name', '{}["key"]',
                 'def train(): pass\ntrain(3)'):
        assert _explain(text, tmp_path) is None


def test_a_name_that_is_only_like_one(tmp_path):
    for text in ('import os\nos.nix', 'file', 'raise SyntaxError("my own")', 'import ast\nast.literal_eval("1 +")'):
        assert _explain(text, tmp_path) is None


@pytest.mark.parametrize('text, remedy', [
    (b'print 3\n', 'this is Python 2: convert'), (b'x = (\n', 'correct it, or convert'),
    ('x = "é"\n'.encode('latin-1'), 'save the file as UTF-8, or name its encoding')])
def test_syntax(tmp_path, text, remedy):
    path = tmp_path / 'program.py'
    path.write_bytes(text)
    with pytest.raises(SyntaxError) as caught:
        compile(text, str(path), 'exec')
    told = remedies.explain(caught.value, str(tmp_path))
    assert told.startswith('%s:' % path) and remedy in told


def test_an_error_without_a_frame_in_the_directory(tmp_path):
    assert remedies.explain(UserError('A line'), str(tmp_path)) == 'A line'
