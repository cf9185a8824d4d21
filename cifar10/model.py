"""The network and its loss: the mathematics only.

Two convolutional layers with pooling and local response normalisation, two fully connected layers, and a linear layer
that gives the logits: 1,068,298 parameters for images of 24 x 24.
"""
import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.dataset import NUM_CLASSES

_LRN_RADIUS, _LRN_BIAS, _LRN_ALPHA, _LRN_BETA = 4, 1.0, 0.001 / 9, 0.75


def _variable_on_cpu(name, shape, initializer):
    """A variable in CPU memory, where the towers of all devices share it."""
    with tf.device('/cpu:0'):
        return tf.get_variable(name, shape, tf.float32, initializer)


def _weights(shape, stddev, weight_decay):
    """Weights drawn from a truncated normal distribution; weight_decay * l2_loss(weights) joins the collection 'losses'."""
    weights = _variable_on_cpu('weights', shape, tf.truncated_normal_initializer(stddev=stddev))
    if weight_decay:
        tf.add_to_collection('losses', tf.multiply(tf.nn.l2_loss(weights), weight_decay, name='weight_loss'))
    return weights


def _biases(size, value):
    return _variable_on_cpu('biases', [size], tf.constant_initializer(value))


def _relu(x, scope):
    """Rectified x, kept in the collection of activations for the summaries."""
    activations = tf.nn.relu(x, name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, activations)
    return activations


def _convolutional(x, name, bias):
    with tf.variable_scope(name) as scope:
        weights = _weights([5, 5, int(x.shape[3]), 64], stddev=5e-2, weight_decay=0)
        x = tf.nn.conv2d(x, weights, [1, 1, 1, 1], 'SAME')
        return _relu(tf.nn.bias_add(x, _biases(64, bias)), scope)


def _max_pool(x, name):
    return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], 'SAME', name=name)


def _fully_connected(x, name, size):
    with tf.variable_scope(name) as scope:
        weights = _weights([int(x.shape[1]), size], stddev=0.04, weight_decay=0.004)
        return _relu(tf.matmul(x, weights) + _biases(size, 0.1), scope)


def local_response_normalization(x, name):
    """tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75), whose own kernels take 40% of a training step on CPUs.

    y = x s^-beta with s = bias + alpha band(x^2), where band sums over up to 4 channels to either side: a product with a
    band matrix. Its gradient is dx = dy s^-beta - 2 alpha beta x band(dy x s^(-beta - 1)).

    Args:
      x: float tensor [n, height, width, channels].
      name: of the operation.

    Returns:
      A tensor like x.
    """
    channels = int(x.shape[3])
    index = np.arange(channels)
    band_matrix = tf.constant(np.abs(index[:, None] - index) <= _LRN_RADIUS, x.dtype)

    def band(t):
        return tf.reshape(tf.matmul(tf.reshape(t, [-1, channels]), band_matrix), tf.shape(t))

    @tf.custom_gradient
    def normalize(x):
        s = _LRN_BIAS + _LRN_ALPHA * band(tf.square(x))
        root = tf.rsqrt(s)
        scale = root * tf.sqrt(root)  # s^-0.75, several times faster than pow

        def gradient(dy):
            return dy * scale - 2 * _LRN_ALPHA * _LRN_BETA * x * band(dy * x * (scale / s))
        return x * scale, gradient

    with tf.name_scope(name):
        return normalize(x)


def inference(images):
    """Builds the network.

    Args:
      images: float32 [batch, height, width, 3]; height and width must be known.

    Returns:
      Logits, float32 [batch, 10], not softmaxed.
    """
    x = _convolutional(images, 'conv1', bias=0.0)
    x = _max_pool(x, 'pool1')
    x = local_response_normalization(x, 'norm1')
    x = _convolutional(x, 'conv2', bias=0.1)
    x = local_response_normalization(x, 'norm2')
    x = _max_pool(x, 'pool2')
    x = tf.reshape(x, [-1, int(np.prod([int(size) for size in x.shape[1:]]))])
    x = _fully_connected(x, 'local3', 384)
    x = _fully_connected(x, 'local4', 192)
    with tf.variable_scope('softmax_linear') as scope:
        weights = _weights([192, NUM_CLASSES], stddev=1 / 192.0, weight_decay=0)
        logits = tf.add(tf.matmul(x, weights), _biases(NUM_CLASSES, 0.0), name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, logits)
    return logits


def loss(logits, labels, scope=None):
    """The mean cross entropy over the batch plus the weight decay of the fully connected layers.

    Adds the cross entropy to the collection 'losses', where `inference` put the weight decay, and sums the collection.

    Args:
      logits: float32 [batch, 10].
      labels: integers from 0 to 9, [batch].
      scope: name scope whose losses count, like 'tower_0/'; without it those of the whole graph do.

    Returns:
      The total loss, a float32 scalar.
    """
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.cast(labels, tf.int64), logits=logits, name='cross_entropy_per_example')
    tf.add_to_collection('losses', tf.reduce_mean(cross_entropy, name='cross_entropy'))
    return tf.add_n(tf.get_collection('losses', scope), name='total_loss')
