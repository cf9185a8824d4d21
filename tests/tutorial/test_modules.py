"""Differences of a copy from the published modules."""

import pytest

from cifar10.tutorial import modules

PUBLISHED = '''import tensorflow as tf
def _variable_on_cpu(name, shape, initializer):
  """Helper to create a Variable stored on CPU memory."""
  with tf.device('/cpu:0'):
    var = tf.get_variable(name, shape, initializer=initializer)
  return var

def _variable_with_weight_decay(name, shape, stddev, wd):
  var = _variable_on_cpu(name, shape,
                         tf.truncated_normal_initializer(stddev=stddev))
  if wd:
    weight_decay = tf.multiply(tf.nn.l2_loss(var), wd, name='weight_loss')
    tf.add_to_collection('losses', weight_decay)
  return var
'''


@pytest.mark.parametrize(
    'before, after, difference',
    [
        ('', '', ''),
        ('tf.multiply', 'tf.mul', ''),
        ("'/cpu:0'", '"/cpu:0"', ''),
        ('  return var\n', '  # A comment.\n  """A string."""\n\n  return (var)\n', 'changes _var'),
        (
            '  return var\n',
            '\n  # A comment.\n  """A string."""\n  return var\n"""Another"""\n',
            '',
        ),
        ('cpu:0', 'gpu:0', 'changes _variable_on_cpu'),
        ("'/cpu:0'", 'cpu', 'changes _variable_on_cpu'),
        ('  return', '  pass\n  return', 'changes _variable_on_cpu'),
        ('l2_loss(var), wd', 'l2_loss(var), 2 * wd', 'changes _variable_with_weight_decay'),
        ('def _', 'print "Python 2"\ndef _', 'has a syntax error: Missing parentheses'),
        ('tf\n', 'tf\n\0', 'has a syntax error: '),
        ('tf\n', 'tf\ndef net(): pass\nNUM_CLASSES = 7\n', 'has net and sets NUM_CLASSES = 7'),
        (
            'tf\n',
            'tf\ntf.app.flags.DEFINE_integer("batch_size", 64, "")\n'
            'cifar10_input.IMAGE_SIZE = 32\nparser.add_argument("-n", "--epochs", default=3)\n',
            'sets IMAGE_SIZE = 32, --batch_size=64, --epochs=3',
        ),
        ('tf\n', 'tf\nIMAGE_SIZE = 24\nf.DEFINE_string("data_dir", "/tmp/cifar10_data")\n', ''),
        ('tf\n', 'tf\nf.DEFINE_string("data_dir", default_value="/d")\n', 'sets --data_dir=/d'),
    ],
)
def test_the_difference_from_the_published_functions(tmp_path, before, after, difference):
    path = tmp_path / 'cifar10.py'
    path.write_text(PUBLISHED.replace(before, after, 1))
    found = modules._describe_difference(str(path))
    assert found == difference or difference and found.startswith(difference), found


def test_the_copies_beside_a_program(tmp_path):
    """The program may have the name of a module."""
    paths = [tmp_path / name for name in ('cifar10.py', 'cifar10_input.py')]
    for path in paths:
        path.touch()
    assert modules._find_copies(str(paths[0])) == {str(paths[1]): 'cifar10_input'}
