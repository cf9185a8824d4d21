"""Which device holds what in a training step, and what the devices send to each other."""
import collections
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import distortions, multi_gpu, optimizer


class Layout(NamedTuple):
    """The bytes of a training step on its devices, which have names like '/gpu:0'."""
    held: dict  # from a device to the bytes of its weights and biases
    sent: dict  # from (sender, receiver) to the bytes of a step


def of_step(job):
    """Finds the Layout in a graph with the towers and the update of a training.Job.

    A tensor that several operations on a device need is sent to it once. Tensors of one element, like losses and the learning rate,
    are not counted; nor is what summaries and checkpoints need.
    """
    size, batch_size = distortions.IMAGE_SIZE, job.hparams.batch_size
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = [(tf.placeholder(tf.float32, [batch_size, size, size, 3]), tf.placeholder(tf.int32, [batch_size]))
                   for _ in range(job.num_towers)]
        global_step = tf.train.get_or_create_global_step()
        opt = optimizer.create(optimizer.learning_rate(global_step, job.pace, job.hparams), job.hparams)
        with multi_gpu.variables_on(job.variable_devices):
            _, tower_grads = multi_gpu.tower_gradients(job.devices, batches, opt, job.num_slices, job.hparams)
        train_op = optimizer.train(opt, multi_gpu.average_gradients(tower_grads), global_step, job.pace, job.hparams)
        held = collections.Counter()
        for variable in tf.trainable_variables():
            held[_device(variable.op)] += _size(variable)
        return Layout(dict(held), _sent(train_op))


def _sent(fetch):
    """The bytes that cross between devices when an operation runs, as in Layout."""
    sizes, found, waiting = collections.defaultdict(dict), {fetch}, [fetch]
    while waiting:
        op = waiting.pop()
        for tensor in op.inputs:
            arrow = _device(tensor.op), _device(op)
            if arrow[0] != arrow[1] and tensor.dtype != tf.resource and tensor.shape.num_elements() > 1:
                sizes[arrow][tensor.name] = _size(tensor)
        new = {tensor.op for tensor in op.inputs}.union(op.control_inputs) - found
        found |= new
        waiting += new
    return {arrow: sum(tensors.values()) for arrow, tensors in sizes.items()}


def _size(tensor):
    return tensor.shape.num_elements() * tensor.dtype.size


def _device(op):
    """The device of an operation; what uses a variable runs where it is."""
    for tensor in op.inputs:
        if tensor.dtype == tf.resource:
            return _device(tensor.op)
    spec = tf.DeviceSpec.from_string(op.device)
    return '/%s:%d' % (spec.device_type.lower(), spec.device_index)
