"""Summaries of a training step, from the graph's collections.

tf.raw_ops keep the tag. tf.summary would add the name scope and, if the name exists, a number.
"""

import math
import os
import re

import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib
from cifar10.config import DEPTH
from cifar10.multi_gpu import TOWER_NAME
from cifar10.report import event_files

_NUM_SUMMARIZED_IMAGES = 16  # of the activations


def _strip_tower_name(name):
    return re.sub(f'^{TOWER_NAME}_[0-9]+/', '', name)


def _scalar(tag, value):
    return tf.raw_ops.ScalarSummary(tags=tag, values=value)


def _histogram(tag, values):
    # HistogramSummary fails on NaN. Then hooks.FiniteHook could not report the step.
    values = tf.where_v2(tf.is_finite(values), values, 0.0)
    return tf.raw_ops.HistogramSummary(tag=tag, values=values)


def _loss_summaries(totals):
    """Return summaries of each part of the loss, averaged over the towers."""
    parts = {}
    for part in tf.get_collection('losses'):
        parts.setdefault(_strip_tower_name(part.op.name), []).append(part)
    # tf.add_n adds in the memory of an input that no other operation needs any more, and begins
    # with this input. So the total must be first: then its inputs are still needed here, and the
    # order of its sum does not depend on timing.
    with tf.control_dependencies(totals):
        return [
            _scalar('losses/' + name, tf.add_n(values) / len(values))
            for name, values in parts.items()
        ]


def _activation_summaries():
    """Yield histogram and sparsity of each layer's activations in the first tower.

    They are those of the first images of the batch: TensorFlow computes histograms on one core.
    """
    layers = {}
    for activations in tf.get_collection(tf.GraphKeys.ACTIVATIONS):
        name = re.sub(r'\bsub_batch_0(_\d+)?/', '', _strip_tower_name(activations.op.name))
        name = re.sub(r'^(.+)/\1$', r'\1', name)  # the book's conv1/conv1
        layers.setdefault(name, activations[:_NUM_SUMMARIZED_IMAGES])
    for layer, activations in layers.items():
        yield _histogram(layer + '/activations', activations)
        yield _scalar(layer + '/sparsity', tf.nn.zero_fraction(activations))


def filter_grid(kernels):
    """Arrange filters row by row in a near-square grid, with a white line above and left of each.

    Args:
      kernels: float32 [kernel height, kernel width, 3, number of filters].

    Returns:
      uint8 [grid height, grid width, 3], in pixels. A weight of 0 becomes 128. The greatest
      absolute weight becomes 1 or 255. A weight has 8 x 8 pixels; a line is 8 pixels wide.
    """
    number = int(kernels.shape[3])
    columns = math.ceil(math.sqrt(number))
    rows = math.ceil(number / columns)
    pixels = tf.round(128 + 127 * tf.div_no_nan(kernels, tf.reduce_max(tf.abs(kernels))))
    lined = tf.pad(
        tf.transpose(pixels, [3, 0, 1, 2]),
        [[0, rows * columns - number], [1, 0], [1, 0], [0, 0]],
        constant_values=255,
    )
    grid = tf.concat([tf.concat(tf.unstack(row), 1) for row in tf.split(lined, rows)], 0)
    # TensorBoard would blur a small image.
    enlarged = tf.repeat(tf.repeat(grid, 8, 0), 8, 1)
    return tf.cast(enlarged, tf.uint8)


def training(images, losses, learning_rate, gradients):
    """Merge the summaries of a training step with those in the collection SUMMARIES.

    Fetch the result together with the train op: a separate session.run would use another batch.

    Args:
      images: batch of the first tower, float32 [batch, height, width, 3].
      losses: a list with each tower's total loss.
      learning_rate: a scalar.
      gradients: list of (gradient, variable) of the update.

    Returns:
      A string scalar, the serialized Summary.
    """
    with tf.device('/cpu:0'), tf.name_scope('summaries'):
        summary_ops = [
            _scalar(event_files.LEARNING_RATE, learning_rate),
            _scalar(event_files.TOTAL_LOSS, tf.add_n(losses) / len(losses)),
            tf.raw_ops.ImageSummary(tag='images', tensor=images, max_images=3),
            *_loss_summaries(losses),
            *_activation_summaries(),
        ]
        # Not the number of file names in their queue, which tf.train.string_input_producer adds.
        collected = tf.get_collection(tf.GraphKeys.SUMMARIES)
        summary_ops += [summary for summary in collected if 'input_producer/' not in summary.name]
        for fill in tf.get_collection(input_lib.QUEUE_FILL):
            summary_ops.append(_scalar('/'.join(fill.op.name.split('/')[-2:]), fill))
        kernels = [v.op.name for _, v in gradients if v.shape.as_list()[2:-1] == [DEPTH]]
        for gradient, variable in gradients:
            # The update can be between two reads: only one of them could be finite.
            name, values = variable.op.name, variable.read_value()
            summary_ops += [_histogram(name, values), _histogram(name + '/gradients', gradient)]
            if name in kernels[:1]:
                grid = filter_grid(values)[tf.newaxis]
                tag = os.path.join(os.path.dirname(name), 'filters')
                summary_ops.append(tf.raw_ops.ImageSummary(tag=tag, tensor=grid, max_images=1))
        return tf.summary.merge(summary_ops)
