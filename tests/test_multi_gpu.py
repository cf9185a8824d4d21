"""Average of the gradients of towers."""

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu


def _variables():
    return [tf.get_variable(name, [2], tf.float32) for name in ('first', 'second', 'third')]


def test_average_gradients():
    first, second, third = _variables()
    averages = multi_gpu.average_gradients(
        [
            [(tf.constant(a), first), (None, second), (tf.constant(b), third)]
            for a, b in [
                ([1.0, 2.0], [0.0, 0.0]),
                ([3.0, 6.0], [1.0, 0.0]),
                ([2.0, 1.0], [5.0, 3.0]),
            ]
        ]
    )
    assert [variable for _, variable in averages] == [first, third]
    with tf.Session() as session:
        assert [session.run(gradient).tolist() for gradient, _ in averages] == [[2, 3], [2, 1]]


def test_towers_that_disagree():
    first, second, third = _variables()
    gradient = tf.constant([1.0, 2.0])
    for tower, complaint in [
        (
            [(gradient, first), (None, second)],
            r'The towers differ in .*: second, second\. A network must create',
        ),
        ([(gradient, first), (gradient, third)], 'The towers differ in .*: second, third'),
        (
            [(gradient, first), (tf.zeros([3]), second)],
            'shapes must be ',  # the message of TensorFlow
        ),
        ([(gradient, first)], 'The towers differ in .*: second, none'),
    ]:
        with pytest.raises(ValueError, match='(?i)' + complaint):
            multi_gpu.average_gradients([[(gradient, first), (gradient, second)], tower])
