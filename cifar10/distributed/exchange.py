"""How the workers' tensors come together on the parameter servers: slots, arrivals, waiting for the
next update.

Each worker has a slot of its own for each tensor, so that it cannot count twice: what it sends
again, as after a restart, takes the place of what it sent before. When its slots are filled it
reports its arrival.
"""

from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10.distributed import cluster_state


class Update(NamedTuple):
    """A worker's part in an update, as the mode of the run makes it of the worker's gradients."""

    train_op: tf.Operation
    gradients: Sequence[tuple]  # of (gradient, variable), for the summaries
    start_op: tf.Operation  # runs once, before the first step
    publish_op: tf.Operation  # runs before it, at the worker that gives the variables their values
    # of the variables; another one means that the chief has given them other values
    generation: Optional[tf.Tensor] = None
    hooks: Sequence[tf.train.SessionRunHook] = ()
    summaries: Sequence[tf.Tensor] = ()  # further ones
    # that fetch the weights now and then, if the train op does not
    fetch_ops: Sequence[tf.Operation] = ()


def flatten(tensors):
    """The values of tensors or variables in one vector."""
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], 0)


def unflatten(flat, like):
    """The tensors in a vector that `flatten` has made, with the shapes of `like`."""
    parts = tf.split(flat, [one.shape.num_elements() for one in like])
    return [tf.reshape(part, one.shape) for part, one in zip(parts, like)]


def arrivals(host):
    """The queue of arrivals on a host: elements int64 [3], which are a generation, the step of the
    weights, and the index of a worker."""
    with tf.device(host.device):
        return tf.FIFOQueue(-1, [tf.int64], [[3]], shared_name='arrivals')


def push(replica, step, filled):
    """An operation that reports the arrival of a worker.

    Args:
      replica: the Worker.
      step: int64 scalar, the step of the weights from which the worker computed what it sends.
      filled: the operations that fill its slots.
    """
    host = replica.hosts[0]
    with tf.control_dependencies(filled), tf.device(host.device):
        arrival = tf.stack([replica.generation, step, replica.task.index])
        return arrivals(host).enqueue([arrival])


def gather(replica, step):
    """Waits until as many workers as count have arrived with tensors of this step; what is stale is
    dropped.

    Args:
      replica: the Worker that is the chief.
      step: int64 scalar.

    Returns:
      bool [number of workers]: which of them have arrived.
    """
    num_workers = len(replica.cluster.workers)
    queue = arrivals(replica.hosts[0])
    expected = tf.stack([replica.generation, step])

    def body(arrived):
        arrival = queue.dequeue()
        is_fresh = tf.reduce_all(tf.equal(arrival[:2], expected))
        return arrived | (is_fresh & tf.one_hot(arrival[2], num_workers, True, False))

    with tf.device(replica.hosts[0].device), tf.name_scope('gather'):
        return tf.while_loop(
            lambda arrived: tf.math.count_nonzero(arrived) < replica.strategy.num_aggregated,
            body,
            [tf.zeros([num_workers], tf.bool)],
            parallel_iterations=1,
            back_prop=False,
        )


def mean_of_counted(tensors, is_counted):
    """The mean of those tensors of a list that count, whatever is in the others.

    Args:
      tensors: float32, of the same shape.
      is_counted: bool [number of tensors].
    """
    return tf.reduce_mean(tf.boolean_mask(tf.stack(tensors), is_counted), 0)


def announce(hosts, workers, step):
    """An operation that writes the step, int64 scalar, on the boards of the hosts, and wakes the
    workers that wait for it."""
    notes = [cluster_state.variable(host, 'step').assign(step) for host in hosts]
    with tf.control_dependencies(notes), tf.device(hosts[0].device):
        zero = tf.constant(0, tf.int64)
        return tf.group(
            *(cluster_state.wake_queue(hosts[0], worker).enqueue(zero) for worker in workers)
        )


def wait_for_update(replica, current_step, step):
    """Waits until the step is past `step`, or the chief has given the variables other values;
    returns the generation.

    Args:
      replica: the Worker that waits.
      current_step: a function that makes a tensor of the newest step, int64 scalar.
      step: int64 scalar.
    """
    host = replica.hosts[0]
    queue = cluster_state.wake_queue(host, replica.task)
    held = cluster_state.variable(host, 'generation')
    with tf.device(host.device), tf.name_scope('wait_for_update'):
        looked = tf.while_loop(
            lambda _: tf.equal(held.read_value(), replica.generation) & (current_step() <= step),
            lambda _: queue.dequeue(),
            [tf.constant(0, tf.int64)],
            parallel_iterations=1,
            back_prop=False,
        )
        with tf.control_dependencies([looked]):
            return held.read_value()
