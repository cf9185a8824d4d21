"""Formulations of layers that are faster on a CPU: sub-batches, normalization."""

from typing import NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.config import CLASSIC
from cifar10.system import machine


def is_on_gpu(x):
    """Return True if a tensor is on a GPU; without a device, if this machine has a GPU."""
    if tf.DeviceSpec.from_string(x.device).device_type:
        return machine.is_gpu(x.device)
    return bool(tf.config.experimental.list_physical_devices('GPU'))


class SubBatches(NamedTuple):
    """Batch in parts, which a CPU computes in parallel: threads then wait less for each other."""

    parts: Sequence[tf.Tensor]
    num_images: tf.Tensor  # in all parts, without the padding; int32 scalar or int
    whole: tf.Tensor  # [num_images, ...]

    def apply(self, layer, name):
        """Return the SubBatches with layer(part, name of the operation) for each part.

        `whole` becomes the operation `name`, so that a program can read the result of each layer.
        TensorFlow does not compute it unless it is used. A batch in one part is not divided: then
        the layer itself has the name.
        """
        if len(self.parts) == 1:
            whole = layer(self.whole, name)
            return SubBatches([whole], self.num_images, whole)
        with tf.name_scope(name) as scope:
            parts = [layer(part, f'sub_batch_{i}') for i, part in enumerate(self.parts)]
            whole = self._without_padding(tf.concat(parts, 0, name='joined'))
            return SubBatches(parts, self.num_images, tf.identity(whole, scope))

    def flatten(self):
        """Return the SubBatches of vectors, [num_images, values]."""
        num_values = self.whole.shape[1:].num_elements()
        return self.apply(lambda x, name: tf.reshape(x, [-1, num_values], name), 'flat')

    def matmul(self, weights, dtype):
        """Return the product of the batch, [num_images, rows], and weights, [rows, columns].

        The factors are converted to `dtype`, the result back to the type of the weights. It is a
        sum of products with some of the rows, which a CPU computes in parallel. There is one for
        every four parts, because each has a result of the whole size.
        """

        def product(x, some_rows):
            factors = tf.cast(x, dtype), tf.cast(some_rows, dtype)
            return tf.cast(tf.matmul(*factors), weights.dtype)

        if len(self.parts) == 1:
            return product(self.whole, weights)
        number = max(1, len(self.parts) // 4)
        rows = int(weights.shape[0])
        sizes = [(rows + i) // number for i in range(number)]
        columns = zip(*[tf.split(tf.cast(part, dtype), sizes, 1) for part in self.parts])
        products = [
            product(tf.concat(parts, 0), some_rows)
            for parts, some_rows in zip(columns, tf.split(weights, sizes))
        ]
        return self._without_padding(tf.add_n(products))

    def _without_padding(self, whole):
        return whole if isinstance(self.num_images, int) else whole[: self.num_images]


def divide(images, number):
    """Return a batch as SubBatches of `number` parts, whose sizes differ by at most 1.

    A batch of unknown size is padded, because no part may be empty; see pad_batch.
    """
    num_images = images.shape.as_list()[0]
    if number is None:
        number = machine.num_sub_batches(['/cpu:0'], num_images or CLASSIC.batch_size)
    if number == 1:
        return SubBatches([images], num_images, images)
    with tf.name_scope('sub_batches'):
        padded = pad_batch(images, number) if num_images is None else images
        total = num_images or tf.shape(padded)[0]
        sizes = [(total + i) // number for i in range(number)]
        return SubBatches(
            tf.split(padded, sizes, num=number), num_images or tf.shape(images)[0], images
        )


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


def lrn(x, depth_radius, bias, alpha, beta, name):
    """Return tf.nn.lrn of the same arguments.

    The CPU kernels of tf.nn.lrn would take a quarter of a training step. These are square roots and
    products with a band matrix, which would be less exact on a GPU.

    Args:
      x: float tensor [n, height, width, channels].
      depth_radius: the number of channels on either side whose squares are summed.
      bias: a number, added to alpha * the sum.
      alpha: a number.
      beta: 0.75; the sum has the exponent -beta.
      name: a name for the operation.

    Returns:
      A tensor like x.

    Raises:
      ValueError: `beta` is another number.
    """
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
