"""Updates of the optimizers against NumPy; Muon against singular value decompositions."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import muon, network, optimizer
from cifar10.config import CLASSIC
from tests.machine import numpy_network

HPARAMS = dataclasses.replace(
    CLASSIC, optimizer='muon', initial_learning_rate=0.1, momentum=0.8, matrix_learning_rate=0.01
)


@pytest.mark.parametrize(
    'count, shape', [(1, (75, 64)), (1, (1600, 64)), (6, (2304, 64)), (3, (384, 64)), (2, (9, 1))]
)
def test_orthogonalize(count, shape):
    """The blocks of the network's hidden layers."""
    matrices = np.random.RandomState(0).randn(count, *shape)
    if shape[1] == 64:  # singular values over three orders of magnitude
        matrices = matrices @ np.diag(np.logspace(-2, 1, 64))
    with tf.Session() as session:
        found = session.run(
            muon.orthogonalize(
                [tf.constant(matrix, tf.float32) for matrix in matrices], shape[0] ** -0.5
            )
        )
    assert len(found) == count
    for actual, matrix in zip(found, matrices):
        np.testing.assert_allclose(actual, numpy_network.orthogonalize(matrix), atol=2e-4)
        before, after = [np.linalg.svd(x, compute_uv=False) for x in (matrix, actual)]
        num_large = (before > 0.018 * np.linalg.norm(matrix)).sum()
        assert after[0] < 1.203 and after[num_large - 1] > 0.68


def test_zeros_stay_zeros():
    with tf.Session() as session:
        (found,) = session.run(muon.orthogonalize([tf.zeros([5, 3])], 1.0))
    assert not found.any()


SHAPES = {
    'conv2/weights': [2, 2, 20, 64],
    'conv2/biases': [64],
    'local3/weights': [100, 128],
    'local4/weights': [70, 65],
    'softmax_linear/weights': [30, 10],
}


def test_which_variables_are_hidden_weights():
    """All matrices and kernels but the weights of the output: those of the network, or the last."""
    shapes = [[30, 10], [5, 5, 3, 8], [8], [20, 30]]
    variables = [tf.get_variable(f'v{i}', shape) for i, shape in enumerate(shapes)]
    assert list(map(muon._is_hidden, variables)) == [True, True, False, False]
    tf.add_to_collection(network.OUTPUT_WEIGHTS, variables[0])
    assert list(map(muon._is_hidden, variables)) == [False, True, False, True]


@pytest.mark.parametrize(
    'chosen, device, use_resource, rms',
    [
        ('gradient_descent', '/cpu:0', True, 0.2),
        ('momentum', '/cpu:0', True, 0.2),
        ('muon', '/cpu:0', True, 0.7),
        ('muon', '/cpu:0', False, 0.2),
        ('muon', '/gpu:0', True, 0.2),
        ('muon', '/gpu:0', False, 0.7),
    ],
)
def test_steps(chosen, device, use_resource, rms):
    """With Muon, hidden weights get orthogonal momentum in blocks of columns, and keep their size.

    Biases and the output layer get momentum. Soft placement computes the graph for a GPU on a CPU.
    """
    hparams = dataclasses.replace(HPARAMS, optimizer=chosen, matrix_weight_rms=rms)
    rng = np.random.RandomState(0)
    expected = {name: rng.randn(*shape) for name, shape in SHAPES.items()}
    factors = {name: rng.randn(*shape) for name, shape in SHAPES.items()}
    with tf.device(device):
        variables = {
            name: tf.get_variable(
                name, initializer=value.astype(np.float32), use_resource=use_resource
            )
            for name, value in expected.items()
        }
    rate = tf.placeholder(tf.float32, [])
    update = optimizer.create(rate, hparams).apply_gradients(
        [(variables[name] * factors[name].astype(np.float32), variables[name]) for name in SHAPES]
    )
    momenta = dict.fromkeys(SHAPES, 0)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        for factor in (1.0, 0.5, 2.0):
            session.run(update, {rate: 0.1 * factor})
            for name, value in expected.items():
                values = value, value * factors[name], momenta[name]
                expected[name], momenta[name] = numpy_network.update(
                    name, values, hparams, 0.1 * factor
                )
            for name, value in session.run(variables).items():
                np.testing.assert_allclose(value, expected[name], atol=2e-4, err_msg=name)
