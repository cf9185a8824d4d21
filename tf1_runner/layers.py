"""Layers of tf.contrib.layers, with the names, defaults, results and errors of TensorFlow 1.15.

As there, the layers of tf.layers compute the results.
"""

import functools

import tensorflow.compat.v1 as tf

from tf1_runner.initializers import xavier_initializer
from tf1_runner.private_api import layers as tf_layers


def flatten(inputs, outputs_collections=None, scope=None):
    """Reshape [batch, ...] to [batch, features]; see `collect`."""
    with tf.name_scope(scope, 'Flatten', [inputs]) as name:
        outputs = tf_layers.Flatten()(tf.convert_to_tensor(inputs))
        return collect(outputs, outputs_collections, name)


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
      scope: see tf.variable_scope.
      seed: int, or None.
    """
    with tf.variable_scope(scope, 'Dropout', [inputs]) as variable_scope:
        layer = tf_layers.Dropout(
            1 - keep_prob, noise_shape, seed, name=variable_scope.name, _scope=variable_scope
        )
        outputs = layer(tf.convert_to_tensor(inputs), training=is_training)
        return collect(outputs, outputs_collections, variable_scope.name)


def softmax(logits, scope=None):
    """Apply softmax over the last axis.

    Args:
      logits: a tensor of two axes or more.
      scope: see tf.variable_scope.

    Raises:
      ValueError: there are fewer axes, or the size of the last one is unknown.
    """
    with tf.variable_scope(scope, 'softmax', [logits]):
        shape = logits.shape
        if shape.ndims is None or shape.ndims < 2 or shape.as_list()[-1] is None:
            raise ValueError(
                f'softmax needs two axes or more, and the size of the last one, not {shape}'
            )
        outputs = tf.nn.softmax(tf.reshape(logits, [-1, shape.as_list()[-1]]))
        outputs = tf.reshape(outputs, tf.shape(logits))
        outputs.set_shape(shape)
        return outputs


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

    Raises:
      ValueError: a wrong data format, or inputs with another number of axes.
    """
    settings = {
        'filters': num_outputs,
        'kernel_size': kernel_size,
        'strides': stride,
        'padding': padding,
        'data_format': name_data_format(data_format or 'NHWC'),
        'dilation_rate': rate,
    }
    inputs = tf.convert_to_tensor(inputs)
    if inputs.shape.ndims != 4:
        raise ValueError(f'Convolution expects input with rank 4, got {inputs.shape.ndims}')
    kind = functools.partial(tf_layers.Conv2D, **settings)
    return _layer('Conv', kind, inputs, activation_fn, *arguments, **others)


def fully_connected(inputs, num_outputs, activation_fn=tf.nn.relu, *arguments, **others):
    """Multiply by weights; apply bias or normalization, and activation.

    Args:
      inputs: [..., features].
      num_outputs: number of output features.
      activation_fn: a function of the result, or None.
      arguments: by position, arguments of `_layer` after activation_fn.
      others: arguments of `_layer`.

    Raises:
      ValueError: the number is not an int, or the size of the last axis is unknown.
    """
    if not isinstance(num_outputs, int):
        raise ValueError(f'num_outputs type should be int, got {type(num_outputs)}.')
    kind = functools.partial(tf_layers.Dense, num_outputs)
    inputs = tf.convert_to_tensor(inputs)
    return _layer('fully_connected', kind, inputs, activation_fn, *arguments, **others)


def _layer(
    default_name,
    kind,
    inputs,
    activation_fn,
    normalizer_fn=None,
    normalizer_params=None,
    weights_initializer=xavier_initializer(),
    weights_regularizer=None,
    biases_initializer=tf.zeros_initializer(),
    biases_regularizer=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    scope=None,
):
    """Apply a layer, of the class `kind` of tf.layers; see tf.contrib.layers."""
    names = {'kernel': 'weights', 'bias': 'biases'}
    with tf.variable_scope(
        scope, default_name, [inputs], reuse=reuse, custom_getter=model_variables(names)
    ) as variable_scope:
        layer = kind(
            use_bias=bool(not normalizer_fn and biases_initializer),
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=variable_scope.name,
            dtype=inputs.dtype.base_dtype,
            _scope=variable_scope,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        collect_variable(layer.kernel, variables_collections, 'weights')
        collect_variable(layer.bias, variables_collections, 'biases')
        if normalizer_fn:
            outputs = normalizer_fn(outputs, **normalizer_params or {})
        if activation_fn:
            outputs = activation_fn(outputs)
        return collect(outputs, outputs_collections, variable_scope.name)


def model_variables(names=()):
    """Return a custom getter that adds variables to the collection MODEL_VARIABLES.

    Args:
      names: dict from the names of variables to the names that they get.
    """
    names = dict(names)

    def get(getter, name, *arguments, collections=None, **options):
        scope, slash, last = name.rpartition('/')
        keys = {*(collections or [tf.GraphKeys.GLOBAL_VARIABLES]), tf.GraphKeys.MODEL_VARIABLES}
        name = scope + slash + names.get(last, last)
        return getter(name, *arguments, collections=sorted(keys), **options)

    return get


def collect_variable(variable, collections, name):
    """Add a variable, or the parts of a partitioned one, to collections that do not have it.

    Args:
      variable: a variable, or None.
      collections: list of collections, or a dict of such lists by the name of the variable, or
        None.
      name: name of the variable in its layer.
    """
    if isinstance(collections, dict):
        collections = collections.get(name)
    for collection in collections or ():
        for part in [variable] if hasattr(variable, 'op') else variable or ():
            if not any(part is other for other in tf.get_collection(collection)):
                tf.add_to_collection(collection, part)


def collect(tensor, collections, name):
    """Add the output of a layer to a collection, or to several; return the output.

    In a collection, it has the name of the layer as one of its `aliases`.
    """
    if collections:
        tensor.aliases = [*getattr(tensor, 'aliases', ()), name.rstrip('/')]
        tf.add_to_collections(collections, tensor)
    return tensor


def _pool2d(
    kind,
    default_name,
    inputs,
    kernel_size,
    stride=2,
    padding='VALID',
    data_format='NHWC',
    outputs_collections=None,
    scope=None,
):
    """Pool each window of a batch of images; see `conv2d`."""
    data_format = name_data_format(data_format)
    with tf.name_scope(scope, default_name, [inputs]) as name:
        layer = kind(kernel_size, stride, padding, data_format, _scope=name)
        return collect(layer(tf.convert_to_tensor(inputs)), outputs_collections, name)


max_pool2d = functools.partial(_pool2d, tf_layers.MaxPooling2D, 'MaxPool2D')
avg_pool2d = functools.partial(_pool2d, tf_layers.AveragePooling2D, 'AvgPool2D')


def name_data_format(data_format):
    """Return the data format as tf.layers names it."""
    if data_format not in ('NHWC', 'NCHW'):
        raise ValueError(f'data_format has to be either NCHW or NHWC. Got {data_format!r}')
    return 'channels_first' if data_format == 'NCHW' else 'channels_last'
