"""Exchange of the workers' tensors through the parameter servers.

Each worker has its own buffers, so no worker counts twice. After a restart, its new tensors replace
the old ones. A worker fills its buffers, then reports its arrival.
"""

from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10.distributed import cluster_state


class Update(NamedTuple):
    """A worker's operations for an update in one of the modes."""

    train_op: tf.Operation
    gradients: Sequence[tuple]  # (gradient of the update, variable), for the summaries
    worker_init_op: tf.Operation  # runs once, before the first step
    chief_init_op: tf.Operation  # runs before worker_init_op, if the worker initializes variables
    generation: Optional[tf.Tensor] = (
        None  # differs after the chief has reinitialized the variables
    )
    hooks: Sequence[tf.train.SessionRunHook] = ()
    summaries: Sequence[tf.Tensor] = ()  # additional ones


def flatten(tensors):
    """Concatenate tensors or variables to one vector."""
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], 0)


def unflatten(flat, like):
    """Split a vector into tensors with the shapes of `like`."""
    parts = tf.split(flat, [one.shape.num_elements() for one in like])
    return [tf.reshape(part, one.shape) for part, one in zip(parts, like)]


def arrival_queue(state_task):
    """Return the queue of arrivals, int64 [3]: generation, step of the weights, worker index."""
    with tf.device(state_task.device):
        return tf.FIFOQueue(-1, [tf.int64], [[3]], shared_name='arrivals')


def report_arrival(worker, step, assign_ops):
    """Return an operation that reports the arrival of a worker.

    Args:
      worker: the Worker.
      step: int64 scalar, the step of the worker's weights.
      assign_ops: the operations that fill its buffers.
    """
    state_task = worker.state_tasks[0]
    with tf.control_dependencies(assign_ops), tf.device(state_task.device):
        arrival = tf.stack([worker.generation, step, worker.task.index])
        return arrival_queue(state_task).enqueue([arrival])


def wait_for_arrivals(worker, step):
    """Wait for enough arrivals of this step; drop stale ones.

    Args:
      worker: the chief's Worker.
      step: int64 scalar.

    Returns:
      The mask of arrived workers, bool [number of workers].
    """
    num_workers = len(worker.cluster.worker_tasks)
    queue = arrival_queue(worker.state_tasks[0])
    expected = tf.stack([worker.generation, step])

    def body(arrived):
        arrival = queue.dequeue()
        is_fresh = tf.reduce_all(tf.equal(arrival[:2], expected))
        return arrived | (is_fresh & tf.one_hot(arrival[2], num_workers, True, False))

    with tf.device(worker.state_tasks[0].device), tf.name_scope('wait_for_arrivals'):
        return tf.while_loop(
            lambda arrived: tf.math.count_nonzero(arrived) < worker.strategy.num_aggregated,
            body,
            [tf.zeros([num_workers], tf.bool)],
            parallel_iterations=1,
            back_prop=False,
        )


def masked_mean(tensors, mask):
    """Return the mean of the selected tensors; the others may contain NaN.

    Args:
      tensors: float32, all of one shape.
      mask: bool [number of tensors].
    """
    return tf.reduce_mean(tf.boolean_mask(tf.stack(tensors), mask), 0)


def publish_step(state_tasks, waiting_tasks, step):
    """Return an operation that writes the int64 step to the cluster state and wakes tasks."""
    assign_ops = [
        cluster_state.variable(state_task, 'step').assign(step) for state_task in state_tasks
    ]
    with tf.control_dependencies(assign_ops), tf.device(state_tasks[0].device):
        zero = tf.constant(0, tf.int64)
        return tf.group(
            *(
                cluster_state.token_queue(state_tasks[0], task).enqueue(zero)
                for task in waiting_tasks
            )
        )


def wait_for_update(worker, current_step, step):
    """Wait until the newest step exceeds `step`, or the chief has reinitialized the variables.

    Args:
      worker: the waiting Worker.
      current_step: a function that reads the newest step, int64 scalar.
      step: int64 scalar.

    Returns:
      The generation.
    """
    state_task = worker.state_tasks[0]
    queue = cluster_state.token_queue(state_task, worker.task)
    generation = cluster_state.variable(state_task, 'generation')
    with tf.device(state_task.device), tf.name_scope('wait_for_update'):
        loop = tf.while_loop(
            lambda _: (
                tf.equal(generation.read_value(), worker.generation) & (current_step() <= step)
            ),
            lambda _: queue.dequeue(),
            [tf.constant(0, tf.int64)],
            parallel_iterations=1,
            back_prop=False,
        )
        with tf.control_dependencies([loop]):
            return generation.read_value()
