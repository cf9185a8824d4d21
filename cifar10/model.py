"""Network and loss, to be read beside the book, and to be changed.

Two convolutional layers with pooling and local response normalization, two fully connected layers,
and a linear layer for the logits: 1,068,298 parameters for images of 24 x 24. The module that
builds the chosen network is network.py; docs/exercises.md changes this one.
"""

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels
from cifar10.config import CLASSIC, NUM_CLASSES


def _weights_and_biases(shape, dtype, stddev, bias):
    """Create truncated normal weights and constant biases, by default on the CPU.

    All initial values are those of the tutorial. Positive biases keep most ReLUs active at first.
    """
    initializer = tf.truncated_normal_initializer(stddev=stddev)
    with tf.device('/cpu:0'):
        weights = tf.get_variable('weights', shape, dtype, initializer)
        return weights, tf.get_variable('biases', shape[-1:], dtype, tf.constant_initializer(bias))


def conv2d(x, weights, name=None):
    """Return the convolution of [n, height, width, in] with [5, 5, in, out], of the same size."""
    return tf.nn.conv2d(x, weights, [1, 1, 1, 1], 'SAME', name=name)


def max_pool(x, name=None):
    """Return the maxima of 3 x 3 windows of [n, height, width, channels], with stride 2."""
    return cpu_kernels.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], name)


def local_response_normalization(x, name):
    """Divide each value by (1 + alpha * sum of the squares of 9 channels)^0.75, see tf.nn.lrn."""
    return cpu_kernels.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75, name=name)


def _conv_layer(x, name, num_filters, bias, dtype):
    """Add a convolutional layer whose products have the type `dtype`; return its activations."""
    with tf.variable_scope(name) as scope:
        shape = [5, 5, int(x.shape[3]), num_filters]
        weights, biases = _weights_and_biases(shape, x.dtype, 5e-2, bias)
        sums = tf.cast(conv2d(tf.cast(x, dtype), tf.cast(weights, dtype)), x.dtype)
        activations = tf.nn.relu(tf.nn.bias_add(sums, biases), name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, activations)
    return activations


def _fully_connected_layer(x, name, size, weight_decay, dtype):
    """Add a fully connected layer whose products have the type `dtype`; return its activations."""
    with tf.variable_scope(name) as scope:
        weights, biases = _weights_and_biases([int(x.shape[1]), size], x.dtype, 0.04, 0.1)
        if weight_decay:
            decay = tf.multiply(tf.nn.l2_loss(weights), weight_decay, name='weight_loss')
            tf.add_to_collection('losses', decay)
        activations = tf.nn.relu(cpu_kernels.matmul(x, weights, dtype) + biases, name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, activations)
    return activations


@cpu_kernels.per_image  # A CPU may compute parts of the batch in parallel.
def _convolutional_layers(images, hparams):
    dtype = cpu_kernels.compute_dtype(images, hparams)
    conv1 = _conv_layer(images, 'conv1', 64, 0.0, dtype)
    pool1 = max_pool(conv1, 'pool1')
    norm1 = local_response_normalization(pool1, 'norm1')
    conv2 = _conv_layer(norm1, 'conv2', 64, 0.1, dtype)
    norm2 = local_response_normalization(conv2, 'norm2')
    return max_pool(norm2, 'pool2')


def inference(images, num_classes=NUM_CLASSES, hparams=CLASSIC, *, is_training=False):
    """Build the network.

    The layers have the tutorial's names: conv1/conv1, pool1, norm1, conv2/conv2, norm2, pool2,
    local3/local3, local4/local4, softmax_linear/softmax_linear.

    Args:
      images: float32 or float16 [batch, height, width, 3] with static height and width. The
        variables get the same dtype.
      num_classes: the number of classes.
      hparams: an HParams. Each fully connected hidden layer adds fc_weight_decay * l2_loss(weights)
        to the collection 'losses'. The hidden layers multiply numbers of compute_dtype; variables
        and everything else keep the dtype of the images.
      is_training: True in a trainer. This network is the same; dropout, for example, would not be.

    Returns:
      Logits, [batch, num_classes], without softmax.
    """
    images = tf.identity(images, name='images')  # on the device of the network
    pool2 = _convolutional_layers(images, hparams)
    dtype = cpu_kernels.compute_dtype(pool2, hparams)
    flat = tf.reshape(pool2, [-1, pool2.shape[1:].num_elements()])
    local3 = _fully_connected_layer(flat, 'local3', 384, hparams.fc_weight_decay, dtype)
    local4 = _fully_connected_layer(local3, 'local4', 192, hparams.fc_weight_decay, dtype)
    with tf.variable_scope('softmax_linear') as scope:
        weights, biases = _weights_and_biases([192, num_classes], local4.dtype, 1 / 192, 0.0)
        logits = tf.add(tf.matmul(local4, weights), biases, name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, logits)
    return logits


def loss(logits, labels, scope=None, hparams=CLASSIC):
    """Return the mean cross entropy plus the weight decay of the fully connected layers.

    The cross entropy is added to the collection 'losses', which already has the weight decay of
    `inference`. The total loss is the sum of the collection.

    With e = label_smoothing, the target is 1 - e for the label, plus e / classes for every class
    (Szegedy et al., 2015, arXiv 1512.00567).

    Args:
      logits: [batch, classes], float32 or float16.
      labels: class numbers, [batch], any numeric dtype.
      scope: sum only the losses in this name scope, like 'tower_0/'; None sums all.
      hparams: an HParams.

    Returns:
      The total loss, a scalar.
    """
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.cast(labels, tf.int64), logits=logits, name='cross_entropy_per_example'
    )
    name = 'cross_entropy'
    if hparams.label_smoothing:
        uniform_cross_entropy = tf.reduce_logsumexp(logits, 1) - tf.reduce_mean(logits, 1)
        cross_entropy += hparams.label_smoothing * (uniform_cross_entropy - cross_entropy)
        # A name other than the evaluation's, or TensorBoard would join the two curves.
        name = 'smoothed_cross_entropy'
    tf.add_to_collection('losses', tf.reduce_mean(cross_entropy, name=name))
    return tf.add_n(tf.get_collection('losses', scope), name='total_loss')
