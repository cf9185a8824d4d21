"""Muon against singular value decompositions by NumPy."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import muon, network, optimizer
from cifar10.config import CLASSIC

HPARAMS = dataclasses.replace(
    CLASSIC,
    optimizer='muon',
    initial_learning_rate=0.1,
    momentum=0.8,
    matrix_learning_rate=0.01,
)


def orthogonalized(matrix):
    """Iterate s <- 3.4445 s - 4.7750 s^3 + 2.0315 s^5 three times on the singular values.

    They are first divided by their root sum of squares.
    """
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    start = s = s / np.sqrt((s**2).sum())
    for _ in range(3):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u @ (s[:, None] * v), start, s


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
        expected, start, s = orthogonalized(matrix)
        np.testing.assert_allclose(actual, expected, atol=2e-4)
        assert s.max() < 1.203 and s[start > 0.018].min() > 0.68


def test_zeros_stay_zeros():
    with tf.Session() as session:
        (found,) = session.run(muon.orthogonalize([tf.zeros([5, 3])], 1.0))
    assert not found.any()


@pytest.mark.parametrize('device, num_tall', [('/cpu:0', 22), ('/gpu:0', 8)])
def test_batched_products(graph, device, num_tall):
    """A CPU has two products per block, a GPU two per variable; the iterations are batched.

    The iterations have 11 products: on a CPU for each variable, on a GPU for all of them.
    """
    shapes = {
        'conv1': [5, 5, 3, 64],
        'conv2': [5, 5, 64, 64],
        'local3': [2304, 384],
        'local4': [384, 192],
        'softmax_linear': [192, 10],
    }
    with tf.device(device):
        variables = [tf.get_variable(layer + '/weights', shapes[layer]) for layer in shapes]
    optimizer.create(tf.constant(0.1), HPARAMS).apply_gradients(
        [(tf.zeros_like(variable), variable) for variable in variables]
    )
    products = [op for op in graph.get_operations() if 'MatMul' in op.type]
    square = [op for op in products if all(x.shape.as_list()[-2:] == [64, 64] for x in op.inputs)]
    assert len(products) - len(square) == num_tall
    assert len(square) == {'/cpu:0': 4 * 11, '/gpu:0': 11}[device]


SHAPES = {
    'conv2/weights': [2, 2, 20, 64],
    'conv2/biases': [64],
    'local3/weights': [100, 128],
    'local4/kernel': [70, 65],
    'softmax_linear/weights': [30, 10],
}
HIDDEN = 'conv2/weights', 'local3/weights', 'local4/kernel'


def test_which_variables_are_hidden_weights():
    """All matrices and kernels but the weights of the output: those of the network, or the last."""
    shapes = [[30, 10], [5, 5, 3, 8], [8], [20, 30]]
    variables = [tf.get_variable(f'v{i}', shape) for i, shape in enumerate(shapes)]
    assert list(map(muon._is_hidden, variables)) == [True, True, False, False]
    tf.add_to_collection(network.OUTPUT_WEIGHTS, variables[0])
    assert list(map(muon._is_hidden, variables)) == [False, True, False, True]


@pytest.mark.parametrize(
    'device, use_resource, rms',
    [
        ('/cpu:0', True, 0.7),
        ('/cpu:0', False, 0.2),
        ('/gpu:0', True, 0.2),
        ('/gpu:0', False, 0.7),
    ],
)
def test_steps_of_muon(device, use_resource, rms):
    """Hidden weights get orthogonal momentum in blocks of columns, and keep their size.

    Biases and the output layer get momentum. Soft placement computes the graph for a GPU on a CPU.
    """
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
    hparams = dataclasses.replace(HPARAMS, matrix_weight_rms=rms)
    update = optimizer.create(rate, hparams).apply_gradients(
        [(variables[name] * factors[name].astype(np.float32), variables[name]) for name in SHAPES]
    )
    velocities = dict.fromkeys(SHAPES, 0)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        for factor in (1.0, 0.5, 2.0):
            session.run(update, {rate: 0.1 * factor})
            for name, value in expected.items():
                gradient = value * factors[name]
                velocities[name] = 0.8 * velocities[name] + gradient
                step = gradient + 0.8 * velocities[name]
                if name in HIDDEN:
                    matrix = step.reshape(-1, step.shape[-1])
                    blocks = [
                        orthogonalized(block)[0]
                        for block in np.split(matrix, range(64, matrix.shape[1], 64), axis=1)
                    ]
                    orthogonal = np.concatenate(blocks, 1).reshape(step.shape) * np.sqrt(
                        len(matrix)
                    )
                    expected[name] = value - factor * 0.01 * orthogonal
                    expected[name] *= rms / np.sqrt((expected[name] ** 2).mean())
                else:
                    expected[name] = value - factor * 0.1 * step
            for name, value in session.run(variables).items():
                np.testing.assert_allclose(value, expected[name], atol=2e-4, err_msg=name)
