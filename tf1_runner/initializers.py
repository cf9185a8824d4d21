"""Initializers and regularizers of tf.contrib.layers, with the results of TensorFlow 1.15."""

import math
import numbers

import numpy as np
import tensorflow.compat.v1 as tf


def xavier_initializer(uniform=True, seed=None, dtype=tf.float32):
    """Return the initializer of Glorot and Bengio, 2010."""
    return variance_scaling_initializer(1.0, 'FAN_AVG', uniform, seed, dtype)


def variance_scaling_initializer(
    factor=2.0, mode='FAN_IN', uniform=False, seed=None, dtype=tf.float32
):
    """Return the initializer of He et al., 2015.

    Args:
      factor: the variance of the weights is about factor / n.
      mode: what n is: 'FAN_IN', 'FAN_OUT', or their mean, 'FAN_AVG'.
      uniform: True for a uniform distribution, False for a truncated normal one.
      seed: int, or None.
      dtype: type of the weights.

    Raises:
      TypeError: another mode, or a type that is not a floating one.
    """
    if not dtype.is_floating:
        raise TypeError('Cannot create initializer for non-floating point type.')
    if mode not in ('FAN_IN', 'FAN_OUT', 'FAN_AVG'):
        raise TypeError(f'Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]')

    def initialize(shape, dtype=dtype, partition_info=None):
        if not dtype.is_floating:
            raise TypeError('Cannot create initializer for non-floating point type.')
        sizes = [int(size) for size in shape] or [1]
        fans = np.prod(sizes[:-2]) * sizes[-2:][0], np.prod(sizes[:-2]) * sizes[-1]
        n = {'FAN_IN': fans[0], 'FAN_OUT': fans[1], 'FAN_AVG': sum(fans) / 2}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return tf.random_uniform(shape, -limit, limit, dtype, seed)
        # The truncation makes the standard deviation smaller.
        return tf.truncated_normal(shape, 0.0, math.sqrt(1.3 * factor / n), dtype, seed)

    return initialize


def l1_regularizer(scale, scope=None):
    """Return a function of weights: scale * sum |w|; see `_regularizer`."""
    return _regularizer(
        'l1_regularizer', lambda weights: tf.reduce_sum(tf.abs(weights)), scale, scope
    )


def l2_regularizer(scale, scope=None):
    """Return a function of weights: scale * sum w^2 / 2; see `_regularizer`."""
    return _regularizer('l2_regularizer', tf.nn.l2_loss, scale, scope)


def _regularizer(name, penalty, scale, scope):
    """Return a function of weights: scale * penalty.

    Args:
      name: default name of the operation.
      penalty: function of the weights, to a scalar.
      scale: float, or a scalar tensor; for 0.0, the result of the function is None.
      scope: name of the operation, or None.

    Raises:
      ValueError: the scale is an integer, or negative.
    """
    if isinstance(scale, numbers.Integral):
        raise ValueError(f'scale cannot be an integer: {scale}')
    if isinstance(scale, numbers.Real) and scale < 0:
        raise ValueError(f'Setting a scale less than 0 on a regularizer: {scale}')
    if isinstance(scale, numbers.Real) and scale == 0:
        return lambda weights: None

    def regularize(weights):
        with tf.name_scope(scope, name, [weights]) as full_name:
            factor = tf.convert_to_tensor(scale, weights.dtype.base_dtype, name='scale')
            return tf.multiply(factor, penalty(weights), full_name)

    return regularize
