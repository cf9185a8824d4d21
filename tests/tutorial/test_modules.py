"""Digests of the tutorial's functions."""

import pytest

from cifar10.tutorial import modules

FUNCTION = '''import os
def inputs(data_dir):
  """Makes batches."""
  size = 24  # pixels
  if data_dir:
    return (data_dir, "data", list(xrange(2)),
            size)
'''
REFORMATTED = '''

def inputs(data_dir):
    size = 24
    """A second string
    in place of a comment."""

    if data_dir:
        # It may be None.
        """A string in place of a comment."""
        return (data_dir, 'data', list(range(2)), size)
def others(): pass
'''


def test_the_layout_of_a_function_does_not_count():
    digests = modules.function_digests(REFORMATTED.encode())
    assert modules.function_digests(FUNCTION.encode()) == {'inputs': digests['inputs']} and set(
        digests
    ) == {'inputs', 'others'}


def test_each_change_of_a_function_counts():
    changes = [
        ('', ''),
        ('24', '32'),
        ('24', "'24'"),
        ('if', 'if not'),
        ('    return', '    pass\n  return'),
    ]
    texts = [FUNCTION.replace(before, after) for before, after in changes]
    assert len({modules.function_digests(text.encode())['inputs'] for text in texts}) == len(texts)


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
        ('', '', None),
        ('tf.multiply', 'tf.mul', None),
        ('cpu:0', 'gpu:0', 'changes _variable_on_cpu'),
        ('l2_loss(var), wd', 'l2_loss(var), 2 * wd', 'changes _variable_with_weight_decay'),
        ('def _', 'print "Python 2"\ndef _', 'has a syntax error in line 2 (Missing parentheses'),
        ('tf\n', 'tf\n\0', 'has a syntax error'),
    ],
)
def test_the_difference_from_the_published_functions(tmp_path, before, after, difference):
    path = tmp_path / 'cifar10.py'
    path.write_text(PUBLISHED.replace(before, after, 1))
    found = modules._difference(str(path))
    assert (
        found == difference
        or difference
        and found.startswith(difference)
        and '<unknown>' not in found
    )
