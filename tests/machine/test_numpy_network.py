"""Formulations in NumPy against TensorFlow in float64."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import model, optimizer
from cifar10.config import CLASSIC, FAST
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


@pytest.mark.parametrize('smoothing, decay', [(0.0, 0.0), (0.1, 0.004)])
def test_gradients_of_the_loss(smoothing, decay):
    images, labels = RNG.normal(size=[4, 24, 24, 3]), np.array([3, 0, 9, 3])
    hparams = dataclasses.replace(CLASSIC, fc_weight_decay=decay, label_smoothing=smoothing)
    loss = model.loss(
        model.inference(tf.constant(images), hparams=hparams), labels, hparams=hparams
    )
    variables = {variable.op.name: variable for variable in tf.trainable_variables()}
    gradients = dict(zip(variables, tf.gradients(loss, list(variables.values()))))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for variable in variables.values():
            variable.load(RNG.normal(0, 0.05, variable.shape.as_list()), session)
        found, values = session.run([gradients, variables])
    expected = numpy_network.loss_gradients(images, labels, values, hparams)
    assert set(expected) == set(found) == set(variables)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize('recipe', [CLASSIC, FAST])
@pytest.mark.parametrize(
    'name', ['conv2/weights', 'local4/weights', 'local4/biases', 'softmax_linear/weights']
)
def test_updates(recipe, name):
    """In TensorFlow, in float32."""
    shape = {'conv2/weights': [5, 5, 8, 64], 'local4/weights': [200, 128]}.get(name, [12])
    value, gradient = 0.05 * RNG.normal(size=shape), RNG.normal(size=shape)
    variable = tf.get_variable(name, initializer=value.astype(np.float32))
    opt = optimizer.create(tf.constant(0.02), recipe)
    update = opt.apply_gradients([(tf.constant(gradient, tf.float32), variable)])
    momentum = np.zeros(shape)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            expected = numpy_network.updated_weights(
                name, (value, gradient, momentum), recipe, 0.02
            )
            session.run(update)
            found = session.run(variable)
            assert np.linalg.norm(found - expected) < 1e-4 * np.linalg.norm(expected - value)
            value, momentum = found.astype(float), recipe.momentum * momentum + gradient
