"""docs/exercises.md: changed networks and training against NumPy, in one process."""

import dataclasses
import math
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import multi_gpu, network, optimizer
from cifar10.config import CLASSIC, RunLength
from cifar10.network import Network
from tests.helpers import checkouts
from tests.helpers.changed_networks import (
    AVERAGE,
    CREATE,
    DISTORT,
    INITIAL,
    NETWORKS,
    RATE,
    ROWS,
    SAMPLE,
    NumpyLayers,
    page_number,
    relu,
    residual_logits,
    statistics,
    write,
)

# The numbers of the page, and layers in NumPy


@pytest.mark.parametrize(
    'name, number',
    [
        *zip(list(NETWORKS)[1:5], (int(number) for _, number in ROWS)),
        ('residual', page_number('A residual network')),
        ('batch_norm', page_number("normalization in the book's network")),
        ('dropout', 1068298),
    ],
)
def test_numbers_of_parameters(tmp_path, name, number):
    trainable = Network(write(tmp_path, name)).graph(2).get_collection('trainable_variables')
    assert sum(variable.shape.num_elements() for variable in trainable) == number
    assert page_number('Larger crops') == 1068298 + (7 * 7 - 6 * 6) * 64 * 384


def _resnet(x, layer):
    """Return the logits of ResNet-20 (He et al., section 4.2, shortcuts of option A)."""
    x = relu(layer(x, 'conv'))
    for i in range(9):
        name, stride = f'group{i // 3 + 1}_block{i % 3 + 1}', 2 if i in (3, 6) else 1
        y = relu(layer(x, name + '/conv1', stride))
        y = layer(y, name + '/conv2')
        if stride == 2:
            zeros = np.zeros_like(y[..., : y.shape[3] // 4])
            x = np.concatenate([zeros, x[:, ::2, ::2], zeros], 3)
        x = relu(x + y)
    return layer.logits(x)


@pytest.mark.parametrize('is_training', [False, True])
@pytest.mark.parametrize('name, logits', [('residual', residual_logits), ('resnet', _resnet)])
def test_logits_and_statistics_equal_numpy(tmp_path, name, logits, is_training):
    """Of batches of two sizes. resnet has the unbiased variance, as the kernel of cuDNN."""
    images = tf.placeholder(tf.float32, [None, 24, 24, 3])
    path = write(tmp_path, name) if name in NETWORKS else name
    found = Network(path).inference(images, is_training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    variables, rng = network.variables(), np.random.RandomState(0)
    if name == 'resnet':
        sizes = [variable.shape.num_elements() for variable in tf.trainable_variables()]
        assert sum(sizes) == 269722  # 0.27 million in the paper
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for key, variable in variables.items():
            if not key.endswith('/weights'):
                value = rng.uniform(0.5, 1.5, variable.shape.as_list())
                variable.load(value - (not key.endswith('variance')), session)
        for size in (5, 3):
            fed, before = rng.randn(size, 24, 24, 3), session.run(variables)
            layers = NumpyLayers(before, is_training)
            expected = logits(fed, layers)
            values = session.run(found, {images: fed})
            np.testing.assert_allclose(values, expected, atol=1e-4 * np.abs(expected).max())
            session.run(updates, {images: fed})
            after = session.run(variables)
            assert len(layers.statistics) == len(updates) / 2 == (len(before) // 5) * is_training
            for layer, (mean, variance, count) in layers.statistics.items():
                bessel = count / (count - 1) if name == 'resnet' else 1
                for key, value in [('mean', mean), ('variance', variance * bessel)]:
                    key = f'{layer}/moving_{key}'
                    wanted = 0.9 * before[key] + 0.1 * value
                    np.testing.assert_allclose(after[key], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('num_towers', [1, 2])
def test_statistics_are_those_of_the_first_tower(tmp_path, num_towers):
    """After 20 steps; their averages have the decay min(d, (1 + step) / (10 + step))."""
    images = [tf.placeholder(tf.float32, [8, 24, 24, 3]) for _ in range(num_towers)]
    hparams = dataclasses.replace(CLASSIC, moving_average_decay=0.5)
    step, opt = tf.train.get_or_create_global_step(), optimizer.create(0.05, hparams)
    _, tower_grads = multi_gpu.tower_gradients(
        [f'/cpu:{i}' for i in range(num_towers)],
        [(each, tf.constant(np.arange(8))) for each in images],
        opt,
        Network(write(tmp_path, 'residual'), hparams=hparams),
    )
    gradients, run_length = multi_gpu.average_gradients(tower_grads), RunLength(8, 300)
    train_op = optimizer.train_op(opt, gradients, step, run_length, hparams)
    variables, rng = {v.op.name: v for v in tf.global_variables()}, np.random.RandomState(0)
    config = tf.ConfigProto(device_count={'CPU': num_towers})
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        values = session.run(variables)
        wanted = {name: value.astype(float) for name, value in statistics(values).items()}
        for count in range(1, 21):
            fed = [1 + (i + 1) * rng.randn(8, 24, 24, 3) for i in range(num_towers)]
            layers, decay = NumpyLayers(values, True), min(0.5, (1 + count) / (10 + count))
            residual_logits(fed[0], layers)
            session.run(train_op, dict(zip(images, fed)))
            values = session.run(variables)
            for layer, found in layers.statistics.items():
                for name, value in zip(INITIAL, found):
                    name = f'{layer}/{name}'
                    wanted[name] += 0.1 * (value - wanted[name])
                    wanted[name + AVERAGE] += (1 - decay) * (wanted[name] - wanted[name + AVERAGE])
    assert len(wanted) == 20
    for name, value in wanted.items():
        np.testing.assert_allclose(values[name], value, rtol=2e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize('size', [16, None])
def test_grad_cam(graph, size):
    """The gradient of a logit with respect to pool2, as a program of the tutorial asks for it."""
    images = tf.placeholder(tf.float32, [size, 24, 24, 3])
    logits = cifar10.inference(images)
    pool2 = graph.get_tensor_by_name('pool2:0')
    (gradient,) = tf.gradients(logits[:, 7], pool2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        fed = {images: np.random.RandomState(0).randn(16, 24, 24, 3)}
        found, x, values = session.run([gradient, pool2, network.variables()], fed)
    signs, x = [], x.reshape(16, -1)
    for layer in ('local3', 'local4'):
        x = relu(x @ values[layer + '/weights'] + values[layer + '/biases'])
        signs.append(x > 0)
    expected = signs[1] * values['softmax_linear/weights'][:, 7]
    expected = (signs[0] * (expected @ values['local4/weights'].T)) @ values['local3/weights'].T
    assert found.shape == (16, 6, 6, 64)
    expected = expected.reshape(found.shape)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_two_devices(tmp_path):
    """The convolutions are on one device, the other layers on another one."""
    with multi_gpu.variables_on('/cpu:0'):
        Network(write(tmp_path, 'two_devices')).inference(tf.zeros([2, 24, 24, 3]))
    for kind, layer, device in [
        ('Conv2D', 'conv', 0),
        ('MatMul', 'local3/', 1),
        ('MatMul', 'local4/', 1),
        ('MatMul', 'softmax_linear/', 1),
        ('VarHandleOp', '', 0),
    ]:
        operations = tf.get_default_graph().get_operations()
        found = {op.device for op in operations if op.type == kind and op.name.startswith(layer)}
        assert found == {f'/device:CPU:{device}'}, layer


# Changes of the training


def _module(name, *replacements):
    """Return a module of the package after replacements in its text."""
    module = types.ModuleType(name)
    text = checkouts.replace(checkouts.read_module(name + '.py'), replacements)
    exec(text, module.__dict__)
    return module


def test_adam():
    """Kingma and Ba, 2015, algorithm 1; all variables share the powers of the two decays."""
    changed, rng = _module('optimizer', CREATE), np.random.RandomState(0)
    hparams = types.SimpleNamespace(**dict(vars(CLASSIC), optimizer='adam'))
    values, factors = [{name: rng.randn(4) for name in 'abc'} for _ in range(2)]
    variables = {
        name: tf.get_variable(name, initializer=value.astype(np.float32))
        for name, value in values.items()
    }
    gradients = [
        (variables[name] * factors[name].astype(np.float32), variables[name]) for name in 'abc'
    ]
    opt, step = changed.create(0.01, hparams), tf.train.get_or_create_global_step()
    train_op = changed.train_op(opt, gradients, step, RunLength(8, 300), hparams)
    powers = [v for v in tf.global_variables() if 'power' in v.op.name]
    m, v = dict.fromkeys('abc', 0), dict.fromkeys('abc', 0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for t in (1, 2, 3):
            session.run(train_op)
            for name in 'abc':
                gradient = values[name] * factors[name]
                m[name] = 0.9 * m[name] + 0.1 * gradient
                v[name] = 0.999 * v[name] + 0.001 * gradient**2
                means = m[name] / (1 - 0.9**t), v[name] / (1 - 0.999**t)
                values[name] = values[name] - 0.01 * means[0] / np.sqrt(means[1])
                found = session.run(variables[name])
                np.testing.assert_allclose(found, values[name], rtol=1e-4, atol=1e-6)
        found = sorted(session.run(powers))
    np.testing.assert_allclose(found, [0.9**4, 0.999**4], rtol=1e-5)


def test_cosine():
    changed = _module('optimizer', RATE)
    hparams = types.SimpleNamespace(**dict(vars(CLASSIC), schedule='cosine', epochs=20.0))
    with tf.Session() as session:
        for step in (0, 5000, 9999):  # of 500 steps per epoch
            rate = changed.learning_rate(tf.constant(step), RunLength(100, 50000), hparams)
            expected = 0.1 * (1 + math.cos(math.pi * step / 10000)) / 2
            np.testing.assert_allclose(session.run(rate), expected, rtol=1e-5, atol=1e-8)


def test_padding():
    changed, rng = _module('distortions', SAMPLE, DISTORT), np.random.RandomState(0)
    images = rng.randint(0, 256, [4, 3, 32, 32]).astype(np.uint8)
    rows, columns, flip = [0, 4, 8, 1], [8, 4, 0, 7], [False, False, True, True]
    given = changed.Distortions(
        tf.constant(rows), tf.constant(columns), tf.constant(flip), tf.ones([4])
    )
    with tf.Session() as session:
        found = session.run(changed.distort(tf.constant(images), given, 32))
        sampled = session.run(changed.sample(2000, image_size=32))
    assert set(sampled.rows) == set(sampled.columns) == set(range(9))
    for i, image in enumerate(images):
        padded = np.pad(image, [(0, 0), (4, 4), (4, 4)], 'constant').astype(float)
        crop = padded[:, rows[i] : rows[i] + 32, columns[i] : columns[i] + 32]
        crop = (crop[..., ::-1] if flip[i] else crop).transpose(1, 2, 0)
        np.testing.assert_allclose(found[i], (crop - crop.mean()) / crop.std(), atol=1e-4)
