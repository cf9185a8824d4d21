"""How the workers' tensors come together on the parameter servers: slots, arrivals, waiting for the
next update.

Each worker has a slot of its own for each tensor, so that it cannot count twice: what it sends
again, as after a restart, takes the place of what it sent before. When its slots are filled it
reports its arrival.
"""

import tensorflow.compat.v1 as tf

from cifar10.distributed import board


def slot(worker, name, device, like):
    """The variable in which a worker's tensor waits for those of the others.

    Args:
      worker: a Task.
      name: of the tensor.
      device: of the task that puts the tensors together.
      like: a tensor or variable of the same shape and type.
    """
    with tf.device(device), tf.variable_scope('slots/%s_%d' % worker, reuse=tf.AUTO_REUSE):
        return tf.get_variable(
            name,
            like.shape,
            like.dtype.base_dtype,
            tf.zeros_initializer(),
            trainable=False,
            collections=[],
            use_resource=True,
        )


def arrivals(host):
    """The queue of arrivals: elements int64 [3], which are a generation, the step of the weights,
    and the index of a worker."""
    with tf.device(host.device):
        return tf.FIFOQueue(-1, [tf.int64], [[3]], shared_name='arrivals')


def push(host, worker, generation, step, filled):
    """An operation that reports the arrival of a worker.

    Args:
      host: the Task of the first parameter server.
      worker: a Task.
      generation: the number of the variables' values, see board.Notice.
      step: int64 scalar, the step of the weights from which the worker computed what it sends.
      filled: the operations that fill its slots.
    """
    with tf.control_dependencies(filled), tf.device(host.device):
        return arrivals(host).enqueue(
            [
                tf.stack(
                    [tf.constant(generation, tf.int64), step, tf.constant(worker.index, tf.int64)]
                )
            ]
        )


def gather(host, generation, step, workers, wanted):
    """Waits until `wanted` of the workers have arrived with tensors of this step; what is stale is
    dropped.

    Args:
      host: the Task of the first parameter server.
      generation, step: those of the weights, see `push`.
      workers: the Tasks of all workers.
      wanted: their number, or less.

    Returns:
      bool [number of workers]: who has arrived.
    """
    num_workers = len(workers)
    queue = arrivals(host)

    def body(arrived):
        arrival = queue.dequeue()
        is_fresh = tf.reduce_all(
            tf.equal(arrival[:2], tf.stack([tf.constant(generation, tf.int64), step]))
        )
        return tf.logical_or(
            arrived, tf.logical_and(is_fresh, tf.one_hot(arrival[2], num_workers, True, False))
        )

    with tf.device(host.device), tf.name_scope('gather'):
        return tf.while_loop(
            lambda arrived: tf.reduce_sum(tf.cast(arrived, tf.int32)) < wanted,
            body,
            [tf.zeros([num_workers], tf.bool)],
            parallel_iterations=1,
            back_prop=False,
        )


def announce(hosts, workers, step):
    """An operation that writes the step, int64 scalar, on the boards of the hosts, and wakes the
    workers that wait for it."""
    notes = [board.variable(host, 'step').assign(step) for host in hosts]
    with tf.control_dependencies(notes), tf.device(hosts[0].device):
        return tf.group(
            *(
                board.wake_queue(hosts[0], worker).enqueue(tf.constant(0, tf.int64))
                for worker in workers
            )
        )


def wait_for_update(host, worker, generation, current_step, step):
    """Waits until the step is past `step`, or the chief has given the variables other values;
    returns the generation.

    Args:
      host: the Task of the first parameter server.
      worker: the Task that waits.
      generation: the generation in which it waits.
      current_step: a function that makes a tensor of the newest step, int64 scalar.
      step: int64 scalar.
    """
    queue = board.wake_queue(host, worker)
    held = board.variable(host, 'generation')
    with tf.device(host.device), tf.name_scope('wait_for_update'):
        looked = tf.while_loop(
            lambda _: tf.logical_and(
                tf.equal(held.read_value(), generation), current_step() <= step
            ),
            lambda _: queue.dequeue(),
            [tf.constant(0, tf.int64)],
            parallel_iterations=1,
            back_prop=False,
        )
        with tf.control_dependencies([looked]):
            return held.read_value()
