"""Network and loss.

Two convolutional layers with pooling and local response normalization, two fully connected layers,
and a linear layer for the logits: 1,068,298 parameters for images of 24 x 24.
"""

import functools

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels
from cifar10.config import CLASSIC, NUM_CLASSES
from cifar10.system import machine

CONV1_FILTERS = 64
CONV2_FILTERS = 64


def _weights_and_biases(shape, dtype, stddev, bias):
    """Create truncated normal weights and constant biases, by default on the CPU.

    All initial values are those of the tutorial. Positive biases keep most ReLUs active at first.
    """
    initializer = tf.truncated_normal_initializer(stddev=stddev)
    with tf.device('/cpu:0'):
        weights = tf.get_variable('weights', shape, dtype, initializer)
        return weights, tf.get_variable('biases', shape[-1:], dtype, tf.constant_initializer(bias))


def _conv_layer(batch, name, num_filters, bias, dtype):
    """Add a convolutional layer.

    Args:
      batch: the input, a cpu_kernels.SubBatches: `parts`, which a CPU computes in parallel, and
        `whole`. Its `apply` adds a layer to each part.
      name: the name of the layer.
      num_filters: the number of output channels.
      bias: the initial biases.
      dtype: the type of the products.

    Returns:
      The activations and the sums of products, both SubBatches; the function from sums and a name
      to activations.
    """
    with tf.variable_scope(name) as scope:
        in_dtype = batch.whole.dtype
        shape = [5, 5, int(batch.whole.shape[3]), num_filters]
        weights, biases = _weights_and_biases(shape, in_dtype, 5e-2, bias)

        def activate(sums, name):
            return tf.nn.relu(tf.nn.bias_add(tf.cast(sums, in_dtype), biases), name=name)

        def convolve(x, name):
            # One cast per part, so that the gradients of the parts are added in float32.
            return conv2d(tf.cast(x, dtype), tf.cast(weights, dtype), name)

        sums = batch.apply(convolve, 'Conv2D')
        activations = sums.apply(activate, scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, activations.whole)
    return activations, sums, activate


def conv2d(x, weights, name=None):
    """Return the convolution of [n, height, width, in] with [5, 5, in, out], of the same size."""
    return tf.nn.conv2d(x, weights, [1, 1, 1, 1], 'SAME', name=name)


def max_pool(x, name=None):
    """Return the maxima of 3 x 3 windows of [n, height, width, channels], with stride 2."""
    return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], 'SAME', name=name)


def local_response_normalization(x, name, lrn=tf.nn.lrn):
    """Divide each value by (1 + alpha * sum of the squares of 9 channels)^0.75, see tf.nn.lrn."""
    return lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75, name=name)


def _fully_connected_layer(batch, name, size, weight_decay, dtype):
    """Add a fully connected layer to a cpu_kernels.SubBatches; return one in a single part.

    The products have the type `dtype`; their sums get that of the variables.
    """
    with tf.variable_scope(name) as scope:
        shape = [int(batch.whole.shape[1]), size]
        weights, biases = _weights_and_biases(shape, batch.whole.dtype, 0.04, 0.1)
        if weight_decay:
            decay = tf.multiply(tf.nn.l2_loss(weights), weight_decay, name='weight_loss')
            tf.add_to_collection('losses', decay)
        x = tf.nn.relu(batch.matmul(weights, dtype) + biases, name=scope.name)
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, x)
    return cpu_kernels.divide(x, 1)


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
        to the collection 'losses'. The hidden layers multiply numbers of compute_dtype; variables
        and everything else keep the dtype of the images.
      num_sub_batches: the number of parts of the batch that a CPU computes in parallel, at most the
        batch size; None: as many as this machine needs. A GPU does not divide a batch.
      is_tuned: False for the tutorial's operations on the whole batch, also on a CPU.

    Returns:
      Logits, [batch, num_classes], without softmax.
    """
    images = tf.identity(images, name='images')  # on the device of the network
    on_gpu = cpu_kernels.is_on_gpu(images)
    on_cpu = is_tuned and not on_gpu
    lrn = cpu_kernels.lrn if on_cpu else tf.nn.lrn
    normalize = functools.partial(local_response_normalization, lrn=lrn)
    dtype = machine.compute_dtype(hparams.compute_dtype, on_gpu)
    dtype = images.dtype if dtype == tf.float32 else dtype

    batch = cpu_kernels.divide(images, num_sub_batches if on_cpu else 1)
    conv1, sums, activate = _conv_layer(batch, 'conv1', CONV1_FILTERS, 0.0, dtype)
    if len(batch.parts) == 1 or dtype == images.dtype:
        pool1 = conv1.apply(max_pool, 'pool1')
    else:  # Bias and ReLU are monotonic, so pooling before them gives the same result.
        pool1 = sums.apply(lambda x, name: activate(max_pool(x), name), 'pool1')
    norm1 = pool1.apply(normalize, 'norm1')
    conv2, _, _ = _conv_layer(norm1, 'conv2', CONV2_FILTERS, 0.1, dtype)
    norm2 = conv2.apply(normalize, 'norm2')
    pool2 = norm2.apply(max_pool, 'pool2')
    flat = pool2.flatten()
    local3 = _fully_connected_layer(flat, 'local3', 384, hparams.fc_weight_decay, dtype)
    local4 = _fully_connected_layer(local3, 'local4', 192, hparams.fc_weight_decay, dtype).whole
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
