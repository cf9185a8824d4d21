"""Batch normalization (Ioffe and Szegedy, 2015) of tf.contrib.layers, as in TensorFlow 1.15."""

import tensorflow.compat.v1 as tf

from tf1_runner import layers
from tf1_runner.batch_normalization import BatchNormalization


class _Layer(BatchNormalization):
    """Layer that keeps its updates."""

    parameters = 'beta', 'gamma'

    def __init__(self, **settings):
        super().__init__(**settings)
        self.own_updates = []

    def add_update(self, updates, inputs=None):
        self.own_updates += updates


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
    *,
    fused=None,
    data_format='NHWC',
    zero_debias_moving_mean=False,
    scope=None,
):
    """Apply tf.contrib.layers.batch_norm.

    Args:
      inputs: [..., channels], or with the data format 'NCHW' [batch, channels, ...].
      decay: decay of the moving averages.
      center: see BatchNormalization.
      scale: see BatchNormalization.
      epsilon: see BatchNormalization.
      activation_fn: a function of the result, or None.
      param_initializers: dict from names of variables to initializers, or None.
      param_regularizers: dict from names of variables to regularizers, or None.
      updates_collections: collection of the moving average updates; None updates the averages
        whenever the result is computed.
      is_training: bool or scalar tensor; True: use the moments of the batch, False: the averages.
      reuse: see tf.variable_scope.
      variables_collections: see layers.collect_variable.
      outputs_collections: collection of the result, or None.
      trainable: see BatchNormalization.
      fused: see BatchNormalization; [batch, channels] can be fused, too.
      data_format: 'NHWC' or 'NCHW'.
      zero_debias_moving_mean: True to let the moving mean start at the first mean, not at 0.
      scope: see tf.variable_scope.

    Raises:
      ValueError: a wrong argument, or arguments that exclude each other.
    """
    axis = 1 if layers.name_data_format(data_format) == 'channels_first' else -1
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    is_default = updates_collections == tf.GraphKeys.UPDATE_OPS and not zero_debias_moving_mean
    fused = fused is not False and rank in (2, 4)
    if param_regularizers and not (fused or is_default):
        raise ValueError(
            'param_regularizers is not supported with updates_collections or '
            'zero_debias_moving_mean'
        )
    settings = {
        'axis': axis,
        'momentum': decay,
        'epsilon': epsilon,
        'center': center,
        'scale': scale,
        'fused': fused,
        'trainable': trainable,
        **{f'{name}_initializer': value for name, value in (param_initializers or {}).items()},
        **{f'{name}_regularizer': value for name, value in (param_regularizers or {}).items()},
    }
    with tf.variable_scope(
        scope, 'BatchNorm', [inputs], reuse=reuse, custom_getter=layers.model_variables()
    ) as variable_scope:
        settings.update(name=variable_scope.name, _scope=variable_scope, _reuse=reuse)
        if is_default and not (fused and rank == 2):
            layer = BatchNormalization(**settings)
            outputs = layer(inputs, training=is_training)
        else:
            layer = _Layer(**settings)
            layer.zero_debias = zero_debias_moving_mean
            outputs = _apply(layer, inputs, is_training, updates_collections)
        for name in ('beta', 'gamma', 'moving_mean', 'moving_variance'):
            layers.collect_variable(getattr(layer, name), variables_collections, name)
        outputs = activation_fn(outputs) if activation_fn else outputs
        return layers.collect(outputs, outputs_collections, variable_scope.name)


def _apply(layer, inputs, is_training, updates_collections):
    """Return the result of a _Layer; put its updates into collections, or run them with it."""
    images, shape = inputs, inputs.shape.as_list()
    if layer.fused and len(shape) == 2:
        if shape[1] is None:
            raise ValueError(f'Inputs {inputs.name} has undefined `C` dimension')
        images = tf.reshape(inputs, [-1, 1, 1, shape[1]])
        layer.axis = 3
    outputs = layer(images, training=is_training)
    if updates_collections is not None:
        for update in layer.own_updates:
            tf.add_to_collections(updates_collections, update)
    elif layer.own_updates:
        with tf.control_dependencies(layer.own_updates):
            outputs = tf.identity(outputs)
    return outputs if images is inputs else tf.reshape(outputs, tf.shape(inputs))
