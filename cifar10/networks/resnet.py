"""ResNet-20: a residual network with batch normalization.

Kaiming He et al., "Deep residual learning for image recognition", 2015, arXiv 1512.03385, section
4.2. A first convolution, three groups of three blocks with 16, 32 and 64 filters, the average over
all positions, and a linear layer. A block adds two convolutions to its input. The recipe `classic`
is too slow for it: see docs/recipes.md.
"""

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels
from cifar10.config import CLASSIC, NUM_CLASSES

_BLOCKS_PER_GROUP = 3
_MOMENTUM, _EPSILON = 0.9, 1e-3  # of batch normalization


def _conv_layer(x, name, num_filters, stride, is_training):
    """Return the normalized sums of a 3 x 3 convolution without biases.

    The initial weights have the standard deviation sqrt(2 / inputs of a sum) of He et al., 2015,
    arXiv 1502.01852.
    """
    with tf.variable_scope(name):
        initializer = tf.variance_scaling_initializer(2.0, 'fan_in')
        shape = [3, 3, int(x.shape[3]), num_filters]
        weights = tf.get_variable('weights', shape, initializer=initializer)
        sums = tf.nn.conv2d(x, tf.cast(weights, x.dtype), [1, stride, stride, 1], 'SAME')
        return _batch_norm(sums, is_training)


def _batch_norm(x, is_training):
    """Normalize each channel, by the batch in training, else by moving averages of its statistics.

    The updates of the moving averages are in the collection UPDATE_OPS.
    """
    size = [int(x.shape[3])]
    scale = tf.get_variable('scale', size, initializer=tf.ones_initializer())
    offset = tf.get_variable('offset', size, initializer=tf.zeros_initializer())
    statistics = [
        tf.get_variable(name, size, initializer=initializer(), trainable=False)
        for name, initializer in [
            ('moving_mean', tf.zeros_initializer),
            ('moving_variance', tf.ones_initializer),
        ]
    ]
    if not is_training:
        y, _, _ = tf.nn.fused_batch_norm(
            x, scale, offset, *statistics, epsilon=_EPSILON, is_training=False
        )
        return y
    y, *values = tf.nn.fused_batch_norm(x, scale, offset, epsilon=_EPSILON)
    for variable, value in zip(statistics, values):
        update = variable.assign_sub((1 - _MOMENTUM) * (variable - value))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    return y


def _block(x, name, num_filters, stride, is_training):
    """Add two convolutions to `x`, which loses positions and gains zero channels if necessary."""
    with tf.variable_scope(name):
        y = tf.nn.relu(_conv_layer(x, 'conv1', num_filters, stride, is_training))
        y = _conv_layer(y, 'conv2', num_filters, 1, is_training)
        missing = num_filters - int(x.shape[3])
        if missing:
            x = tf.pad(x[:, ::stride, ::stride], [[0, 0]] * 3 + [[missing // 2, missing // 2]])
        activations = tf.nn.relu(x + y, name='output')
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, activations)
    return activations


def inference(images, num_classes=NUM_CLASSES, hparams=CLASSIC, *, is_training=False):
    """Build the network; see cifar10.model.inference for arguments and result."""
    images = tf.identity(images, name='images')  # on the device of the network
    x = tf.cast(images, cpu_kernels.compute_dtype(images, hparams))
    x = tf.nn.relu(_conv_layer(x, 'conv', 16, 1, is_training))
    for group, num_filters in enumerate([16, 32, 64]):
        for i in range(_BLOCKS_PER_GROUP):
            stride = 2 if group and not i else 1
            x = _block(x, f'group{group + 1}_block{i + 1}', num_filters, stride, is_training)
    features = tf.reduce_mean(tf.cast(x, images.dtype), [1, 2], name='average_pool')
    with tf.variable_scope('softmax_linear') as scope:
        initializer = tf.truncated_normal_initializer(stddev=1 / 64)
        weights = tf.get_variable('weights', [64, num_classes], initializer=initializer)
        biases = tf.get_variable('biases', [num_classes], initializer=tf.zeros_initializer())
        return tf.add(tf.matmul(features, weights), biases, name=scope.name)
