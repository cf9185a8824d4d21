"""Formulations of layers that are faster on a CPU: sub-batches, products, pooling, LRN."""

import contextlib
import contextvars
import functools

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.system import machine

_number = contextvars.ContextVar('number', default=1)  # of sub-batches
_is_portable = contextvars.ContextVar('is_portable', default=False)
_BUILT = 'numbers_of_sub_batches'  # collection
LAST_DIVIDED = 'last_divided_variables'  # collection: their gradients need all sub-batches


def is_on_gpu(x):
    """Return True if a tensor is on a GPU; without a device, if this machine has a GPU."""
    if tf.DeviceSpec.from_string(x.device).device_type:
        return machine.is_gpu(x.device)
    return bool(tf.config.experimental.list_physical_devices('GPU'))


def compute_dtype(images, hparams):
    """Return the type of the factors of products: hparams.compute_dtype, as machine.compute_dtype.

    float32 means the dtype of the images, a tensor on the device of the network.
    """
    dtype = machine.compute_dtype(hparams.compute_dtype, is_on_gpu(images))
    return images.dtype if dtype == tf.float32 else dtype


@contextlib.contextmanager
def _set(variable, value):
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def sub_batches(number):
    """Return a context in which networks compute `number` parts of a batch in parallel."""
    return _set(_number, number)


def portable():
    """Return a context in which networks have the tutorial's operations, for any machine."""
    return _set(_is_portable, True)


def num_sub_batches(graph):
    """Return the number of sub-batches in the networks of a graph, 1 without `per_image`."""
    return max(graph.get_collection(_BUILT), default=1)


def per_image(function):
    """Mark a function from images to layers as one that computes each image on its own.

    In `sub_batches`, the function is called once per sub-batch: threads then wait less for each
    other. The result is joined under the name of the function's last operation. The collection
    ACTIVATIONS gets only the layers of the first sub-batch.

    Args:
      function: a function of images, [batch, ...], and other arguments, that returns a tensor.

    Raises:
      ValueError: the function creates something that would count once per sub-batch.
    """

    @functools.wraps(function)
    def call(images, *args, **kwargs):
        number, before, num_variables = _number.get(), _counts(), len(tf.trainable_variables())
        tf.add_to_collection(_BUILT, number)
        if number == 1:
            result = function(images, *args, **kwargs)
        else:
            parts = _divide(images, number)
            result = _join(
                [_build(function, i, part, args, kwargs) for i, part in enumerate(parts)], images
            )
        for name, count in _counts().items():
            if count > before[name]:
                raise ValueError(
                    f'{function.__name__} is marked with per_image, but adds to the {name}, which would count once '
                    'per part of the batch: do that outside of the function, or remove the mark'
                )
        created = tf.trainable_variables()[num_variables:]
        tf.get_collection_ref(LAST_DIVIDED).extend(created[-1:])
        return result

    return call


def _build(function, index, part, args, kwargs):
    """Build the layers of a sub-batch in a name scope of its own, with shared variables."""
    activations = tf.get_collection_ref(tf.GraphKeys.ACTIVATIONS)
    before = len(activations)
    with tf.name_scope(f'sub_batch_{index}'), tf.variable_scope(
        tf.get_variable_scope(), reuse=index > 0 or None, auxiliary_name_scope=False
    ):
        result = function(part, *args, **kwargs)
    if index > 0:
        del activations[before:]
    return result


def _join(parts, images):
    """Return the results of all sub-batches, without the padding of `images`."""
    name = parts[0].op.name.split('/')[-1]
    if images.shape.as_list()[0]:
        return tf.concat(parts, 0, name)
    return tf.identity(tf.concat(parts, 0)[: tf.shape(images)[0]], name)


def _counts():
    """Return the number of elements of everything that no sub-batch may add to."""
    keys = 'losses', tf.GraphKeys.REGULARIZATION_LOSSES, tf.GraphKeys.UPDATE_OPS
    counts = {f'collection {key!r}': len(tf.get_collection(key)) for key in keys}
    not_trainable = len(tf.global_variables()) - len(tf.trainable_variables())
    return dict(counts, **{'variables that are not trainable': not_trainable})


def _divide(images, number):
    """Return `number` parts of a batch, whose sizes differ by at most 1.

    A batch of unknown size is padded, because no part may be empty; see pad_batch.
    """
    with tf.name_scope('sub_batches'):
        num_images = images.shape.as_list()[0]
        padded = images if num_images else pad_batch(images, number)
        total = num_images or tf.shape(padded)[0]
        return tf.split(padded, [(total + i) // number for i in range(number)], num=number)


def matmul(x, weights, dtype):
    """Return the product of [batch, rows] and [rows, columns].

    The factors are converted to `dtype`, the result back to the type of the weights. In
    `sub_batches`, it is a sum of products with some of the rows, which a CPU computes in parallel.
    There is one for every four sub-batches, because each has a result of the whole size.
    """
    number, rows = max(1, _number.get() // 4), int(weights.shape[0])
    sizes = [(rows + i) // number for i in range(number)]
    factors = zip(tf.split(x, sizes, 1), tf.split(weights, sizes)) if number > 1 else [(x, weights)]
    products = [tf.matmul(tf.cast(a, dtype), tf.cast(b, dtype)) for a, b in factors]
    return tf.add_n([tf.cast(product, weights.dtype) for product in products])


def max_pool(x, ksize, strides, name):
    """Return tf.nn.max_pool of the same arguments, with the padding SAME.

    Bias and ReLU are monotonic, so pooling before them gives the same result. In `sub_batches`,
    sums of products in bfloat16 are pooled before them, because this moves less memory.
    """
    ops = [x.op]
    while ops[-1].inputs and len(ops) < 3:
        ops.append(ops[-1].inputs[0].op)
    if _number.get() > 1 and [op.type for op in ops] == ['Relu', 'BiasAdd', 'Cast']:
        sums, biases = ops[2].inputs[0], ops[1].inputs[1]
        if sums.dtype == tf.bfloat16:
            sums = tf.cast(tf.nn.max_pool(sums, ksize, strides, 'SAME'), x.dtype)
            return tf.nn.relu(tf.nn.bias_add(sums, biases), name)
    return tf.nn.max_pool(x, ksize, strides, 'SAME', name=name)


def pad_batch(images, num_images):
    """Pad images, [batch, height, width, channels], with zeros to at least `num_images` images.

    No operation may get an empty batch: TensorFlow 2.21 with oneDNN computes a wrong shape for its
    convolution.
    """
    with tf.name_scope('pad_batch'):
        num_missing = tf.maximum(num_images - tf.shape(images)[0], 0)
        zeros = tf.zeros([num_missing, *images.shape.as_list()[1:]], images.dtype)
        return tf.concat([images, zeros], 0)


def lrn(x, depth_radius, bias, alpha, beta, name):
    """Return tf.nn.lrn of the same arguments; beta must be 0.75.

    The CPU kernels of tf.nn.lrn would take a quarter of a training step. On a CPU, unless in
    `portable`, these are square roots and products with a band matrix. They would be less exact on
    a GPU.

    Raises:
      ValueError: `beta` is another number.
    """
    if _is_portable.get() or is_on_gpu(x):
        return tf.nn.lrn(x, depth_radius, bias, alpha, beta, name)
    if beta != 0.75:
        raise ValueError(f'beta must be 0.75, not {beta}')
    channels = int(x.shape[3])
    index = np.arange(channels)
    band = np.abs(index[:, None] - index) <= depth_radius

    @tf.custom_gradient
    def normalize(x):
        """Return y = x s^-beta with s = bias + alpha band(x^2).

        band(v) sums v over the near channels. The gradient is
        dx = dy s^-beta - 2 alpha beta x band(dy x s^(-beta - 1))
           = dy s^-beta - x band(2 alpha beta dy y / s).
        """
        shape = tf.shape(x)
        x = tf.reshape(x, [-1, channels])
        s = tf.nn.bias_add(
            tf.matmul(tf.square(x), tf.constant(alpha * band, x.dtype)),
            tf.constant(bias, x.dtype, [channels]),
        )
        root = tf.rsqrt(s)
        scale = root * tf.sqrt(root)  # s^-0.75, several times faster than pow
        y = x * scale

        def gradient(dy):
            dy = tf.reshape(dy, [-1, channels])
            sums = tf.matmul(dy * y / s, tf.constant(2 * alpha * beta * band, x.dtype))
            return tf.reshape(dy * scale - x * sums, shape)

        return tf.reshape(y, shape), gradient

    with tf.name_scope(name) as scope:
        return tf.identity(normalize(x), scope)
