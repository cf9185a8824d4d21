"""Formulations in NumPy against TensorFlow in float64."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tests.machine import numpy_network

RNG = np.random.RandomState(0)


@pytest.mark.parametrize(
    'name, function, shapes',
    [
        ('conv2d', lambda *x: tf.nn.conv2d(*x, 1, 'SAME'), [(3, 7, 6, 5), (5, 5, 5, 4)]),
        ('max_pool', lambda x: tf.nn.max_pool(x, 3, 2, 'SAME'), [(3, 12, 8, 5)]),
        ('matmul', tf.matmul, [(3, 5), (5, 4)]),
    ],
)
def test_operations(name, function, shapes):
    arguments = [RNG.normal(size=shape) for shape in shapes]
    expected = getattr(numpy_network, name)(*arguments)
    dy = RNG.normal(size=expected.shape)
    tensors = [tf.constant(x) for x in arguments]
    result = function(*tensors)
    with tf.Session() as session:
        found = session.run([result, *tf.gradients(result, tensors, tf.constant(dy))])
    gradients = getattr(numpy_network, name + '_gradients')(dy, *arguments)
    assert len(found) == 1 + len(gradients)
    for value, right in zip(found, [expected, *gradients]):
        np.testing.assert_allclose(value, right, rtol=1e-12, atol=1e-12)
