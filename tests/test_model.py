"""Network and loss against NumPy."""

import contextlib
import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import cpu_kernels, model
from cifar10.config import CLASSIC
from cifar10.network import Network
from tests.helpers import oracle

# of products with these factors, relative to the largest value; TensorFlow 1.15 has no bfloat16
TOLERANCES = [(tf.float32, 1e-5), (tf.bfloat16, 1e-2)][: 1 if tf.__version__ < '2' else 2]
SHAPES = {
    'conv1/weights': [5, 5, 3, 64],
    'conv1/biases': [64],
    'conv2/weights': [5, 5, 64, 64],
    'conv2/biases': [64],
    'local3/weights': [2304, 384],
    'local3/biases': [384],
    'local4/weights': [384, 192],
    'local4/biases': [192],
    'softmax_linear/weights': [192, 10],
    'softmax_linear/biases': [10],
}


def _images(n, seed=0):
    return np.random.RandomState(seed).randn(n, 24, 24, 3).astype(np.float32)


def test_variables_and_their_initial_values():
    cifar10.inference(tf.constant(_images(1)))
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    assert {name: variable.shape.as_list() for name, variable in variables.items()} == SHAPES
    assert sum(int(np.prod(shape)) for shape in SHAPES.values()) == 1068298
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(variables)
    for layer, stddev, bias in [
        ('conv1', 0.05, 0),
        ('conv2', 0.05, 0.1),
        ('local3', 0.04, 0.1),
        ('local4', 0.04, 0.1),
        ('softmax_linear', 1 / 192, 0),
    ]:
        assert (values[layer + '/biases'] == np.float32(bias)).all()
        weights = values[layer + '/weights'] / stddev
        assert 1.8 < np.abs(weights).max() <= 2  # truncated at two standard deviations,
        assert abs(weights.std() - 0.88) < 0.05  # which leaves 0.88 of one


def test_logits_equal_numpy():
    images = tf.placeholder(tf.float32, [None, 24, 24, 3])
    logits = cifar10.inference(images)
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        # the initial biases and last layer are near zero, and would hide errors
        for variable in variables.values():
            variable.load(
                np.random.RandomState(1).normal(0, 0.05, variable.shape.as_list()), session
            )
        for n in (3, 1):
            expected = oracle.logits(_images(n), session.run(variables))
            np.testing.assert_allclose(
                session.run(logits, {images: _images(n)}), expected, rtol=1e-4, atol=1e-5
            )


def test_other_classes_in_half_precision():
    """Variables have the dtype of the images; values match float32 to three digits."""
    logits = cifar10.inference(tf.constant(_images(4), tf.float16), num_classes=6)
    assert (logits.dtype, logits.shape.as_list()) == (tf.float16, [4, 6])
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    assert {variable.dtype.base_dtype for variable in variables.values()} == {tf.float16}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        logits, values, loss = session.run([logits, variables, cifar10.loss(logits, [0, 1, 2, 5])])
    expected = oracle.logits(
        _images(4), {name: value.astype(np.float32) for name, value in values.items()}
    )
    np.testing.assert_allclose(logits, expected, rtol=1e-2, atol=1e-2 * np.abs(expected).max())
    assert loss.dtype == np.float16 and np.isfinite(loss)


@pytest.mark.parametrize(
    'decay, smoothing, name',
    [
        (0.004, 0.0, 'cross_entropy'),
        (0.5, 0.2, 'smoothed_cross_entropy'),
        (0.0, 0.0, 'cross_entropy'),
    ],
)
def test_loss_equals_numpy(decay, smoothing, name):
    labels = np.array([3, 0, 9, 3])
    hparams = dataclasses.replace(CLASSIC, fc_weight_decay=decay, label_smoothing=smoothing)
    logits = cifar10.inference(tf.constant(_images(4)), hparams=hparams)
    logits += tf.constant(np.random.RandomState(0).randn(4, 10), tf.float32)
    loss = cifar10.loss(logits, tf.constant(labels), hparams=hparams)
    parts = {part.op.name: part for part in tf.get_collection('losses')}
    variables = {variable.op.name: variable for variable in tf.trainable_variables()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, logits, parts, variables = session.run([loss, logits, parts, variables])
    smooth = (1 - smoothing) * np.eye(10)[labels] + smoothing / 10
    log_probabilities = logits - np.log(np.exp(logits.astype(float)).sum(1, keepdims=True))
    expected = {name: -(smooth * log_probabilities).sum(1).mean()}
    for layer in ('local3', 'local4') if decay else ():
        weights = variables[layer + '/weights'].astype(float)
        expected[layer + '/weight_loss'] = decay * (weights**2).sum() / 2
    assert parts == pytest.approx(expected, rel=1e-6)
    assert found == pytest.approx(sum(expected.values()), rel=1e-6)


@pytest.mark.parametrize('channels', [3, 64])
def test_lrn_on_a_cpu_equals_its_definition(channels):
    rng = np.random.RandomState(0)
    x, dy = 30 * rng.randn(2, 5, 6, channels), rng.randn(2, 5, 6, channels)
    tensor = tf.constant(x)
    normalized = model.local_response_normalization(tensor, 'norm')
    (gradient,) = tf.gradients(normalized, tensor, tf.constant(dy))
    with tf.Session() as session:
        found, found_gradient = session.run([normalized, gradient])
    np.testing.assert_allclose(found, oracle.lrn(x), rtol=1e-12)
    np.testing.assert_allclose(found_gradient, oracle.lrn_gradient(x, dy), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    'device, gpus, is_portable, is_tutorial',
    [
        ('/cpu:0', 1, False, False),
        ('/gpu:0', 1, False, True),
        ('', 1, False, True),
        ('', 0, False, False),
        ('/cpu:0', 0, True, True),
    ],
)
def test_who_gets_the_normalization_of_the_tutorial(
    monkeypatch, graph, device, gpus, is_portable, is_tutorial
):
    monkeypatch.setattr(
        tf.config.experimental,
        'list_physical_devices',
        lambda kind: ['GPU'] * gpus if kind == 'GPU' else [],
    )
    context = cpu_kernels.portable() if is_portable else contextlib.nullcontext()
    with tf.device(device), context:
        model.inference(tf.constant(_images(16)))
    norms = [op for op in graph.get_operations() if op.type == 'LRN']
    assert len(norms) == (2 if is_tutorial else 0)
    assert len(_sub_batches(graph)) == 1
    for op in norms:
        values = [op.get_attr(name) for name in ('depth_radius', 'bias', 'alpha', 'beta')]
        np.testing.assert_allclose(values, [4, 1, 0.001 / 9, 0.75], rtol=1e-6)


PER_IMAGE = ['conv1/conv1', 'pool1', 'norm1', 'conv2/conv2', 'norm2']
LAYERS = PER_IMAGE + ['pool2', 'local3/local3', 'local4/local4', 'softmax_linear/softmax_linear']


@pytest.mark.parametrize('num_images', [None, 7])
@pytest.mark.parametrize('dtype', ['float32', 'auto'])
def test_layers_by_their_names(dtype, num_images):
    """From pool2 on, each has the whole batch, and no padding: two images fill three parts.

    The first layers of a divided batch have a name per part.
    """
    fed = _images(num_images or 2)
    images = tf.placeholder(tf.float32, [num_images, 24, 24, 3])
    hparams = dataclasses.replace(CLASSIC, compute_dtype=dtype)
    with tf.variable_scope('', reuse=tf.AUTO_REUSE):
        with tf.name_scope('listing'), cpu_kernels.portable():
            model.inference(images)
        for number in (1, 3):
            with tf.name_scope(f'divided_by_{number}'), cpu_kernels.sub_batches(number):
                model.inference(images, hparams=hparams)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for layer in LAYERS:
            parts = [f'sub_batch_{i}/' for i in range(3)] if layer in PER_IMAGE else ['']
            scopes = ['listing/', 'divided_by_1/', *('divided_by_3/' + part for part in parts)]
            expected, undivided, *divided = session.run(
                [f'{scope}{layer}:0' for scope in scopes], {images: fed}
            )
            if layer in PER_IMAGE:
                divided = [np.concatenate(divided)[: len(fed)]]  # The padding is last.
            for values in [undivided, *divided]:
                assert values.shape == expected.shape and len(values) == len(fed)
                error = np.linalg.norm(values - expected) / np.linalg.norm(expected)
                assert error < (1e-5 if dtype == 'float32' else 0.03), layer


def test_sub_batches_change_nothing():
    images, labels = tf.constant(_images(7)), tf.constant(np.arange(7))
    both = []
    for number, reuse in ((1, False), (2, True)):
        network = Network(num_sub_batches=number)
        with tf.name_scope(f'divided_by_{number}') as scope, tf.variable_scope('', reuse=reuse):
            loss = network.loss(network.inference(images), labels, scope)
        both.append([loss] + tf.gradients(loss, tf.trainable_variables()))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for whole, parallel in zip(*session.run(both)):
            assert np.abs(whole - parallel).max() <= 1e-5 * np.abs(whole).max()
            assert np.abs(whole).max() > 0


def _sub_batches(graph):
    """Return the first convolutions, one per sub-batch."""
    operations = [op for op in graph.get_operations() if op.type == 'Conv2D']
    return [op.outputs[0] for op in operations if 'conv1' in op.name.split('/')]


@pytest.mark.parametrize('num_images, sizes', [(0, [1, 1, 1]), (1, [1, 1, 1]), (5, [1, 2, 2])])
def test_sub_batches_of_an_unknown_number_of_images(graph, num_images, sizes):
    """No part is empty, even if there are fewer images than parts."""
    images = tf.placeholder(tf.float32, [None, 24, 24, 3])
    with cpu_kernels.sub_batches(3):
        logits = model.inference(images)
    parts = _sub_batches(graph)
    with tf.variable_scope('', reuse=True):
        undivided = model.inference(tf.constant(_images(5)))
    assert logits.shape.as_list() == [None, 10]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, parts, undivided = session.run(
            [logits, parts, undivided], {images: _images(5)[:num_images]}
        )
    assert found.shape == (num_images, 10) and sorted(map(len, parts)) == sizes
    np.testing.assert_allclose(found, undivided[:num_images], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('number', [1, 2])
@pytest.mark.parametrize(
    'add, addition',
    [
        (lambda x: tf.add_to_collection('losses', tf.nn.l2_loss(x)), "collection 'losses'"),
        (lambda x: tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, x.op), "collection 'update_ops'"),
        (
            lambda x: tf.get_variable('mean', [3], trainable=False),
            'variables that are not trainable',
        ),
    ],
)
def test_what_would_count_once_per_sub_batch(add, addition, number):
    """It is an error on any machine; the context ends nevertheless."""

    @cpu_kernels.per_image
    def layers(x):
        add(x)
        return tf.identity(x, 'last')

    images = tf.constant(_images(4))
    complaint = f'^layers is marked .*, but adds to the {addition}, '
    with pytest.raises(ValueError, match=complaint), cpu_kernels.sub_batches(number):
        layers(images)
    undivided = cpu_kernels.per_image(lambda x: tf.identity(x, 'undivided'))(images)
    assert undivided.op.type == 'Identity'


@pytest.mark.parametrize('num_parts, number', [(1, 1), (4, 1), (8, 2), (15, 3), (16, 4), (64, 16)])
@pytest.mark.parametrize('num_images', [128, None])
def test_product_in_parallel_parts(graph, num_parts, number, num_images):
    """local3's product and its gradients equal NumPy's, also if the rows cannot be divided.

    In bfloat16, the rounding errors of factors with 8 bits remain below 1 % of the largest sum.
    """
    rng = np.random.RandomState(0)
    x, weights, dy = rng.randn(128, 2303), rng.randn(2303, 384), rng.randn(128, 384)
    images = tf.placeholder(tf.float32, [num_images, 2303])
    constant = tf.constant(weights, tf.float32)
    for dtype, tolerance in TOLERANCES:
        with cpu_kernels.sub_batches(num_parts):
            product = cpu_kernels.matmul(images, constant, dtype)
        kinds = [op.get_attr('T') for op in graph.get_operations() if op.type == 'MatMul']
        assert kinds.count(dtype) == number
        gradients = tf.gradients(product, [images, constant], tf.constant(dy, tf.float32))
        with tf.Session() as session:
            found = session.run([product, *gradients], {images: x})
            few = session.run(product, {images: x[:3]}) if num_images is None else found[0][:3]
        assert few.shape == (3, 384)
        for actual, expected in zip(found, [x @ weights, dy @ weights.T, x.T @ dy]):
            assert actual.dtype == np.float32
            np.testing.assert_allclose(actual, expected, atol=tolerance * np.abs(expected).max())
