"""The floating-point operations of a training step, and how many per second the machine can do."""
import re
import statistics
import time
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, multi_gpu


class Products(NamedTuple):
    """The matrix products and convolutions of a layer in one step: for its outputs, and for the gradients."""
    layer: str
    count: int
    operations: int  # of all of them together


def step_products(batch_size):
    """The products of a training step of one tower, counted in its graph.

    A product of [m, k] and [k, n] takes 2 m k n operations: one multiplication and one addition per term. A convolution is a
    product with one row for each place in each example. As is usual, products with the zeros at the borders count, although
    kernels may skip them; pooling, normalisation and update do not count.

    Args:
      batch_size: examples per step.

    Returns:
      A list of Products, in the order of the layers.
    """
    with tf.Graph().as_default() as graph:
        size = cifar10_input.IMAGE_SIZE
        with tf.device('/gpu:0'):  # there the normalisation is one operation, without a product of its own
            loss = multi_gpu.tower_loss('', tf.zeros([batch_size, size, size, 3]), tf.zeros([batch_size], tf.int32))
            gradients = tf.gradients(loss, tf.trainable_variables())
        needed = tf.graph_util.extract_sub_graph(graph.as_graph_def(), [gradient.op.name for gradient in gradients])
        operations = {}
        for node in needed.node:
            count = _operations(graph.get_operation_by_name(node.name))
            if count:
                operations.setdefault(_layer(node.name), []).append(count)
        layers = [_layer(x.op.name + '/') for x in tf.get_collection(tf.GraphKeys.ACTIVATIONS)]
    return [Products(layer, len(operations[layer]), sum(operations[layer])) for layer in layers]


def _layer(name):
    """The layer of an operation, as in gradients/conv1/Conv2D_grad/Conv2DBackpropFilter."""
    return re.match('(gradients/)?([^/]+)/', name).group(2)


def _operations(op):
    """The floating-point operations of a product; 0 for other operations."""
    def elements(tensor, dimensions=None):
        return int(np.prod(tensor.shape.as_list()[:dimensions]))
    if op.type == 'Conv2D':
        return 2 * elements(op.inputs[1]) * elements(op.outputs[0], 3)
    if op.type == 'Conv2DBackpropInput':
        return 2 * elements(op.inputs[1]) * elements(op.inputs[2], 3)
    if op.type == 'Conv2DBackpropFilter':
        return 2 * elements(op.outputs[0]) * elements(op.inputs[2], 3)
    if op.type == 'MatMul':
        rows, columns = op.inputs[0].shape.as_list()
        return 2 * (rows if op.get_attr('transpose_a') else columns) * elements(op.outputs[0])
    return 0


def total(products):
    """The operations of a list of Products."""
    return sum(product.operations for product in products)


def describe(products):
    """A list of Products and their sum, one per line."""
    lines = ['  %-14s %d products %9.4f GFLOP' % (product.layer, product.count, product.operations / 1e9) for product in products]
    return '\n'.join(lines + ['  %-25s %9.4f GFLOP' % ('sum', total(products) / 1e9)])


def matrix_product_rate(device, size=4096, num_runs=8):
    """Floating-point operations per second of a float32 matrix product of size x size on a device: the median of some runs.

    On recent GPUs TensorFlow rounds its factors to TF32, as it does in the network.
    """
    with tf.Graph().as_default(), tf.device(device):
        factors = [tf.get_variable(name, [size, size], initializer=tf.random_normal_initializer()) for name in 'ab']
        product = tf.matmul(*factors).op
        seconds = []
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(num_runs + 2):
                start = time.perf_counter()
                session.run(product)
                seconds.append(time.perf_counter() - start)
    return 2 * size ** 3 / statistics.median(seconds[2:])
