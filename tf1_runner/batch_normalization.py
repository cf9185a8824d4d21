"""Batch normalization (Ioffe and Szegedy, 2015) of tf.layers and tf.contrib.layers.

Names, initial values, defaults, results, updates and errors are those of TensorFlow 1.15.
"""

import tensorflow.compat.v1 as tf

from tf1_runner.private_api import InputSpec, assign_moving_average, layers as tf_layers


class BatchNormalization(tf_layers.Layer):
    """Layer that normalizes with the mean and variance over all axes but `axis`.

    In training, these are the batch's, and operations in UPDATE_OPS move the averages to them;
    else, they are the averages. Unless `fused` is False, TensorFlow's fused operation is used for
    four axes, whose variance for the average is the unbiased one; elsewhere it is the biased one.
    The initializers and regularizers are those of tf.get_variable.

    Args:
      axis: int.
      momentum: decay of the moving averages.
      epsilon: number added to the variance.
      center: create the variable beta if True.
      scale: create the variable gamma if True.
      renorm: must be False: there is no batch renormalization.
      renorm_clipping: without effect; tf_slim gives it.
      renorm_momentum: likewise.
      fused: see above.
      trainable: beta and gamma are trainable, and there are updates, if True.
      adjustment: must be None.
      name: see tf.variable_scope.
      options: see tf.layers.Layer.

    Raises:
      TypeError: renorm or adjustment is given.
      ValueError: the axis is wrong for the shape of the inputs.
    """

    # tf.contrib.layers.batch_norm has other values: the order of the variables, and True for a
    # moving mean that starts at the first mean.
    parameters, zero_debias = ('gamma', 'beta'), False

    def __init__(
        self,
        axis=-1,
        momentum=0.99,
        epsilon=1e-3,
        center=True,
        scale=True,
        beta_initializer=tf.zeros_initializer(),
        gamma_initializer=tf.ones_initializer(),
        moving_mean_initializer=tf.zeros_initializer(),
        moving_variance_initializer=tf.ones_initializer(),
        beta_regularizer=None,
        gamma_regularizer=None,
        *,
        renorm=False,
        renorm_clipping=None,
        renorm_momentum=0.99,
        fused=None,
        trainable=True,
        adjustment=None,
        name=None,
        **options,
    ):
        super().__init__(trainable=trainable, name=name, **options)
        if renorm or adjustment:
            raise TypeError('BatchNormalization takes neither renorm nor adjustment')
        self.axis = axis
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.fused = fused is not False

    def build(self, input_shape):
        """Create the variables for inputs of a shape."""
        shape = tf.TensorShape(input_shape)
        if not shape.ndims or not -shape.ndims <= self.axis < shape.ndims:
            raise ValueError(f'Invalid axis {self.axis} for inputs of the shape {shape}')
        self.axis %= shape.ndims
        size = shape.as_list()[self.axis]
        if size is None:
            raise ValueError(f'Input has undefined `axis` dimension. Input shape: {shape}')
        self.input_spec = InputSpec(ndim=shape.ndims, axes={self.axis: size})
        self.fused = self.fused and shape.ndims == 4 and self.axis in (1, 3)
        dtype = tf.as_dtype(self.dtype or tf.float32)
        dtype = tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype

        def weight(name, initializer, regularizer=None, trainable=False):
            return self.add_weight(name, [size], dtype, initializer, regularizer, trainable)

        self.gamma = self.beta = None
        for name in self.parameters:
            if self.scale if name == 'gamma' else self.center:
                settings = [
                    getattr(self, f'{name}_{kind}') for kind in ('initializer', 'regularizer')
                ]
                setattr(self, name, weight(name, *settings, trainable=True))
        # The averages have no parts: assign_moving_average could not update them.
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)
        self.moving_mean = weight('moving_mean', self.moving_mean_initializer)
        self.moving_variance = weight('moving_variance', self.moving_variance_initializer)
        self._scope.set_partitioner(partitioner)
        self.built = True

    @tf.autograph.experimental.do_not_convert
    def call(self, inputs, training=False):
        """Return the normalized inputs.

        Args:
          inputs: tensor.
          training: bool or scalar tensor.
        """
        training = False if training is None else training
        if self.fused:
            return self._normalize_fused(inputs, training)
        return self._normalize(inputs, training)

    def _normalize_fused(self, inputs, training):
        shape = self.moving_mean.shape
        gamma = tf.ones(shape) if self.gamma is None else self.gamma
        beta = tf.zeros(shape) if self.beta is None else self.beta
        averages = {'mean': self.moving_mean, 'variance': self.moving_variance}
        data_format = 'NCHW' if self.axis == 1 else 'NHWC'
        options = {'epsilon': self.epsilon, 'data_format': data_format}

        def normalize(**named):
            return tuple(tf.nn.fused_batch_norm(inputs, gamma, beta, **options, **named))

        outputs, *moments = _cond(
            training, normalize, lambda: normalize(is_training=False, **averages)
        )
        self._update_averages(moments, training)
        return outputs

    def _normalize(self, inputs, training):
        rank = inputs.shape.ndims

        def broadcast(value):
            if value is None or self.axis == rank - 1:
                return value
            return tf.reshape(value, [-1 if axis == self.axis else 1 for axis in range(rank)])

        mean, variance = self.moving_mean, self.moving_variance
        if _is_possible(training):
            reduced = [axis for axis in range(rank) if axis != self.axis]
            moments = tf.nn.moments(tf.cast(inputs, mean.dtype.base_dtype), reduced)
            averages = mean, variance
            mean, variance = _cond(
                training, lambda: moments, lambda: tuple(map(tf.convert_to_tensor, averages))
            )
            self._update_averages((mean, variance), training)
        mean, variance, scale, offset = [
            None if value is None else tf.cast(broadcast(value), inputs.dtype)
            for value in (mean, variance, self.gamma, self.beta)
        ]
        outputs = tf.nn.batch_normalization(inputs, mean, variance, offset, scale, self.epsilon)
        outputs.set_shape(inputs.shape)
        return outputs

    def _update_averages(self, moments, training):
        """Add the updates of the moving averages, unless the graph never trains."""
        if not _is_possible(training):
            return
        averages = self.moving_mean, self.moving_variance
        self.add_update([self._update(*pair, training) for pair in zip(averages, moments)])

    def _update(self, average, value, training):
        zero_debias = self.zero_debias and average is self.moving_mean
        return _cond(
            training,
            lambda: assign_moving_average(average, value, self.momentum, zero_debias),
            lambda: tf.convert_to_tensor(average),
        )


def batch_normalization(
    inputs,
    axis=-1,
    momentum=0.99,
    epsilon=1e-3,
    center=True,
    scale=True,
    beta_initializer=tf.zeros_initializer(),
    gamma_initializer=tf.ones_initializer(),
    moving_mean_initializer=tf.zeros_initializer(),
    moving_variance_initializer=tf.ones_initializer(),
    beta_regularizer=None,
    gamma_regularizer=None,
    *,
    training=False,
    trainable=True,
    name=None,
    reuse=None,
    fused=None,
):
    """Apply a new BatchNormalization, which has most of the arguments.

    The other ones are `inputs`, a tensor; `training`, a bool or scalar tensor; and `reuse`, see
    tf.variable_scope. **The default is not to train.**
    """
    settings = dict(locals())
    for argument in ('inputs', 'training', 'reuse'):
        del settings[argument]
    return BatchNormalization(_scope=name, _reuse=reuse, **settings)(inputs, training=training)


def _cond(condition, if_true, if_false):
    """Return tf.cond for a tensor; for a known value, the result of one of the functions."""
    value = tf.get_static_value(condition)
    if value is None:
        return tf.cond(condition, if_true, if_false)
    return if_true() if value else if_false()


def _is_possible(condition):
    return tf.get_static_value(condition) in (None, True)
