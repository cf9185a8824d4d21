"""Batch normalization (Ioffe and Szegedy, 2015) of tf.contrib.layers and tf.layers.

Both have the variable names, initial values, defaults and updates of TensorFlow 1.15.
"""

import tensorflow.compat.v1 as tf

from cifar10.tf1 import layers
from cifar10.tf1.private_api import assign_moving_average

_INITIALIZERS = {
    'beta': tf.zeros_initializer(),
    'gamma': tf.ones_initializer(),
    'moving_mean': tf.zeros_initializer(),
    'moving_variance': tf.ones_initializer(),
}


def batch_norm(
    inputs,
    decay=0.999,
    center=True,
    scale=False,
    epsilon=0.001,
    activation_fn=None,
    param_initializers=None,
    param_regularizers=None,
    updates_collections=tf.GraphKeys.UPDATE_OPS,
    is_training=True,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    fused=None,
    data_format='NHWC',
    zero_debias_moving_mean=False,
    scope=None,
):
    """Apply tf.contrib.layers.batch_norm.

    Args:
      inputs: [..., channels], or with the data format 'NCHW' [batch, channels, ...].
      decay: decay of the moving averages.
      center: create the variable beta if True.
      scale: create the variable gamma if True.
      epsilon: number added to the variance.
      activation_fn: a function of the result, or None.
      param_initializers: dict from names of variables to initializers, or None.
      param_regularizers: dict from names of variables to regularizers, or None.
      updates_collections: collection of the moving average updates; None updates the averages
        whenever the result is computed.
      is_training: bool or scalar tensor; True: use the moments of the batch, False: the averages.
      reuse: see tf.variable_scope.
      variables_collections: see layers.model_variable.
      outputs_collections: collection of the result, or None.
      trainable: beta and gamma are trainable if True.
      fused: see `_normalize`.
      data_format: 'NHWC' or 'NCHW'.
      zero_debias_moving_mean: True to let the moving mean start at the first mean, not at 0.
      scope: see tf.variable_scope.
    """
    inputs = tf.convert_to_tensor(inputs)
    names = ['beta'] * center + ['gamma'] * scale
    with tf.variable_scope(scope, 'BatchNorm', reuse=reuse):
        variables = _variables(
            inputs,
            names,
            data_format,
            trainable,
            (param_initializers or {}, param_regularizers or {}, variables_collections),
        )
        outputs, moments = _normalize(inputs, variables, epsilon, is_training, fused, data_format)
        updates = _updates(variables, moments, decay, is_training, zero_debias_moving_mean)
        if updates_collections is None:
            with tf.control_dependencies(updates):
                outputs = tf.identity(outputs)
        else:
            for update in updates:
                tf.add_to_collection(updates_collections, update)
        outputs = activation_fn(outputs) if activation_fn else outputs
        return layers.collect(outputs, outputs_collections)


def batch_normalization(
    inputs,
    axis=-1,
    momentum=0.99,
    epsilon=1e-3,
    center=True,
    scale=True,
    beta_initializer=None,
    gamma_initializer=None,
    moving_mean_initializer=None,
    moving_variance_initializer=None,
    beta_regularizer=None,
    gamma_regularizer=None,
    training=False,
    trainable=True,
    name=None,
    reuse=None,
    fused=None,
):
    """Apply tf.layers.batch_normalization; see `batch_norm`.

    The updates of the moving averages are in the collection UPDATE_OPS.

    Args:
      inputs: see `batch_norm`.
      axis: axis of the channels: the last one, or 1 in [batch, channels, height, width].
      momentum: decay of the moving averages.
      epsilon: number added to the variance.
      center: create the variable beta if True.
      scale: create the variable gamma if True.
      beta_initializer: None means zeros.
      gamma_initializer: None means ones.
      moving_mean_initializer: None means zeros.
      moving_variance_initializer: None means ones.
      beta_regularizer: a function of beta, or None.
      gamma_regularizer: a function of gamma, or None.
      training: is_training of `batch_norm`.
      trainable: beta and gamma are trainable if True.
      name: scope; see tf.variable_scope.
      reuse: see tf.variable_scope.
      fused: see `_normalize`.

    Raises:
      ValueError: the axis is another one.
    """
    inputs = tf.convert_to_tensor(inputs)
    names = ['gamma'] * scale + ['beta'] * center
    rank = inputs.shape.ndims
    data_format = 'NCHW' if axis in (1, [1]) and rank == 4 else 'NHWC'
    if data_format == 'NHWC' and axis not in (-1, [-1], rank - 1, [rank - 1]):
        raise ValueError(f'axis={axis} is not supported for {rank} axes: move the channels last')
    initializers = {
        'beta': beta_initializer,
        'gamma': gamma_initializer,
        'moving_mean': moving_mean_initializer,
        'moving_variance': moving_variance_initializer,
    }
    regularizers = {'beta': beta_regularizer, 'gamma': gamma_regularizer}
    with tf.variable_scope(name, 'batch_normalization', reuse=reuse):
        variables = _variables(
            inputs, names, data_format, trainable, (initializers, regularizers, None)
        )
        # As in TensorFlow 1.15, only images use the fused operation here.
        fused = fused if rank == 4 else False
        outputs, moments = _normalize(inputs, variables, epsilon, training, fused, data_format)
        for update in _updates(variables, moments, momentum, training):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
        return outputs


def _variables(inputs, names, data_format, trainable, settings):
    """Return a dict of the parameters `names`, and of the moving averages.

    The settings are dicts of initializers and regularizers by name, and further collections.
    """
    initializers, regularizers, collections = settings
    axis = 1 if data_format == 'NCHW' else inputs.shape.ndims - 1
    return {
        name: layers.model_variable(
            name,
            inputs.shape[axis : axis + 1],
            initializers.get(name) or _INITIALIZERS[name],
            regularizers.get(name),
            trainable and name in names,
            collections,
            tf.float32 if inputs.dtype == tf.float16 else inputs.dtype,
        )
        for name in names + ['moving_mean', 'moving_variance']
    }


def _normalize(inputs, variables, epsilon, is_training, fused, data_format):
    """Return the normalized inputs, and the mean and variance for the moving averages.

    With two or four axes and unless `fused` is False, TensorFlow's fused operation is used. The
    variance that it returns is the unbiased one; elsewhere the variance is the biased one.
    """
    beta, gamma = variables.get('beta'), variables.get('gamma')
    averages = variables['moving_mean'], variables['moving_variance']
    rank = inputs.shape.ndims
    if fused is False or rank not in (2, 4) or inputs.dtype == tf.float64:
        axes = [0, 2, 3] if data_format == 'NCHW' else list(range(rank - 1))
        mean, variance = layers.cond(
            is_training, lambda: tuple(tf.nn.moments(inputs, axes)), lambda: averages
        )
        shape = [1, -1, 1, 1] if data_format == 'NCHW' else [-1]
        used = [
            None if value is None else tf.reshape(value, shape)
            for value in (mean, variance, beta, gamma)
        ]
        return tf.nn.batch_normalization(inputs, *used, epsilon), (mean, variance)
    shape = variables['moving_mean'].shape
    gamma = tf.ones(shape) if gamma is None else gamma
    beta = tf.zeros(shape) if beta is None else beta
    images = inputs[:, None, None] if rank == 2 else inputs
    options = {'epsilon': epsilon, 'data_format': data_format}
    outputs, mean, variance = layers.cond(
        is_training,
        lambda: tuple(tf.nn.fused_batch_norm(images, gamma, beta, **options)),
        lambda: tuple(
            tf.nn.fused_batch_norm(images, gamma, beta, *averages, is_training=False, **options)
        ),
    )
    return (outputs[:, 0, 0] if rank == 2 else outputs), (mean, variance)


def _updates(variables, moments, decay, is_training, zero_debias_moving_mean=False):
    """Return the updates of the moving averages; [] in a graph that never trains."""
    if not hasattr(is_training, 'op') and not is_training:
        return []
    mean, variance = variables['moving_mean'], variables['moving_variance']

    def update(average, moment, zero_debias):
        def assign():
            return assign_moving_average(average, moment, decay, zero_debias)

        return layers.cond(is_training, assign, lambda: average)

    return [
        update(mean, moments[0], zero_debias_moving_mean),
        update(variance, moments[1], False),
    ]
