"""What TensorBoard shows of a training run.

Reads the graph's collections and computes nothing that training needs. The raw summary operations take the tag as it is;
tf.summary would prefix it with the name scope, and append a number if an operation has that name already.
"""
import collections
import contextlib
import re
import time

import tensorflow.compat.v1 as tf

from cifar10 import dashboard, input as cifar10_input, tags
from cifar10.multi_gpu import TOWER_NAME
from cifar10.runs import event_file


def _without_tower(name):
    return re.sub('^%s_[0-9]+/' % TOWER_NAME, '', name)


def _scalar(tag, value):
    return tf.raw_ops.ScalarSummary(tags=tag, values=value)


def _histogram(tag, values):
    # The operation fails on a NaN, and then the user would not learn in which step and variable the NaN first appeared.
    values = tf.where_v2(tf.is_finite(values), values, 0.0)
    return tf.raw_ops.HistogramSummary(tag=tag, values=values)


def _losses(totals):
    """Each part of the loss, averaged over the towers, once the totals are known."""
    parts = collections.OrderedDict()
    for part in tf.get_collection('losses'):
        parts.setdefault(_without_tower(part.op.name), []).append(part)
    with tf.control_dependencies(totals):  # or the order in which tf.add_n makes a total would depend on timing: see FiniteHook
        return [_scalar('losses/' + name, tf.add_n(values) / len(values)) for name, values in parts.items()]


def _activations():
    """Histogram and sparsity of each layer's activations in the first tower; for convolutional layers, in its first slice."""
    layers = collections.OrderedDict()
    for activations in tf.get_collection(tf.GraphKeys.ACTIVATIONS):
        layers.setdefault(_without_tower(activations.op.name).split('/')[0], activations)
    return [summary for layer, activations in layers.items() for summary in (
        _histogram(layer + '/activations', activations), _scalar(layer + '/sparsity', tf.nn.zero_fraction(activations)))]


def training(images, losses, learning_rate, gradients, further=()):
    """Merges the summaries of a training step. Run it together with the train op: a run of its own would take another batch.

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
            [_scalar(tags.LEARNING_RATE, learning_rate), _scalar(tags.TOTAL_LOSS, tf.add_n(losses) / len(losses))]
            + _losses(losses)
            + [_scalar(_queue_tag(fill), fill) for fill in tf.get_collection(cifar10_input.QUEUE_FILL)]
            + [_histogram(variable.op.name, variable) for _, variable in gradients]
            + [_histogram(variable.op.name + '/gradients', gradient) for gradient, variable in gradients]
            + _activations()
            + [tf.raw_ops.ImageSummary(tag='images', tensor=images, max_images=3)] + list(further))


def _queue_tag(fill):
    return '/'.join(fill.op.name.split('/')[-2:])


@contextlib.contextmanager
def writer(directory, first_step=None):
    """Writes the default graph and the dashboard to `directory`, and yields write(summary, step), which writes a summary immediately.

    Args:
      directory: where TensorBoard looks.
      first_step: the step from which a training run is resumed. TensorBoard drops what a killed process wrote about later
        steps; the run will write them again.

    Raises:
      UserError: nothing can be written there; `write` raises it too, and can be called again.
    """
    events = [tf.Event(wall_time=time.time(), graph_def=tf.get_default_graph().as_graph_def(add_shapes=True).SerializeToString())]
    events.append(tf.Event(wall_time=time.time(), summary=dashboard.layout()))
    if first_step is not None:
        start = tf.SessionLog(status=tf.SessionLog.START)
        events.append(tf.Event(wall_time=time.time(), step=first_step + 1, session_log=start))
    with event_file.EventFile(directory, events) as opened:
        yield lambda summary, step: opened.write(tf.Event(step=step, summary=summary))
