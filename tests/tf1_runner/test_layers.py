"""Layers, losses and cells of TensorFlow 1 against NumPy, on 1.15 also against the original."""

import numpy as np
import pytest
import tensorflow
import tensorflow.compat.v1 as tf

from tf1_runner import contrib_names

IMPLEMENTATIONS = [contrib_names.MODULES] + (
    [
        {
            'contrib.layers': vars(tensorflow.contrib.layers),
            'contrib.rnn': vars(tensorflow.contrib.rnn),
            'contrib.seq2seq': vars(tensorflow.contrib.seq2seq),
            'contrib.legacy_seq2seq': vars(tensorflow.contrib.legacy_seq2seq),
        }
    ]
    if hasattr(tensorflow, 'contrib')
    else []
)
IMAGES = np.random.RandomState(0).normal(1, 2, [5, 8, 6, 3]).astype(np.float32)
TOKENS = (
    np.random.RandomState(1).normal(0, 2, [4, 3, 5]).astype(np.float32)
)  # [batch, time, classes]
TARGETS = np.random.RandomState(2).randint(0, 5, [4, 3])
WEIGHTS = np.array([[1, 1, 0], [1, 0.5, 2], [0, 0, 0], [1, 0, 0]], np.float32)


def _run(build, modules):
    """Run a graph twice, with the same values of the variables in both implementations.

    Returns a dict of the variables before the run, the results of `build`, and a dict of the
    variables after it.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        fetches = build(modules)
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        session.run(tf.global_variables_initializer())
        before = {}
        for name, variable in variables.items():
            shape = variable.shape.as_list()
            seed = len(name) + sum(map(ord, name))
            before[name] = np.random.RandomState(seed).uniform(0.5, 1.5, shape).astype(np.float32)
            variable.load(before[name], session)
        return before, session.run(fetches), session.run(variables)


def _compare(build):
    """Check that all implementations agree; return the values of the first one."""
    results = [_run(build, modules) for modules in IMPLEMENTATIONS]
    for other in results[1:]:
        assert sorted(other[0]) == sorted(results[0][0])
        for found, expected in zip(results[0][1:], other[1:]):
            tf.nest.map_structure(
                lambda a, b: a is b or np.testing.assert_allclose(a, b, 1e-5, 1e-5), found, expected
            )
    return results[0]


@pytest.mark.parametrize(
    'stride, rate, padding', [(1, 1, 'SAME'), ([2, 1], 1, 'VALID'), (1, 2, 'SAME')]
)
def test_convolution(stride, rate, padding):
    def build(modules):
        layers = modules['contrib.layers']
        outputs = layers['convolution2d'](
            tf.constant(IMAGES),
            4,
            [3, 1],
            stride,
            padding,
            rate=rate,
            weights_regularizer=layers['l2_regularizer'](0.5),
            biases_regularizer=layers['l1_regularizer'](0.5),
            outputs_collections='outputs',
            variables_collections=['own'],
        )
        (collected,) = tf.get_collection('outputs')
        gradients = tf.gradients(outputs, tf.trainable_variables())
        assert len(tf.get_collection('own')) == 2
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        return outputs, collected, losses, gradients

    before, (outputs, collected, losses, _), _ = _compare(build)
    weights, biases = before['Conv/weights'], before['Conv/biases']
    if padding == 'VALID':
        windows = np.stack([IMAGES[:, row : row + 5 : 2] for row in range(3)], 1)
        expected = np.einsum('brhwi,ri...o->bhwo', windows, weights[:, 0]) + biases
        np.testing.assert_allclose(outputs, np.maximum(expected, 0), 1e-4, 1e-5)
    np.testing.assert_array_equal(collected, outputs)
    np.testing.assert_allclose(losses, [0.25 * (weights**2).sum(), 0.5 * biases.sum()], 1e-4, 1e-5)


def test_fully_connected_on_images_and_its_scope():
    def build(modules):
        layers = modules['contrib.layers']
        x = layers['fully_connected'](layers['flatten'](IMAGES), 6, activation_fn=None)
        y = layers['fully_connected'](tf.constant(IMAGES), 6, None, scope='last')
        with tf.variable_scope('', reuse=True):
            again = layers['fully_connected'](tf.constant(IMAGES), 6, None, scope='last')
        double = layers['fully_connected'](tf.constant(IMAGES, tf.float64), 6, scope='double')
        return x, y, again, layers['softmax'](y), double

    before, (x, y, again, probabilities, double), _ = _compare(build)
    weights = before['fully_connected/weights']
    expected = IMAGES.reshape(5, -1) @ weights + before['fully_connected/biases']
    np.testing.assert_allclose(x, expected, 1e-5, 1e-4)
    expected = IMAGES @ before['last/weights'] + before['last/biases']
    np.testing.assert_allclose(y, expected, 1e-4, 1e-5)
    np.testing.assert_array_equal(again, y)
    expected = IMAGES.astype(np.float64) @ before['double/weights'] + before['double/biases']
    np.testing.assert_allclose(double, np.maximum(expected, 0), 1e-12)
    powers = np.exp(y - y.max(-1, keepdims=True))
    np.testing.assert_allclose(probabilities, powers / powers.sum(-1, keepdims=True), 1e-4, 1e-5)


def test_pools():
    def build(modules):
        layers = modules['contrib.layers']
        x = tf.constant(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1))
        return (
            layers['max_pool2d'](x, 2),
            layers['avg_pool2d'](x, [3, 3], 1, outputs_collections='outputs'),
        )

    _, (largest, mean), _ = _compare(build)
    np.testing.assert_array_equal(largest[0, :, :, 0], [[5, 7], [13, 15]])
    np.testing.assert_array_equal(mean[0, :, :, 0], [[5, 6], [9, 10]])


@pytest.mark.parametrize('is_training', [True, False])
def test_dropout(is_training):
    def build(modules):
        dropout = modules['contrib.layers']['dropout']
        ones = tf.ones([100, 100])
        training = tf.constant(is_training)
        return [dropout(ones, 0.8, is_training=chosen) for chosen in (is_training, training)]

    for modules in IMPLEMENTATIONS:
        for values in _run(build, modules)[1]:
            kept = values[values > 0]
            np.testing.assert_allclose(kept, 1.25 if is_training else 1, 1e-6)
            assert 0.77 < kept.size / values.size < 0.83 if is_training else kept.size == 10000


def test_initializers_and_regularizers():
    """The normal distributions end at two standard deviations."""

    def build(modules):
        layers = modules['contrib.layers']
        return [
            layers['variance_scaling_initializer'](seed=3)([100, 300]),
            layers['xavier_initializer'](uniform=False, seed=3)([100, 300]),
            layers['xavier_initializer'](seed=3)([100, 200]),
            layers['l1_regularizer'](2.0)(tf.constant([1.0, -3.0])),
        ]

    (*values, l1) = _compare(build)[1]
    for found, bound in zip(
        values, [2 * (1.3 * 2 / 100) ** 0.5, 2 * (1.3 / 200) ** 0.5, (6 / 300) ** 0.5]
    ):
        assert 0.999 * bound < np.abs(found).max() <= bound
    assert l1 == 8


@pytest.mark.parametrize('is_training', [True, False, 'fed'])
@pytest.mark.parametrize(
    'shape, in_place, fused',
    [
        ((5, 8, 6, 3), False, None),
        ((240, 3), True, None),
        ((5, 48, 3), False, None),
        ((5, 8, 6, 3), False, False),
    ],
)
def test_batch_norm(shape, is_training, in_place, fused):
    """The averages move by the unbiased variance in the fused operation, by the biased one else."""

    def build(modules):
        training = tf.constant(True) if is_training == 'fed' else is_training
        y = modules['contrib.layers']['batch_norm'](
            tf.constant(IMAGES.reshape(shape)),
            decay=0.9,
            scale=True,
            is_training=training,
            fused=fused,
            updates_collections=None if in_place else tf.GraphKeys.UPDATE_OPS,
        )
        assert len(tf.trainable_variables()) == 2
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        assert len(updates) == (0 if in_place or not is_training else 2)
        return y, tf.group(*updates)

    before, (y, _), after = _compare(build)
    mean, variance = before['BatchNorm/moving_mean'], before['BatchNorm/moving_variance']
    moved = mean, variance
    if is_training:
        rows = IMAGES.reshape(-1, 3)
        moved = (
            0.9 * mean + 0.1 * rows.mean(0),
            0.9 * variance + 0.1 * rows.var(0, ddof=int(len(shape) != 3 and fused is None)),
        )
        mean, variance = rows.mean(0), rows.var(0)
    expected = (IMAGES.reshape(shape) - mean) / np.sqrt(variance + 0.001)
    expected = expected * before['BatchNorm/gamma'] + before['BatchNorm/beta']
    np.testing.assert_allclose(y, expected, 1e-4, 1e-4)
    np.testing.assert_allclose(after['BatchNorm/moving_mean'], moved[0], 1e-4, 1e-5)
    np.testing.assert_allclose(after['BatchNorm/moving_variance'], moved[1], 1e-4, 1e-5)


def test_a_layer_with_normalization_and_settings_of_its_variables():
    def build(modules):
        layers = modules['contrib.layers']
        return (
            layers['conv2d'](
                tf.constant(IMAGES),
                2,
                1,
                normalizer_fn=layers['batch_norm'],
                normalizer_params={
                    'param_regularizers': {'beta': layers['l2_regularizer'](1.0)},
                    'data_format': 'NHWC',
                    'outputs_collections': 'normalized',
                },
            ),
            tf.get_collection('normalized'),
            tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES),
        )

    before, (y, (normalized,), (loss,)), _ = _compare(build)
    assert list(before) == [
        'Conv/weights',
        'Conv/BatchNorm/beta',
        'Conv/BatchNorm/moving_mean',
        'Conv/BatchNorm/moving_variance',
    ]
    np.testing.assert_array_equal(y, np.maximum(normalized, 0))
    np.testing.assert_allclose(loss, (before['Conv/BatchNorm/beta'] ** 2).sum() / 2, 1e-4, 1e-5)


@pytest.mark.parametrize('over_time', [True, False])
@pytest.mark.parametrize('over_batch', [True, False])
def test_sequence_losses(over_time, over_batch):
    def build(modules):
        tensors = [tf.constant(array) for array in (TOKENS, TARGETS, WEIGHTS)]
        options = {'average_across_timesteps': over_time}
        return (
            modules['contrib.seq2seq']['sequence_loss'](
                *tensors, average_across_batch=over_batch, **options
            ),
            modules['contrib.legacy_seq2seq']['sequence_loss_by_example'](
                *[tf.unstack(tensor, axis=1) for tensor in tensors], **options
            ),
        )

    _, (loss, of_sequences), _ = _compare(build)
    logs = TOKENS - np.log(np.exp(TOKENS).sum(-1, keepdims=True))
    losses = -np.take_along_axis(logs, TARGETS[:, :, None], -1)[:, :, 0] * WEIGHTS
    divisor = WEIGHTS.sum(1) + 1e-12 if over_time else 1
    np.testing.assert_allclose(of_sequences, losses.sum(1) / divisor, 1e-4, 1e-5)
    axes = (0,) * over_batch + (1,) * over_time
    if axes:
        divisor = WEIGHTS.sum(axes)
        losses = np.where(divisor > 0, losses.sum(axes) / np.maximum(divisor, 1e-9), 0)
    np.testing.assert_allclose(loss, losses, 1e-4, 1e-5)


def test_names_are_those_that_version_1_15_printed():
    """Names of the results, and of the members of some collections."""

    def build(modules):
        layers = modules['contrib.layers']
        regularizer = layers['l2_regularizer'](0.5)
        x = tf.placeholder(tf.float32, [2, 8, 6, 3])
        y = layers['conv2d'](
            x, 4, 3, weights_regularizer=regularizer, padding='same', outputs_collections='ends'
        )
        results = [y, layers['conv2d'](y, 4, 3, activation_fn=None, scope='conv2')]
        y = layers['conv2d'](
            y,
            4,
            3,
            normalizer_fn=layers['batch_norm'],
            normalizer_params={'outputs_collections': 'ends'},
        )
        y = layers['max_pool2d'](y, 2, padding='valid', scope='pool1', outputs_collections='ends')
        results += [y, layers['avg_pool2d'](y, [1, 1], padding='same')]
        y = layers['flatten'](y, outputs_collections='ends')
        dropped = layers['dropout'](y, is_training=False, outputs_collections=['ends', 'two'])
        results += [y, layers['flatten'](y, scope='flat'), dropped]
        regularizer = layers['l1_regularizer'](0.1, 'l1')
        results += [
            layers['fully_connected'](y, 5, biases_regularizer=regularizer),
            layers['softmax'](y),
            layers['batch_norm'](y, scope='norm'),
            layers['batch_norm'](y, is_training=False, updates_collections=None),
            layers['batch_norm'](x, scope='norm2', scale=True, updates_collections='own'),
        ]
        keys = ['own', 'two', tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.REGULARIZATION_LOSSES]
        names = [
            [getattr(value, 'op', value).name for value in values]
            for values in [results, tf.model_variables(), *map(tf.get_collection, keys)]
        ]
        names.append([tensor.aliases for tensor in tf.get_collection('ends')])
        return names

    for modules in IMPLEMENTATIONS:
        with tf.Graph().as_default(), tf.variable_scope('', use_resource=False):
            names = [' '.join(map(str, group)) for group in build(modules)]
        assert names == [
            'Conv/Relu conv2/BiasAdd pool1/MaxPool AvgPool2D/AvgPool Flatten/flatten/Reshape '
            'flat/flatten/Reshape Dropout/Identity fully_connected/Relu softmax/Reshape_1 '
            'norm/Reshape_1 BatchNorm/Reshape_1 norm2/FusedBatchNormV3',
            'Conv/weights Conv/biases conv2/weights conv2/biases Conv_1/weights '
            'Conv_1/BatchNorm/beta Conv_1/BatchNorm/moving_mean Conv_1/BatchNorm/moving_variance '
            'fully_connected/weights fully_connected/biases norm/beta norm/moving_mean '
            'norm/moving_variance BatchNorm/beta BatchNorm/moving_mean BatchNorm/moving_variance '
            'norm2/beta norm2/gamma norm2/moving_mean norm2/moving_variance',
            'norm2/AssignMovingAvg norm2/AssignMovingAvg_1',
            'Dropout/Identity',
            'Conv_1/BatchNorm/AssignMovingAvg Conv_1/BatchNorm/AssignMovingAvg_1 '
            'norm/AssignMovingAvg norm/AssignMovingAvg_1',
            'Conv/kernel/Regularizer/l2_regularizer fully_connected/bias/Regularizer/l1',
            "['Conv'] ['Conv_1/BatchNorm'] ['pool1'] ['Flatten'] ['Dropout']",
        ]
