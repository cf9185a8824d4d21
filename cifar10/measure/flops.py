"""The floating-point operations of a training step, and how many a second the machine can do."""
import statistics
import time

import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input


def step_flops(batch_size):
    """The floating-point operations of a training step: those of its matrix products and convolutions.

    A product of [m, k] and [k, n] takes 2 m k n: a multiplication and an addition for each term. A convolution is one with a
    row for each place of each example. The gradients of the weights and of the input take as many again each; the images
    have no gradient. As is usual, products with the zeros at the borders count, which the kernels may skip; pooling,
    normalisation and update do not count.

    Returns:
      A list of (layer, terms of its product, operations).
    """
    size = cifar10_input.IMAGE_SIZE
    layers = [('conv1', size ** 2, 5 * 5 * 3, 64, 2), ('conv2', (size // 2) ** 2, 5 * 5 * 64, 64, 3),
              ('local3', 1, (size // 4) ** 2 * 64, 384, 3), ('local4', 1, 384, 192, 3), ('softmax_linear', 1, 192, 10, 3)]
    return [(name, '%d x 2 x %d x %d x %d x %d' % (products, batch_size, places, inputs, outputs),
             products * 2 * batch_size * places * inputs * outputs) for name, places, inputs, outputs, products in layers]


def table(batch_size):
    """The sum of step_flops, line by line."""
    layers = step_flops(batch_size)
    lines = ['  %-14s %-30s %9.4f GFLOP' % (name, terms, operations / 1e9) for name, terms, operations in layers]
    return '\n'.join(lines + ['  %-45s %9.4f GFLOP' % ('sum', sum(operations for _, _, operations in layers) / 1e9)])


def matrix_product_rate(device, size=4096, runs=8):
    """Floating-point operations a second of a float32 matrix product of size x size on a device: the median of some runs.

    On recent GPUs TensorFlow rounds its factors to TF32, as it does in the network.
    """
    with tf.Graph().as_default(), tf.device(device):
        factors = [tf.get_variable(name, [size, size], initializer=tf.random_normal_initializer()) for name in 'ab']
        product = tf.matmul(*factors).op
        seconds = []
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(runs + 2):
                start = time.perf_counter()
                session.run(product)
                seconds.append(time.perf_counter() - start)
    return 2 * size ** 3 / statistics.median(seconds[2:])
