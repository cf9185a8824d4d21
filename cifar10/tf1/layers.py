"""Layers, initializers and regularizers of tf.contrib.layers.

They have the variable names, initial values and defaults of TensorFlow 1.15.
"""

import functools

import tensorflow.compat.v1 as tf


def xavier_initializer(uniform=True, seed=None, dtype=tf.float32):
    """Return the initializer of Glorot and Bengio, 2010."""
    return variance_scaling_initializer(1.0, 'FAN_AVG', uniform, seed, dtype)


def variance_scaling_initializer(
    factor=2.0, mode='FAN_IN', uniform=False, seed=None, dtype=tf.float32
):
    """Return the initializer of He et al., 2015."""
    if not uniform:
        # The standard deviation before the truncation is sqrt(1.3 * factor / n) in tf.contrib, and
        # sqrt(scale / n) / 0.8796 in tf.variance_scaling_initializer.
        factor *= 1.3 * 0.87962566103423978**2
    return tf.variance_scaling_initializer(
        factor, mode.lower(), 'uniform' if uniform else 'truncated_normal', seed, dtype
    )


def l1_regularizer(scale, scope=None):
    """Return a function of weights: scale * sum |w|."""
    return lambda weights: scale * tf.reduce_sum(tf.abs(weights))


def l2_regularizer(scale, scope=None):
    """Return a function of weights: scale * sum w^2 / 2."""
    return lambda weights: scale * tf.nn.l2_loss(weights)


def one_hot_encoding(labels, num_classes, on_value=1.0, off_value=0.0):
    """Convert integer labels [batch] to float32 [batch, num_classes]."""
    return tf.one_hot(labels, num_classes, on_value, off_value)


def flatten(inputs, outputs_collections=None, scope=None):
    """Reshape [batch, ...] to [batch, features]."""
    inputs = tf.convert_to_tensor(inputs)
    outputs = tf.reshape(inputs, [-1, inputs.shape[1:].num_elements()])
    return collect(outputs, outputs_collections)


def dropout(
    inputs,
    keep_prob=0.5,
    noise_shape=None,
    is_training=True,
    outputs_collections=None,
    scope=None,
    seed=None,
):
    """Zero random values of the inputs in training, and divide the others by `keep_prob`.

    Args:
      inputs: a tensor.
      keep_prob: probability of keeping a value.
      noise_shape: see tf.nn.dropout.
      is_training: bool or scalar tensor.
      outputs_collections: see `collect`.
      scope: name scope.
      seed: int, or None.
    """
    with tf.variable_scope(scope, 'Dropout'):
        outputs = cond(
            is_training,
            lambda: tf.nn.dropout(inputs, keep_prob, noise_shape, seed),
            lambda: tf.identity(inputs),
        )
        return collect(outputs, outputs_collections)


def cond(condition, if_true, if_false):
    """Return tf.cond for a tensor; for a bool, the result of one of the functions."""
    if hasattr(condition, 'op'):
        # A placeholder may have no shape.
        return tf.cond(tf.reshape(tf.cast(condition, tf.bool), []), if_true, if_false)
    return if_true() if condition else if_false()


def softmax(logits, scope=None):
    """Apply softmax over the last axis."""
    with tf.variable_scope(scope, 'softmax'):
        return tf.nn.softmax(logits)


def conv2d(
    inputs,
    num_outputs,
    kernel_size,
    stride=1,
    padding='SAME',
    data_format=None,
    rate=1,
    activation_fn=tf.nn.relu,
    *arguments,
    **others,
):
    """Convolve a batch of images; apply bias or normalization, and activation.

    Args:
      inputs: [batch, height, width, channels], or with the data format 'NCHW' [batch, channels,
        height, width].
      num_outputs: number of output channels.
      kernel_size: int, or height and width.
      stride: int, or height and width.
      padding: 'SAME' or 'VALID'.
      data_format: 'NHWC' or 'NCHW'; None means 'NHWC'.
      rate: dilation, int, or height and width.
      activation_fn: a function of the result, or None.
      arguments: by position, arguments of `_layer` after activation_fn.
      others: arguments of `_layer`.
    """
    inputs = tf.convert_to_tensor(inputs)
    data_format = data_format or 'NHWC'
    channels_axis = data_format.index('C')

    def convolve(weights):
        # On a CPU, the gradient of tf.nn.conv2d has no dilation.
        return tf.nn.convolution(
            inputs, weights, padding, _pair(stride), _pair(rate), data_format=data_format
        )

    shape = _pair(kernel_size) + [int(inputs.shape[channels_axis]), num_outputs]
    bias_format = {'data_format': data_format}
    settings = ('Conv', inputs.dtype.base_dtype, shape, convolve, bias_format, activation_fn)
    return _layer(*settings, *arguments, **others)


def fully_connected(inputs, num_outputs, activation_fn=tf.nn.relu, *arguments, **others):
    """Multiply by weights; apply bias or normalization, and activation.

    Args:
      inputs: [..., features].
      num_outputs: number of output features.
      activation_fn: a function of the result, or None.
      arguments: by position, arguments of `_layer` after activation_fn.
      others: arguments of `_layer`.
    """
    inputs = tf.convert_to_tensor(inputs)

    def multiply(weights):
        return tf.tensordot(inputs, weights, 1) if inputs.shape.ndims > 2 else inputs @ weights

    shape = [int(inputs.shape[-1]), num_outputs]
    settings = ('fully_connected', inputs.dtype.base_dtype, shape, multiply, {}, activation_fn)
    return _layer(*settings, *arguments, **others)


def _layer(
    name,
    dtype,
    shape,
    product,
    bias_format,
    activation_fn,
    normalizer_fn=None,
    normalizer_params=None,
    weights_initializer=None,
    weights_regularizer=None,
    biases_initializer=tf.zeros_initializer,
    biases_regularizer=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    scope=None,
):
    """Build a layer from the product of inputs and weights; see tf.contrib.layers."""

    def variable(name, shape, initializer, regularizer):
        return model_variable(
            name, shape, initializer, regularizer, trainable, variables_collections, dtype
        )

    with tf.variable_scope(scope, name, reuse=reuse):
        weights_initializer = weights_initializer or xavier_initializer()
        x = product(variable('weights', shape, weights_initializer, weights_regularizer))
        if normalizer_fn:
            x = normalizer_fn(x, **normalizer_params or {})
        elif biases_initializer:
            biases = variable('biases', shape[-1:], biases_initializer, biases_regularizer)
            x = tf.nn.bias_add(x, biases, **bias_format)
        return collect(activation_fn(x) if activation_fn else x, outputs_collections)


def model_variable(name, shape, initializer, regularizer, trainable, collections, dtype=tf.float32):
    """Return a variable in the collection MODEL_VARIABLES.

    Args:
      name: see tf.get_variable.
      shape: see tf.get_variable.
      initializer: see tf.get_variable.
      regularizer: see tf.get_variable.
      trainable: see tf.get_variable.
      collections: list of further collections, or a dict of such lists by name, or None.
      dtype: see tf.get_variable.
    """
    if isinstance(collections, dict):
        collections = collections.get(name)
    keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES, *(collections or ())]
    return tf.get_variable(
        name, shape, dtype, initializer, regularizer, trainable, collections=keys
    )


def collect(tensor, collections):
    """Add the output of a layer to a collection, or to several; return the output."""
    for name in [collections] if isinstance(collections, str) else collections or ():
        tf.add_to_collection(name, tensor)
    return tensor


def _pool2d(
    pool,
    inputs,
    kernel_size,
    stride=2,
    padding='VALID',
    data_format='NHWC',
    outputs_collections=None,
    scope=None,
):
    """Pool each window of a batch of images; see `conv2d`."""
    size, strides = _spatial(kernel_size, data_format), _spatial(stride, data_format)
    return collect(pool(inputs, size, strides, padding, data_format, scope), outputs_collections)


max_pool2d = functools.partial(_pool2d, tf.nn.max_pool)
avg_pool2d = functools.partial(_pool2d, tf.nn.avg_pool)


def _pair(size):
    return [size, size] if isinstance(size, int) else list(size)


def _spatial(size, data_format):
    """Return a list of four sizes, which are 1 for batch and channels."""
    return [1, *_pair(size), 1] if data_format == 'NHWC' else [1, 1, *_pair(size)]
