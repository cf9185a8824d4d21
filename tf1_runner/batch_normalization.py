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
    The initializers, regularizers and constraints are those of tf.get_variable.

    Args:
      axis: int, or list of ints.
      momentum: decay of the moving averages.
      epsilon: number added to the variance.
      center: create the variable beta if True.
      scale: create the variable gamma if True.
      renorm: True for batch renormalization (Ioffe, 2017).
      renorm_clipping: dict of the limits 'rmin', 'rmax', 'dmax' of its corrections, or None.
      renorm_momentum: decay of its averages.
      fused: see above.
      trainable: beta and gamma are trainable, and there are updates, if True.
      virtual_batch_size: size of the parts of the batch that are normalized separately, or None.
      adjustment: function of the shape of the inputs, to a factor and a term for the normalized
        inputs in training; or None.
      name: see tf.variable_scope.
      options: see tf.layers.Layer.

    Raises:
      TypeError: the axis is neither an int nor a list.
      ValueError: another argument is wrong for itself or for the shape of the inputs.
    """

    # tf.contrib.layers.batch_norm has other values: the order of the variables, a weight for each
    # of the inputs, and True for a moving mean that starts at the first mean.
    parameters, batch_weights, zero_debias = ('gamma', 'beta'), None, False

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
        beta_constraint=None,
        gamma_constraint=None,
        renorm=False,
        renorm_clipping=None,
        renorm_momentum=0.99,
        fused=None,
        trainable=True,
        virtual_batch_size=None,
        adjustment=None,
        name=None,
        **options,
    ):
        super().__init__(trainable=trainable, name=name, **options)
        if not isinstance(axis, (int, list)):
            raise TypeError(f'axis must be int or list, type given: {type(axis)}')
        if renorm and set(renorm_clipping or ()) - {'rmin', 'rmax', 'dmax'}:
            raise ValueError(f'renorm_clipping {renorm_clipping} has keys not in rmin, rmax, dmax')
        self.has_parts = virtual_batch_size is not None
        if self.has_parts and adjustment:
            raise ValueError('When using virtual_batch_size, adjustment cannot be specified')
        self.axis = [axis] if isinstance(axis, int) else axis
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.renorm, self.renorm_momentum = renorm, renorm_momentum
        self.renorm_clipping = renorm_clipping or {}
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self.fused = fused is not False and not (renorm or self.has_parts or adjustment)

    def compute_output_shape(self, input_shape):
        """Return the shape of the inputs."""
        return tf.TensorShape(input_shape)

    def build(self, input_shape):
        """Create the variables for inputs of a shape."""
        sizes = self._find_sizes(tf.TensorShape(input_shape))
        rank = len(input_shape)
        self.input_spec = InputSpec(ndim=rank, axes=dict(sizes))
        self.fused = self.fused and rank == 4 and list(sizes) in ([1], [3])
        shape = list(sizes.values())
        self.axis = list(sizes)
        if len(sizes) > 1 or self.has_parts:
            shape = [sizes.get(axis, 1) for axis in range(rank)]
        if self.has_parts:  # They are on axis 1.
            shape.insert(1, 1)
            self.axis = [axis + 1 for axis in sizes]
        dtype = tf.as_dtype(self.dtype or tf.float32)
        dtype = tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype

        def weight(name, initializer, regularizer=None, constraint=None, trainable=False):
            return self.add_weight(
                name, shape, dtype, initializer, regularizer, trainable, constraint
            )

        def deviation_initializer(shape, dtype=None, partition_info=None):
            return tf.sqrt(self.moving_variance_initializer(shape, dtype))

        self.gamma = self.beta = None
        for name in self.parameters:
            if self.scale if name == 'gamma' else self.center:
                kinds = 'initializer', 'regularizer', 'constraint'
                settings = [getattr(self, f'{name}_{kind}') for kind in kinds]
                setattr(self, name, weight(name, *settings, trainable=True))
        # The averages have no parts: assign_moving_average could not update them.
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)
        self.moving_mean = weight('moving_mean', self.moving_mean_initializer)
        self.moving_variance = weight('moving_variance', self.moving_variance_initializer)
        if self.renorm:
            self.moving_stddev = weight('moving_stddev', deviation_initializer)
            self.renorm_mean = weight('renorm_mean', self.moving_mean_initializer)
            self.renorm_stddev = weight('renorm_stddev', deviation_initializer)
        self._scope.set_partitioner(partitioner)
        self.built = True

    def _find_sizes(self, shape):
        """Return a dict of the axes, which are not negative, and of their sizes; or raise."""
        if not shape.ndims:
            raise ValueError(f'Input has undefined rank: {shape}')
        axes = [axis + shape.ndims if axis < 0 else axis for axis in self.axis]
        for axis in axes:
            if not 0 <= axis < shape.ndims:
                raise ValueError(f'Invalid axis: {axis}')
        if len(set(axes)) < len(axes):
            raise ValueError(f'Duplicate axis: {axes}')
        if self.has_parts and (self.virtual_batch_size <= 0 or 0 in axes):
            raise ValueError(
                'virtual_batch_size must be positive and divide the batch, and axis cannot include 0'
            )
        sizes = {axis: shape.as_list()[axis] for axis in axes}
        if None in sizes.values():
            raise ValueError(f'Input has undefined `axis` dimension. Input shape: {shape}')
        return sizes

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
        if not self.has_parts:
            return self._normalize(inputs, training)
        shape = [-1, *inputs.shape.as_list()[1:]]
        parts = tf.reshape(inputs, [self.virtual_batch_size, *shape])
        return tf.reshape(self._normalize(parts, training), shape)

    def _normalize_fused(self, inputs, training):
        shape = self.moving_mean.shape
        gamma = tf.ones(shape) if self.gamma is None else self.gamma
        beta = tf.zeros(shape) if self.beta is None else self.beta
        averages = {'mean': self.moving_mean, 'variance': self.moving_variance}
        data_format = 'NCHW' if self.axis == [1] else 'NHWC'
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
        reduced = [axis for axis in range(rank) if axis not in self.axis]
        if self.has_parts:
            reduced.remove(1)

        def broadcast(value):
            if value is None or value.shape.ndims == rank or self.axis == [rank - 1]:
                return value
            return tf.reshape(value, [-1 if axis in self.axis else 1 for axis in range(rank)])

        scale, offset = broadcast(self.gamma), broadcast(self.beta)
        mean, variance = self.moving_mean, self.moving_variance
        if _is_possible(training):
            if self.adjustment:
                factor, term = self.adjustment(tf.shape(inputs))
                factor = _cond(training, lambda: factor, lambda: tf.ones_like(factor))
                term = _cond(training, lambda: term, lambda: tf.zeros_like(term))
                scale, offset = _compose(factor, term, scale, offset)
            options = {'keepdims': self.has_parts or len(self.axis) > 1}
            values = tf.cast(inputs, mean.dtype.base_dtype)
            if self.batch_weights is None:
                moments = tf.nn.moments(values, reduced, **options)
            else:
                weights = tf.reshape(self.batch_weights, [-1] + [1] * (rank - 1))
                moments = tf.nn.weighted_moments(values, reduced, weights, **options)
            averages = mean, variance
            mean, variance = _cond(
                training, lambda: moments, lambda: tuple(map(tf.convert_to_tensor, averages))
            )
            moments = mean, variance
            if self.has_parts:
                moments = [tf.reduce_mean(moment, 1, keepdims=True) for moment in moments]
            if self.renorm:
                r, d, *moments = self._renormalize(*moments, training)
                scale, offset = _compose(broadcast(r), broadcast(d), scale, offset)
            self._update_averages(moments, training)
        mean, variance, scale, offset = [
            None if value is None else tf.cast(value, inputs.dtype)
            for value in (broadcast(mean), broadcast(variance), scale, offset)
        ]
        outputs = tf.nn.batch_normalization(inputs, mean, variance, offset, scale, self.epsilon)
        outputs.set_shape(inputs.shape)
        return outputs

    def _renormalize(self, mean, variance, training):
        """Return the corrections r and d of Ioffe, 2017, the mean and the variance."""
        deviation = tf.sqrt(variance + self.epsilon)
        average = tf.maximum(self.renorm_stddev, self.epsilon**0.5)
        r, d = deviation / average, (mean - self.renorm_mean) / average
        with tf.control_dependencies([r, d]):  # They use the averages before the update.
            mean, deviation = tf.identity(mean), tf.identity(deviation)
        rmin, rmax, dmax = [self.renorm_clipping.get(key) for key in ('rmin', 'rmax', 'dmax')]
        r = r if rmin is None else tf.maximum(r, rmin)
        r = r if rmax is None else tf.minimum(r, rmax)
        d = d if dmax is None else tf.minimum(tf.maximum(d, -dmax), dmax)
        r = _cond(training, lambda: r, lambda: tf.ones_like(r))
        d = _cond(training, lambda: d, lambda: tf.zeros_like(d))
        updates = [
            self._update(average, moment, training, self.renorm_momentum)
            for average, moment in [(self.renorm_mean, mean), (self.renorm_stddev, deviation)]
        ]
        with tf.control_dependencies(updates):
            mean, variance = tf.identity(mean), tf.identity(variance)
        return tf.stop_gradient(r), tf.stop_gradient(d), mean, variance

    def _update_averages(self, moments, training):
        """Add the updates of the moving averages, unless the graph never trains."""
        if not _is_possible(training):
            return
        mean, variance = moments

        def update_variance():
            if not self.renorm:
                return self._update(self.moving_variance, variance, True, self.momentum)
            deviation = tf.sqrt(variance + self.epsilon)
            deviation = self._update(self.moving_stddev, deviation, True, self.momentum)
            squared = tf.nn.relu(deviation**2 - self.epsilon)
            return tf.assign(self.moving_variance, squared, name='AssignNewValue')

        mean_update = self._update(self.moving_mean, mean, training, self.momentum)
        variance_update = _cond(training, update_variance, lambda: self.moving_variance)
        self.add_update([mean_update, variance_update])

    def _update(self, average, value, training, momentum):
        zero_debias = self.zero_debias and average is self.moving_mean
        return _cond(
            training,
            lambda: assign_moving_average(average, value, momentum, zero_debias),
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
    beta_constraint=None,
    gamma_constraint=None,
    training=False,
    trainable=True,
    name=None,
    reuse=None,
    renorm=False,
    renorm_clipping=None,
    renorm_momentum=0.99,
    fused=None,
    virtual_batch_size=None,
    adjustment=None,
):
    """Apply a new BatchNormalization, which has most of the arguments.

    The other ones are `inputs`, a tensor; `training`, a bool or scalar tensor; and `reuse`, see
    tf.variable_scope. **The default is not to train.**
    """
    settings = dict(locals())
    for argument in ('inputs', 'training', 'reuse'):
        del settings[argument]
    return BatchNormalization(_scope=name, _reuse=reuse, **settings)(inputs, training=training)


def _compose(scale, offset, then_scale, then_offset):
    """Return the scale and offset of two transforms, one after the other; None means no change."""
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    return scale, offset if then_offset is None else offset + then_offset


def _cond(condition, if_true, if_false):
    """Return tf.cond for a tensor; for a known value, the result of one of the functions."""
    value = tf.get_static_value(condition)
    if value is None:
        return tf.cond(condition, if_true, if_false)
    return if_true() if value else if_false()


def _is_possible(condition):
    return tf.get_static_value(condition) in (None, True)
