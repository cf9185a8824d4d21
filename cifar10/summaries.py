"""What TensorBoard shows of a training run.

Reads the graph's collections and computes nothing that training needs. The raw summary operations
take the tag as it is; tf.summary would prefix it with the name scope, and append a number if an
operation has that name already.
"""

import collections
import contextlib
import math
import re
import time

import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input
from cifar10.multi_gpu import TOWER_NAME
from cifar10.report import tensorboard
from cifar10.runs import event_file

_FILTERS = 'conv1/weights'
_PIXELS_PER_WEIGHT = 8


def _without_tower(name):
    return re.sub('^%s_[0-9]+/' % TOWER_NAME, '', name)


def _scalar(tag, value):
    return tf.raw_ops.ScalarSummary(tags=tag, values=value)


def _histogram(tag, values):
    # The operation fails on a NaN, and then the user would not learn in which step and variable the
    # NaN first appeared.
    values = tf.where_v2(tf.is_finite(values), values, 0.0)
    return tf.raw_ops.HistogramSummary(tag=tag, values=values)


def _losses(totals):
    """Each part of the loss, averaged over the towers, once the totals are known."""
    parts = collections.OrderedDict()
    for part in tf.get_collection('losses'):
        parts.setdefault(_without_tower(part.op.name), []).append(part)
    # or the order in which tf.add_n makes a total would depend on timing: see FiniteHook
    with tf.control_dependencies(totals):
        return [
            _scalar('losses/' + name, tf.add_n(values) / len(values))
            for name, values in parts.items()
        ]


def _activations():
    """Histogram and sparsity of each layer's activations in the first tower; for convolutional
    layers, in its first slice."""
    layers = collections.OrderedDict()
    for activations in tf.get_collection(tf.GraphKeys.ACTIVATIONS):
        layers.setdefault(_without_tower(activations.op.name).split('/')[0], activations)
    return [
        summary
        for layer, activations in layers.items()
        for summary in (
            _histogram(layer + '/activations', activations),
            _scalar(layer + '/sparsity', tf.nn.zero_fraction(activations)),
        )
    ]


def _filters(variables):
    """The filters of the first layer as one picture, if it is like the network's: conv1/weights, of
    images with three colours."""
    weights = [
        variable
        for variable in variables
        if variable.op.name == _FILTERS and variable.shape.ndims == 4 and variable.shape[2] == 3
    ]
    return [
        tf.raw_ops.ImageSummary(
            tag='conv1/filters', tensor=filter_grid(kernels)[tf.newaxis], max_images=1
        )
        for kernels in weights
    ]


def filter_grid(kernels):
    """Draws filters side by side, row by row, in a grid that is about as wide as high, with white
    lines between them.

    Args:
      kernels: float32 [height, width, 3, number of filters].

    Returns:
      uint8 [height of the picture, width, 3]. A weight of 0 is mid grey (128), the greatest
      absolute value of all filters 1 or 255; so is 0 what is not finite. A weight takes 8 x 8
      pixels, a line 8.
    """
    height, width, colours, number = kernels.shape.as_list()
    columns = math.ceil(math.sqrt(number))
    rows = math.ceil(number / columns)
    kernels = tf.where_v2(tf.is_finite(kernels), kernels, 0.0)
    scaled = tf.math.divide_no_nan(kernels, tf.reduce_max(tf.abs(kernels)))
    pixels = tf.transpose(tf.round(128 + 127 * scaled), [3, 0, 1, 2])
    # above and to the left
    lined = tf.pad(
        pixels, [[0, rows * columns - number], [1, 0], [1, 0], [0, 0]], constant_values=255
    )
    grid = tf.transpose(
        tf.reshape(lined, [rows, columns, height + 1, width + 1, colours]), [0, 2, 1, 3, 4]
    )
    grid = tf.reshape(grid, [rows * (height + 1), columns * (width + 1), colours])
    grid = tf.pad(grid, [[0, 1], [0, 1], [0, 0]], constant_values=255)
    # TensorBoard would blur the small picture
    enlarged = tf.repeat(tf.repeat(grid, _PIXELS_PER_WEIGHT, 0), _PIXELS_PER_WEIGHT, 1)
    return tf.cast(enlarged, tf.uint8)


def training(images, losses, learning_rate, gradients, further=()):
    """Merges the summaries of a training step. Run it together with the train op: a run of its own
    would take another batch.

    Args:
      images: the batch of the first tower, float32 [batch, height, width, 3].
      losses: a list with each tower's total loss.
      learning_rate: a scalar.
      gradients: list of (gradient, variable), averaged over the towers.
      further: string scalars, further summaries.

    Returns:
      A string scalar: a serialised Summary.
    """
    with tf.device('/cpu:0'), tf.name_scope('summaries'):
        return tf.summary.merge(
            [
                _scalar(tensorboard.LEARNING_RATE, learning_rate),
                _scalar(tensorboard.TOTAL_LOSS, tf.add_n(losses) / len(losses)),
            ]
            + _losses(losses)
            + [
                _scalar(_queue_tag(fill), fill)
                for fill in tf.get_collection(cifar10_input.QUEUE_FILL)
            ]
            + [_histogram(variable.op.name, variable) for _, variable in gradients]
            + [
                _histogram(variable.op.name + '/gradients', gradient)
                for gradient, variable in gradients
            ]
            + _activations()
            + [tf.raw_ops.ImageSummary(tag='images', tensor=images, max_images=3)]
            + _filters([variable for _, variable in gradients])
            + list(further)
        )


def _queue_tag(fill):
    return '/'.join(fill.op.name.split('/')[-2:])


@contextlib.contextmanager
def writer(directory, first_step=None, first_summaries=()):
    """Writes the default graph and the dashboard to `directory`, and yields write(summary, step),
    which writes a summary immediately.

    `write` passes further arguments by name on to tf.Event; the summary may be None.

    Args:
      directory: where TensorBoard looks.
      first_step: the step from which a training run is resumed. TensorBoard drops what a killed
        process wrote about later steps; the run will write them again.
      first_summaries: tf.Summaries of what is known before the first step.

    Raises:
      UserError: nothing can be written there; `write` raises it too, and can be called again.
    """
    events = [
        tf.Event(
            wall_time=time.time(),
            graph_def=tf.get_default_graph().as_graph_def(add_shapes=True).SerializeToString(),
        )
    ]
    events.append(tf.Event(wall_time=time.time(), summary=tensorboard.dashboard()))
    if first_step is not None:
        start = tf.SessionLog(status=tf.SessionLog.START)
        events.append(tf.Event(wall_time=time.time(), step=first_step + 1, session_log=start))
    events += [
        tf.Event(wall_time=time.time(), step=first_step, summary=summary)
        for summary in first_summaries
    ]
    with event_file.EventFile(directory, events) as opened:
        yield lambda summary, step, **further: opened.write(
            tf.Event(step=step, summary=summary, **further)
        )
