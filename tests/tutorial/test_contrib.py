"""Layers of tf.contrib against NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.tutorial import contrib


def _run(*fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


def test_conv2d_and_fully_connected():
    x = np.random.RandomState(0).normal(size=[2, 3, 3, 4]).astype(np.float32)
    convolved = contrib.conv2d(
        tf.constant(x), 5, [1, 1], weights_regularizer=contrib.l2_regularizer(0.5)
    )
    product = contrib.fully_connected(
        contrib.flatten(convolved), 6, activation_fn=None, scope='last'
    )
    variables = {variable.op.name: variable for variable in tf.trainable_variables()}
    assert list(variables) == ['Conv/weights', 'Conv/biases', 'last/weights', 'last/biases']
    weights, last = variables['Conv/weights'], variables['last/weights']
    (penalty,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    convolved, product, weights, last, penalty = _run(convolved, product, weights, last, penalty)
    np.testing.assert_allclose(convolved, np.maximum(x @ weights[0, 0], 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(product, convolved.reshape(2, 45) @ last, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(penalty, 0.25 * (weights**2).sum(), rtol=1e-5)
    assert np.abs(last).max() <= (6 / (45 + 6)) ** 0.5  # Glorot and Bengio's bound


def test_pools():
    x = tf.constant(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1))
    layers = contrib._MODULES['contrib.layers']
    largest, mean = _run(layers['max_pool2d'](x, 2), layers['avg_pool2d'](x, [3, 3], 1))
    np.testing.assert_array_equal(largest[0, :, :, 0], [[5, 7], [13, 15]])
    np.testing.assert_array_equal(mean[0, :, :, 0], [[5, 6], [9, 10]])


def test_initializers_and_regularizers():
    he, uniform = contrib.variance_scaling_initializer(), contrib.xavier_initializer()
    values, bounded, l1 = _run(
        he([100, 300]),
        uniform([100, 200]),
        contrib.l1_regularizer(2.0)(tf.constant([1.0, -3.0])),
    )
    assert abs(values.std() - (2 / 100) ** 0.5) < 0.005
    assert 0.14 < np.abs(bounded).max() <= (6 / 300) ** 0.5
    assert l1 == 8


@pytest.mark.parametrize('in_place', [False, True])
def test_batch_norm(in_place):
    x = np.random.RandomState(1).normal(3, 2, [50, 4]).astype(np.float32)
    training = tf.placeholder(tf.bool, [])
    y = contrib.batch_norm(
        tf.constant(x),
        decay=0.9,
        scale=True,
        is_training=training,
        updates_collections=None if in_place else tf.GraphKeys.UPDATE_OPS,
    )
    names = [variable.op.name for variable in tf.global_variables()]
    assert names[2:] == ['BatchNorm/moving_mean', 'BatchNorm/moving_variance']
    assert [variable.op.name for variable in tf.trainable_variables()] == names[:2]
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == (0 if in_place else 2)
    averages = tf.global_variables()[2:]
    moved = 0.1 * x.mean(0), 0.9 + 0.1 * x.var(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for is_training, mean, variance in [(True, x.mean(0), x.var(0)), (False, *moved)]:
            found, _ = session.run([y, updates], {training: is_training})
            expected = (x - mean) / np.sqrt(variance + 0.001)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(session.run(averages), moved, rtol=1e-5)
