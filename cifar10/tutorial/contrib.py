"""The part of tf.contrib that CIFAR-10 programs use, for TensorFlow 2.

Layers have the variable names, initial values and defaults of tf.contrib.
"""

import functools
import importlib
import sys
import types

import tensorflow.compat.v1 as tf

from cifar10.input import prefetch_queue


def xavier_initializer(uniform=True, seed=None, dtype=tf.float32):
    """Return the initializer of Glorot and Bengio, 2010."""
    return (tf.glorot_uniform_initializer if uniform else tf.glorot_normal_initializer)(seed, dtype)


def variance_scaling_initializer(
    factor=2.0, mode='FAN_IN', uniform=False, seed=None, dtype=tf.float32
):
    """Return the initializer of He et al., 2015."""
    return tf.variance_scaling_initializer(
        factor, mode.lower(), 'uniform' if uniform else 'truncated_normal', seed, dtype
    )


def l1_regularizer(scale):
    """Return a function of weights: scale * sum |w|."""
    return lambda weights: scale * tf.reduce_sum(tf.abs(weights))


def l2_regularizer(scale):
    """Return a function of weights: scale * sum w^2 / 2."""
    return lambda weights: scale * tf.nn.l2_loss(weights)


def flatten(inputs):
    """Reshape [batch, ...] to [batch, features]."""
    return tf.reshape(inputs, [-1, inputs.shape[1:].num_elements()])


def conv2d(inputs, num_outputs, kernel_size, stride=1, padding='SAME', **others):
    """Convolve [batch, height, width, channels]; apply bias or normalization, and activation.

    `others` are arguments of `_layer`.
    """
    (height, width), strides = _pair(kernel_size), [1] + _pair(stride) + [1]
    shape = [height, width, int(inputs.shape[3]), num_outputs]
    return _layer(
        'Conv', shape, lambda weights: tf.nn.conv2d(inputs, weights, strides, padding), **others
    )


def fully_connected(inputs, num_outputs, activation_fn=tf.nn.relu, **others):
    """Multiply [batch, features] by weights; apply bias or normalization, and activation.

    `others` are arguments of `_layer`.
    """
    shape = [int(inputs.shape[1]), num_outputs]
    return _layer(
        'fully_connected',
        shape,
        lambda weights: tf.matmul(inputs, weights),
        activation_fn=activation_fn,
        **others,
    )


def _layer(
    name,
    shape,
    product,
    activation_fn=tf.nn.relu,
    normalizer_fn=None,
    normalizer_params=None,
    weights_initializer=None,
    weights_regularizer=None,
    biases_initializer=tf.zeros_initializer,
    trainable=True,
    reuse=None,
    scope=None,
):
    with tf.variable_scope(scope, name, reuse=reuse):
        x = product(
            tf.get_variable(
                'weights',
                shape,
                initializer=weights_initializer or xavier_initializer(),
                regularizer=weights_regularizer,
                trainable=trainable,
            )
        )
        if normalizer_fn:
            x = normalizer_fn(x, **normalizer_params or {})
        elif biases_initializer:
            x = tf.nn.bias_add(
                x,
                tf.get_variable(
                    'biases', shape[-1:], initializer=biases_initializer, trainable=trainable
                ),
            )
        return activation_fn(x) if activation_fn else x


def _pool2d(pool, inputs, kernel_size, stride=2, padding='VALID', scope=None):
    """Pool windows of [batch, height, width, channels]."""
    return pool(
        inputs, [1] + _pair(kernel_size) + [1], [1] + _pair(stride) + [1], padding, name=scope
    )


def _pair(size):
    return [size, size] if isinstance(size, int) else list(size)


def batch_norm(
    inputs,
    decay=0.999,
    center=True,
    scale=False,
    epsilon=0.001,
    activation_fn=None,
    updates_collections=tf.GraphKeys.UPDATE_OPS,
    is_training=True,
    trainable=True,
    fused=None,
    reuse=None,
    scope=None,
):
    """Apply batch normalization over all axes but the last (Ioffe and Szegedy, 2015).

    Args:
      inputs: [..., channels].
      decay: decay of the moving averages.
      center: create the variable beta if True.
      scale: create the variable gamma if True.
      epsilon: number added to the variance.
      activation_fn: a function of the result, or None.
      updates_collections: collection of the moving average updates; None updates the averages
        whenever the result is computed.
      is_training: bool or scalar tensor; True: use the moments of the batch, False: the averages.
      trainable: beta and gamma are trainable if True.
      fused: ignored.
      reuse: see tf.variable_scope.
      scope: see tf.variable_scope.
    """
    with tf.variable_scope(scope, 'BatchNorm', reuse=reuse):

        def variable(name, initializer, is_trainable):
            return tf.get_variable(
                name, inputs.shape[-1:], inputs.dtype, initializer, trainable=is_trainable
            )

        beta = variable('beta', tf.zeros_initializer(), trainable) if center else None
        gamma = variable('gamma', tf.ones_initializer(), trainable) if scale else None
        averages = [
            variable('moving_mean', tf.zeros_initializer(), False),
            variable('moving_variance', tf.ones_initializer(), False),
        ]
        training = tf.cast(is_training, tf.bool)
        of_batch = tf.nn.moments(inputs, list(range(inputs.shape.ndims - 1)))
        used = [tf.where_v2(training, new, average) for new, average in zip(of_batch, averages)]
        updates = [
            tf.assign_sub(average, (1 - decay) * (average - new))
            for new, average in zip(used, averages)
        ]
        if updates_collections is not None:
            for update in updates:
                tf.add_to_collection(updates_collections, update)
        with tf.control_dependencies(updates if updates_collections is None else []):
            x = tf.nn.batch_normalization(inputs, used[0], used[1], beta, gamma, epsilon)
        return activation_fn(x) if activation_fn else x


def _prefetch_queue(tensors, capacity=8, num_threads=1, name=None):
    """Return a queue of batches [images, labels], filled by a queue runner, as slim does."""
    images, labels = tensors
    return prefetch_queue(images, labels, capacity, num_threads)


SUMMARIES = {  # names before 1.0
    'scalar_summary': lambda tags, values, collections=None, name=None: tf.summary.scalar(
        tags, values, collections
    ),
    'histogram_summary': lambda tag, values, collections=None, name=None: tf.summary.histogram(
        tag, values, collections
    ),
    'image_summary': lambda tag, tensor, max_images=3, collections=None, name=None: (
        tf.summary.image(tag, tensor, max_images, collections)
    ),
    'audio_summary': tf.summary.audio,
    'merge_summary': tf.summary.merge,
    'merge_all_summaries': tf.summary.merge_all,
}
_MODULES = {
    'contrib': {},
    'contrib.deprecated': SUMMARIES,
    'contrib.framework': {
        'get_global_step': tf.train.get_global_step,
        'get_or_create_global_step': tf.train.get_or_create_global_step,
    },
    'contrib.layers': {
        'avg_pool2d': functools.partial(_pool2d, tf.nn.avg_pool),
        'batch_norm': batch_norm,
        'conv2d': conv2d,
        'flatten': flatten,
        'fully_connected': fully_connected,
        'l1_regularizer': l1_regularizer,
        'l2_regularizer': l2_regularizer,
        'max_pool2d': functools.partial(_pool2d, tf.nn.max_pool),
        'one_hot_encoding': lambda labels, num_classes: tf.one_hot(labels, num_classes),
        'variance_scaling_initializer': variance_scaling_initializer,
        'xavier_initializer': xavier_initializer,
        'xavier_initializer_conv2d': xavier_initializer,
    },
    'contrib.layers.python': {},
    'contrib.layers.python.layers': {'batch_norm': batch_norm},
    'contrib.slim': {},
    'contrib.slim.prefetch_queue': {'prefetch_queue': _prefetch_queue},
}
_SUCCESSORS = {'slim': 'tf_slim', 'layers': 'tf_slim.layers', 'framework': 'tf_slim'}


class _Module(types.ModuleType):
    """Module of tf.contrib, with names of _MODULES and, if installed, of tf_slim."""

    __path__ = []

    def __getattr__(self, name):
        successor = _SUCCESSORS.get(self.__name__.rpartition('.')[2])
        hint = ''
        if successor:
            try:
                return getattr(importlib.import_module(successor), name)
            except ImportError:
                hint = ' (tf_slim may have it)'
            except AttributeError:
                pass
        raise AttributeError(
            f'{self.__name__.replace("tensorflow", "tf")}.{name} is not in this TensorFlow{hint}'
        )


def install():
    """Create the modules `tensorflow.contrib...`; return the top one."""
    for path, names in _MODULES.items():
        module = sys.modules['tensorflow.' + path] = _Module('tensorflow.' + path)
        vars(module).update(names)
        owner, _, name = path.rpartition('.')
        if owner:
            setattr(sys.modules['tensorflow.' + owner], name, module)
    return sys.modules['tensorflow.contrib']
