"""tf.layers.batch_normalization against NumPy, on TensorFlow 1.15 also against the original."""

import numpy as np
import pytest
import tensorflow
import tensorflow.compat.v1 as tf

from tf1_runner import batch_normalization

FUNCTIONS = [batch_normalization.batch_normalization] + (
    [tf.layers.batch_normalization] if hasattr(tensorflow, 'contrib') else []
)
IMAGES = np.random.RandomState(0).normal(1, 2, [4, 5, 6, 3]).astype(np.float32)


def _run(function, inputs, **settings):
    """Run a graph once, with the same values of the variables in all implementations.

    Returns the result, a dict of the variables before the updates, one after them, and the gradient
    of the sum of the squares of the result.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(inputs)
        outputs = function(x, **settings)
        gradient = tf.gradients(outputs**2, x)[0]
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        variables = {
            variable.op.name.split('/')[-1]: variable for variable in tf.global_variables()
        }
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(1)
        before = {}
        for name, variable in sorted(variables.items()):
            before[name] = random.uniform(0.5, 1.5, variable.shape.as_list()).astype(np.float32)
            variable.load(before[name], session)
        outputs, gradient, _ = session.run([outputs, gradient, updates])
        return outputs, before, session.run(variables), gradient


def _expect(inputs, before, axis=-1, momentum=0.99, epsilon=1e-3, training=True, **settings):
    """Return what `_run` returns, computed by NumPy."""
    axis %= inputs.ndim
    reduced = tuple(a for a in range(inputs.ndim) if a != axis)
    shape = [size if a == axis else 1 for a, size in enumerate(inputs.shape)]
    full = {name: value.reshape(shape) for name, value in before.items()}
    after = dict(full)
    scale, offset = full.get('gamma', 1), full.get('beta', 0)
    mean, variance = full['moving_mean'], full['moving_variance']
    if training:
        is_fused = inputs.ndim == 4 and axis in (1, 3) and settings.get('fused', True)
        mean, variance = [f(reduced, keepdims=True) for f in (inputs.mean, inputs.var)]
        moved = inputs.var(reduced, ddof=int(is_fused), keepdims=True)
        for name, value in [('moving_mean', mean), ('moving_variance', moved)]:
            after[name] = momentum * full[name] + (1 - momentum) * value
    return (inputs - mean) / np.sqrt(variance + epsilon) * scale + offset, after


@pytest.mark.parametrize('training', [True, False, 'fed', 'fed False'])
@pytest.mark.parametrize(
    'settings',
    [
        {},
        {'axis': 1, 'fused': False},
        pytest.param(
            {'axis': 1},
            marks=pytest.mark.skipif(
                hasattr(tensorflow, 'contrib'), reason='TensorFlow 1.15 has it only on GPUs'
            ),
        ),
        {'axis': 2, 'momentum': 0.5, 'epsilon': 0.1},
        {'axis': -3, 'center': False, 'fused': False},
        {'scale': False},
        {'fused': False},
        {'shape': (60, 6)},
        {'shape': (20, 6, 3), 'axis': 1},
    ],
)
def test_results_and_updates(settings, training):
    settings, results = dict(settings), []
    images = IMAGES.reshape(settings.pop('shape', IMAGES.shape))
    for function in FUNCTIONS:

        def build(inputs, function=function, **settings):
            fed = str(training).startswith('fed')
            value = tf.placeholder_with_default(training == 'fed', []) if fed else training
            return function(inputs, training=value, **settings)

        results.append(_run(build, images, **settings))
    outputs, before, after, gradient = results[0]
    expected, expected_after = _expect(
        images, before, training=training in (True, 'fed'), **settings
    )
    np.testing.assert_allclose(outputs, expected, 1e-4, 1e-4)
    assert sorted(after) == sorted(expected_after)
    for name, value in after.items():
        np.testing.assert_allclose(value.ravel(), expected_after[name].ravel(), 1e-4, 1e-5)
    for other in results[1:]:
        np.testing.assert_allclose(outputs, other[0], 1e-4, 1e-5)
        np.testing.assert_allclose(gradient, other[3], 1e-4, 1e-4)
        for name, value in other[2].items():
            np.testing.assert_allclose(after[name], value, 1e-5, 1e-5)


def test_names_are_those_that_version_1_15_printed():
    """Names of the results, the variables and the updates."""
    for function in FUNCTIONS:
        with tf.Graph().as_default(), tf.variable_scope('', use_resource=False):
            x = tf.placeholder(tf.float16, [2, 8, 6, 3])
            results = [
                function(x, training=True),
                function(x, training=True, axis=2, name='plain'),
                function(x, training=True, trainable=False, name='frozen'),
                function(x, reuse=True, name='frozen'),
            ]
            variables = tf.global_variables()
            assert {variable.dtype.base_dtype for variable in variables} == {tf.float32}
            assert variables[-5].shape == [6]
            groups = [results, variables, tf.get_collection(tf.GraphKeys.UPDATE_OPS)]
            names = [' '.join(getattr(x, 'op', x).name for x in group) for group in groups]
            trainable = [variable.op.name for variable in tf.trainable_variables()]
        assert names == [
            'batch_normalization/FusedBatchNormV3 plain/batchnorm/add_1 '
            'frozen/FusedBatchNormV3 frozen_1/FusedBatchNormV3',
            'batch_normalization/gamma batch_normalization/beta batch_normalization/moving_mean '
            'batch_normalization/moving_variance plain/gamma plain/beta plain/moving_mean '
            'plain/moving_variance frozen/gamma frozen/beta frozen/moving_mean '
            'frozen/moving_variance',
            'batch_normalization/AssignMovingAvg batch_normalization/AssignMovingAvg_1 '
            'plain/AssignMovingAvg plain/AssignMovingAvg_1',
        ]
        assert len(trainable) == 4 and not any('frozen' in name for name in trainable)


def test_regularizers_initializers_and_a_layer_that_is_used_twice():
    layer = batch_normalization.BatchNormalization(
        beta_regularizer=tf.nn.l2_loss,
        gamma_regularizer=lambda gamma: tf.reduce_sum(gamma) / 2,
        beta_initializer=tf.constant_initializer(2.0),
        gamma_initializer='ones',
        moving_variance_initializer=tf.constant_initializer(4.0),
        name='norm',
    )
    with tf.Session() as session:
        layer(tf.constant(IMAGES))
        layer(tf.constant(IMAGES), training=True)
        names = [variable.op.name for variable in layer.variables]
        assert names == ['norm/gamma', 'norm/beta', 'norm/moving_mean', 'norm/moving_variance']
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
        session.run(tf.global_variables_initializer())
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert sorted(session.run(losses)) == [1.5, 6.0]
        np.testing.assert_array_equal(session.run(layer.moving_variance), [4, 4, 4])
