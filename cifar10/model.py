"""Network and loss.

Two convolutional layers with pooling and local response normalization, two fully connected layers,
and a linear layer for the logits: 1,068,298 parameters for images of 24 x 24.
"""

import functools

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.config import CLASSIC, NUM_CLASSES
from cifar10.system import machine

_NUM_SUB_BATCHES = 'num_sub_batches'  # graph collection
_LRN_RADIUS, _LRN_BIAS, _LRN_ALPHA, _LRN_BETA = 4, 1.0, 0.001 / 9, 0.75


def _weights_and_biases(shape, dtype, stddev, bias):
    """Create truncated normal weights and constant biases, by default on the CPU."""
    initializer = tf.truncated_normal_initializer(stddev=stddev, dtype=dtype)
    with tf.device('/cpu:0'):
        weights = tf.get_variable('weights', shape, dtype, initializer)
        return weights, tf.get_variable('biases', shape[-1:], dtype, tf.constant_initializer(bias))


def _conv_layer(x, name, bias, dtype):
    """Return the activations, and the layer's sums of products in `dtype` with their biases."""
    with tf.variable_scope(name) as scope:
        weights, biases = _weights_and_biases([5, 5, int(x.shape[3]), 64], x.dtype, 5e-2, bias)
        sums = conv2d(tf.cast(x, dtype), tf.cast(weights, dtype))
        x = _relu(sums, biases, scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, x)
    return x, (sums, biases)


def conv2d(x, weights):
    """Return the convolution of [n, height, width, in] with [5, 5, in, out], of the same size."""
    return tf.nn.conv2d(x, weights, [1, 1, 1, 1], 'SAME')


def _relu(sums, biases, name):
    return tf.nn.relu(tf.nn.bias_add(tf.cast(sums, biases.dtype), biases), name=name)


def max_pool(x, name):
    """Return the maxima of 3 x 3 windows of [n, height, width, channels], with stride 2."""
    return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], 'SAME', name=name)


def _fully_connected_layer(x, name, size, weight_decay):
    with tf.variable_scope(name) as scope:
        weights, biases = _weights_and_biases([int(x.shape[1]), size], x.dtype, 0.04, 0.1)
        if weight_decay:
            decay = tf.multiply(tf.nn.l2_loss(weights), weight_decay, name='weight_loss')
            tf.add_to_collection('losses', decay)
        x = tf.nn.relu(tf.matmul(x, weights) + biases, name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, x)
    return x


def _runs_on_gpu(x):
    device_type = tf.DeviceSpec.from_string(x.device).device_type
    if device_type is None:
        return bool(tf.config.experimental.list_physical_devices('GPU'))
    return device_type == 'GPU'


def local_response_normalization(x, name):
    """Return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75).

    On a GPU, tf.nn.lrn is one cuDNN kernel. On a CPU, the kernels of tf.nn.lrn would take a quarter
    of a training step. So a CPU computes square roots and products with a band matrix, which would
    be less exact on a GPU.

    Args:
      x: float tensor [n, height, width, channels].
      name: a name for the operation.

    Returns:
      A tensor like x.
    """
    if _runs_on_gpu(x):
        return tf.nn.lrn(x, _LRN_RADIUS, _LRN_BIAS, _LRN_ALPHA, _LRN_BETA, name=name)
    with tf.name_scope(name):
        return _band_matrix_lrn(x)


@tf.custom_gradient
def _band_matrix_lrn(x):
    """Return y = x s^-beta with s = bias + alpha band(x^2).

    band(v) sums v over the channel and up to 4 channels on either side. The gradient is
    dx = dy s^-beta - 2 alpha beta x band(dy x s^(-beta - 1))
       = dy s^-beta - x band(2 alpha beta dy y / s).
    """
    shape, channels = tf.shape(x), int(x.shape[3])
    x = tf.reshape(x, [-1, channels])
    index = np.arange(channels)
    band = np.abs(index[:, None] - index) <= _LRN_RADIUS
    s = tf.nn.bias_add(
        tf.matmul(tf.square(x), tf.constant(_LRN_ALPHA * band, x.dtype)),
        tf.constant(_LRN_BIAS, x.dtype, [channels]),
    )
    root = tf.rsqrt(s)
    scale = root * tf.sqrt(root)  # s^-0.75, several times faster than pow
    y = x * scale

    def gradient(dy):
        dy = tf.reshape(dy, [-1, channels])
        sums = tf.matmul(dy * y / s, tf.constant(2 * _LRN_ALPHA * _LRN_BETA * band, x.dtype))
        return tf.reshape(dy * scale - x * sums, shape)

    return tf.reshape(y, shape), gradient


def pad_batch(images, num_images):
    """Pad a batch of unknown size with zeros to at least `num_images` images.

    No operation may get an empty batch: TensorFlow 2.21 with oneDNN computes a wrong shape for its
    convolution.

    Args:
      images: [batch, height, width, channels].
      num_images: the smallest size of the result.

    Returns:
      A tensor like `images`.
    """
    with tf.name_scope('pad_batch'):
        num_missing = tf.maximum(num_images - tf.shape(images)[0], 0)
        zeros = tf.zeros([num_missing, *images.shape.as_list()[1:]], images.dtype)
        return tf.concat([images, zeros], 0)


def set_num_sub_batches(number):
    """Let `inference` divide each batch of the default graph into `number` sub-batches.

    The convolutional layers compute the sub-batches in parallel. On a CPU, threads then wait less
    for each other. The result is the same. Without this call, a batch is not divided.
    """
    tf.get_collection_ref(_NUM_SUB_BATCHES)[:] = [number]


def _apply_to_sub_batches(function, images):
    """Return function(images), computed in parallel for the sub-batches of the images.

    A batch of unknown size is padded, because no sub-batch may be empty; see pad_batch.
    """
    (number,) = tf.get_collection(_NUM_SUB_BATCHES) or [1]
    if number == 1:
        return function(images)
    num_images = images.shape.as_list()[0]
    with tf.name_scope('sub_batches'):
        padded = pad_batch(images, number) if num_images is None else images
        total = num_images or tf.shape(padded)[0]
        sizes = [(total + i) // number for i in range(number)]  # differ by at most 1
        first, *others = tf.split(padded, sizes, num=number)
    results = [function(first)]  # makes the variables
    for i, sub_batch in enumerate(others, 1):
        # TensorFlow adds the gradients of the parts in the alphabetical order of their names.
        scope = tf.variable_scope(tf.get_variable_scope(), reuse=True)
        with scope, tf.name_scope(f'batch_part_{i}'):
            results.append(function(sub_batch))
    joined = tf.concat(results, 0)
    return joined if num_images else joined[: tf.shape(images)[0]]


def _conv_layers(x, dtype):
    x, (sums, biases) = _conv_layer(x, 'conv1', 0.0, dtype)
    if dtype == x.dtype:
        x = max_pool(x, 'pool1')
    else:
        # Bias and relu commute with the maximum, so it is enough to convert the largest sums.
        with tf.name_scope('pool1'):
            x = _relu(max_pool(sums, 'max_pool'), biases, 'relu')
    x = local_response_normalization(x, 'norm1')
    x, _ = _conv_layer(x, 'conv2', 0.1, dtype)
    x = local_response_normalization(x, 'norm2')
    return max_pool(x, 'pool2')


def inference(images, num_classes=NUM_CLASSES, hparams=CLASSIC):
    """Build the network.

    Args:
      images: float32 or float16 [batch, height, width, 3] with static height and width. The
        variables get the same dtype. A batch of known size must have at least as many images as
        sub-batches, see set_num_sub_batches.
      num_classes: the number of classes.
      hparams: an HParams. Each fully connected hidden layer adds fc_weight_decay * l2_loss(weights)
        to the collection 'losses'. The convolutional layers multiply numbers of compute_dtype;
        variables and everything else keep the dtype of the images.

    Returns:
      Logits, [batch, num_classes], without softmax.
    """
    images = tf.identity(images, name='images')  # on the device of the network
    dtype = machine.compute_dtype(hparams.compute_dtype, _runs_on_gpu(images))
    if dtype == tf.float32:
        dtype = images.dtype
    x = _apply_to_sub_batches(functools.partial(_conv_layers, dtype=dtype), images)
    x = tf.reshape(x, [-1, x.shape[1:].num_elements()])
    x = _fully_connected_layer(x, 'local3', 384, hparams.fc_weight_decay)
    x = _fully_connected_layer(x, 'local4', 192, hparams.fc_weight_decay)
    with tf.variable_scope('softmax_linear') as scope:
        weights, biases = _weights_and_biases([192, num_classes], x.dtype, 1 / 192, 0.0)
        logits = tf.add(tf.matmul(x, weights), biases, name=scope.name)
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
