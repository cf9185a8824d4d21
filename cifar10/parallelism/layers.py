"""The layers of the network, and the floating-point operations of each in a training step, counted
in its graph."""

import functools
import re
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, model


class Products(NamedTuple):
    """The matrix products and convolutions of a layer in one step: for its outputs, and for the
    gradients."""

    layer: str
    count: int
    operations: int  # of all of them together
    is_convolution: bool


@functools.lru_cache(maxsize=None)  # each tower and the plan ask
def step_products(batch_size, num_classes=model.NUM_CLASSES):
    """The products of a training step of one tower, counted in its graph.

    A product of [m, k] and [k, n] takes 2 m k n operations: one multiplication and one addition per
    term. A convolution is a product with one row for each place in each example. As is usual,
    products with the zeros at the borders count, although kernels may skip them; pooling,
    normalisation and update do not count.

    Args:
      batch_size: examples per step.
      num_classes: the number of classes.

    Returns:
      A list of Products, in the order of the layers.
    """
    with tf.Graph().as_default() as graph:
        size = cifar10_input.IMAGE_SIZE
        # there the normalisation is one operation, without a product of its own
        with tf.device('/gpu:0'):
            logits = model.inference(tf.zeros([batch_size, size, size, 3]), num_classes=num_classes)
            loss = model.loss(logits, tf.zeros([batch_size], tf.int32))
            gradients = tf.gradients(loss, tf.trainable_variables())
        needed = tf.graph_util.extract_sub_graph(
            graph.as_graph_def(), [gradient.op.name for gradient in gradients]
        )
        found = {}
        for op in [graph.get_operation_by_name(node.name) for node in needed.node]:
            if _operations(op):
                found.setdefault(_layer(op.name), []).append(op)
        names = [_layer(x.op.name + '/') for x in tf.get_collection(tf.GraphKeys.ACTIVATIONS)]
    return [
        Products(
            name,
            len(found[name]),
            sum(map(_operations, found[name])),
            found[name][0].type.startswith('Conv2D'),
        )
        for name in names
    ]


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
