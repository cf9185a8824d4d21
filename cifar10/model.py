"""Network and loss.

Two convolutional layers with pooling and local response normalization, two fully connected layers,
and a linear layer for the logits: 1,068,298 parameters for images of 24 x 24.
"""

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels
from cifar10.config import CLASSIC, NUM_CLASSES
from cifar10.system import machine

CONV1_FILTERS = 64
CONV2_FILTERS = 64


def _weights_and_biases(shape, dtype, stddev, bias):
    """Create truncated normal weights and constant biases, by default on the CPU."""
    initializer = tf.truncated_normal_initializer(stddev=stddev, dtype=dtype)
    with tf.device('/cpu:0'):
        weights = tf.get_variable('weights', shape, dtype, initializer)
        return weights, tf.get_variable('biases', shape[-1:], dtype, tf.constant_initializer(bias))


def _conv_layer(x, name, num_filters, bias, dtype):
    """Return the activations of a batch, both SubBatches; the products are of type `dtype`."""
    with tf.variable_scope(name) as scope:
        shape = [5, 5, int(x.whole.shape[3]), num_filters]
        weights, biases = _weights_and_biases(shape, x.whole.dtype, 5e-2, bias)
        weights = tf.cast(weights, dtype)

        def layer(x, name):
            sums = tf.cast(conv2d(tf.cast(x, dtype), weights), x.dtype)
            return tf.nn.relu(tf.nn.bias_add(sums, biases), name=name)

        x = x.apply(layer, scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, x.whole)
    return x


def conv2d(x, weights):
    """Return the convolution of [n, height, width, in] with [5, 5, in, out], of the same size."""
    return tf.nn.conv2d(x, weights, [1, 1, 1, 1], 'SAME')


def max_pool(x, name):
    """Return the maxima of 3 x 3 windows of [n, height, width, channels], with stride 2."""
    return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], 'SAME', name=name)


def local_response_normalization(x, name):
    """Divide each value by a power of the squares of 9 channels around it; see tf.nn.lrn."""
    return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75, name=name)


def _fully_connected_layer(x, name, size, weight_decay):
    with tf.variable_scope(name) as scope:
        weights, biases = _weights_and_biases([int(x.shape[1]), size], x.dtype, 0.04, 0.1)
        if weight_decay:
            decay = tf.multiply(tf.nn.l2_loss(weights), weight_decay, name='weight_loss')
            tf.add_to_collection('losses', decay)
        x = tf.nn.relu(tf.matmul(x, weights) + biases, name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, x)
    return x


def inference(
    images, num_classes=NUM_CLASSES, hparams=CLASSIC, num_sub_batches=None, is_tuned=True
):
    """Build the network.

    The layers have the tutorial's names: conv1/conv1, pool1, norm1, conv2/conv2, norm2, pool2,
    local3/local3, local4/local4, softmax_linear/softmax_linear.

    Args:
      images: float32 or float16 [batch, height, width, 3] with static height and width. The
        variables get the same dtype.
      num_classes: the number of classes.
      hparams: an HParams. Each fully connected hidden layer adds fc_weight_decay * l2_loss(weights)
        to the collection 'losses'. The convolutional layers multiply numbers of compute_dtype;
        variables and everything else keep the dtype of the images.
      num_sub_batches: the number of parts of the batch that a CPU computes in parallel, at most the
        batch size; None: as many as this machine needs. A GPU does not divide a batch.
      is_tuned: False for the tutorial's operations also on a CPU.

    Returns:
      Logits, [batch, num_classes], without softmax.
    """
    images = tf.identity(images, name='images')  # on the device of the network
    on_gpu = cpu_kernels.is_on_gpu(images)
    dtype = machine.compute_dtype(hparams.compute_dtype, on_gpu)
    dtype = images.dtype if dtype == tf.float32 else dtype
    on_cpu = is_tuned and not on_gpu
    normalize = cpu_kernels.local_response_normalization if on_cpu else local_response_normalization
    batch = cpu_kernels.divide(images, num_sub_batches if on_cpu else 1)
    pool = max_pool if len(batch.parts) == 1 else cpu_kernels.before_relu(max_pool)
    conv1 = _conv_layer(batch, 'conv1', CONV1_FILTERS, 0.0, dtype)
    pool1 = conv1.apply(pool, 'pool1')
    norm1 = pool1.apply(normalize, 'norm1')
    conv2 = _conv_layer(norm1, 'conv2', CONV2_FILTERS, 0.1, dtype)
    norm2 = conv2.apply(normalize, 'norm2')
    pool2 = norm2.apply(max_pool, 'pool2').whole
    flat = tf.reshape(pool2, [-1, pool2.shape[1:].num_elements()])
    local3 = _fully_connected_layer(flat, 'local3', 384, hparams.fc_weight_decay)
    local4 = _fully_connected_layer(local3, 'local4', 192, hparams.fc_weight_decay)
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
