"""The floating-point operations of a training step as text, and how many per second the machine can
do."""

import statistics
import time

import tensorflow.compat.v1 as tf

from cifar10.parallelism import layers


def describe(products):
    """A list of Products and their sum, one per line."""
    lines = [
        '  %-14s %d products %9.4f GFLOP' % (product.layer, product.count, product.operations / 1e9)
        for product in products
    ]
    return '\n'.join(lines + ['  %-25s %9.4f GFLOP' % ('sum', layers.total(products) / 1e9)])


def matrix_product_rate(device, size=4096, num_runs=5):
    """Floating-point operations per second of a float32 matrix product of size x size on a device:
    the median of some runs.

    On recent GPUs TensorFlow rounds its factors to TF32, as it does in the network.
    """
    with tf.Graph().as_default(), tf.device(device):
        factors = [
            tf.get_variable(name, [size, size], initializer=tf.random_normal_initializer())
            for name in 'ab'
        ]
        product = tf.matmul(*factors).op
        seconds = []
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(num_runs + 1):
                start = time.perf_counter()
                session.run(product)
                seconds.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(seconds[1:])
