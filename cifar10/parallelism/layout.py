"""Which device holds what in a training step, and what the devices send to each other."""

import collections
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import distortions, multi_gpu, optimizer


class Layout(NamedTuple):
    """The bytes of a training step on the devices of a process, which have names like '/gpu:0'."""

    held: dict  # from a device to the bytes of its weights and biases
    sent: dict  # from (sender, receiver) to the bytes of a step

    def describe(self, name, strategy, when):
        """Two lines of text.

        Args:
          name: of what is held.
          strategy: the variable strategy.
          when: what the bytes are for, like 'per step'.
        """
        held = ', '.join(
            '%.2f MB on %s' % (size / 1e6, device) for device, size in self.held.items()
        )
        most = max(sorted(self.sent), key=self.sent.get, default=None)
        busiest = '; the most, %d, from %s to %s' % ((self.sent[most],) + most) if most else ''
        return [
            '%s: %s (--variable_strategy=%s)' % (name, held, strategy),
            'Between devices: %d bytes %s, with images and labels%s'
            % (sum(self.sent.values()), when, busiest),
        ]


def of_step(job):
    """The Layout of a training.Job in one process, found in a graph with its towers and their
    update."""
    size, batch_size = distortions.IMAGE_SIZE, job.hparams.batch_size
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = [
            (
                tf.placeholder(tf.float32, [batch_size, size, size, 3]),
                tf.placeholder(tf.int32, [batch_size]),
            )
            for _ in range(job.num_towers)
        ]
        global_step = tf.train.get_or_create_global_step()
        opt = optimizer.create(
            optimizer.learning_rate(global_step, job.pace, job.hparams), job.hparams
        )
        with multi_gpu.variables_on(job.variable_devices):
            _, tower_grads = multi_gpu.tower_gradients(job.devices, batches, opt, job.network)
        train_op = optimizer.train(
            opt, multi_gpu.average_gradients(tower_grads), global_step, job.pace, job.hparams
        )
        return of_graph([train_op], tf.trainable_variables())


def of_graph(operations, variables, task=''):
    """The Layout of a process, in a graph that has been built.

    A tensor that several operations on a device need is sent to it once. Tensors of one element,
    like losses and the learning rate, are not counted; nor is what summaries and checkpoints need.

    Args:
      operations: what a step runs.
      variables: the weights and biases that it uses, of this process.
      task: the device name of the process; devices of others are left out.
    """
    process = _process(tf.DeviceSpec.from_string(task))
    held, sizes = collections.Counter(), collections.defaultdict(dict)
    for variable in variables:
        held[_name(_spec(variable.op))] += _size(variable)
    for op in _with_ancestors(operations):
        for tensor in op.inputs:
            ends = _spec(tensor.op), _spec(op)
            arrow = tuple(map(_name, ends))
            if (
                arrow[0] != arrow[1]
                and {process} == set(map(_process, ends))
                and _is_counted(tensor)
            ):
                sizes[arrow][tensor.name] = _size(tensor)
    return Layout(dict(held), {arrow: sum(tensors.values()) for arrow, tensors in sizes.items()})


def _with_ancestors(operations):
    found, waiting = set(operations), list(operations)
    while waiting:
        op = waiting.pop()
        new = {tensor.op for tensor in op.inputs}.union(op.control_inputs) - found
        found |= new
        waiting += new
    return found


def _is_counted(tensor):
    return (
        tensor.dtype != tf.resource
        and tensor.shape.num_elements() is not None
        and tensor.shape.num_elements() > 1
    )


def _size(tensor):
    return tensor.shape.num_elements() * tensor.dtype.size


def _spec(op):
    """The device of an operation; what uses a variable runs where it is."""
    for tensor in op.inputs:
        if tensor.dtype == tf.resource:
            return _spec(tensor.op)
    return tf.DeviceSpec.from_string(op.device)


def _process(spec):
    return spec.job, spec.task


def _name(spec):
    return '/%s:%d' % ((spec.device_type or 'cpu').lower(), spec.device_index or 0)
