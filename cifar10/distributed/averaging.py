"""Averaging: each worker trains a copy of its own; now and then all copies take their average.

The workers send weights and moving averages, cut into equal parts, to the parameter servers. The
supervisor on the first one collects them and hands back their average. The state of the optimizer
stays with its worker.
"""

import tensorflow.compat.v1 as tf

from cifar10.distributed import board, exchange
from cifar10.distributed.update import Update


def update(replica, unused_copies, gradients, unused_learning_rate, apply):
    """The last step before an exchange, and the exchange; the steps before it come from a hook. See
    synchronous.update."""
    host, worker, step = replica.hosts[0], replica.task, tf.train.get_global_step()
    local_op = apply(gradients)
    averaged = tf.trainable_variables() + [
        variable
        for variable in tf.global_variables()
        if variable.op.name.endswith('/ExponentialMovingAverage')
    ]
    newest = board.variable(host, 'step')
    with tf.control_dependencies([local_op]):
        parts, reached = _cut(averaged, len(replica.hosts)), step.read_value()
    filled = [
        _slot(holder, worker, part.shape).assign(part) for holder, part in zip(replica.hosts, parts)
    ]
    sent = exchange.push(host, worker, replica.generation, reached, filled)
    with tf.control_dependencies([sent]):
        generation = exchange.wait_for_update(
            host, worker, replica.generation, newest.read_value, reached - 1
        )
    with tf.control_dependencies([generation]):
        train_op = _take(averaged, replica.hosts, step)
    first = [
        _average(holder, part.shape).assign(part)
        for holder, part in zip(replica.hosts, _cut(averaged, len(replica.hosts)))
    ]
    first += [
        _slot(holder, other, part.shape).initializer
        for holder, part in zip(replica.hosts, parts)
        for other in replica.cluster.workers
    ]
    with tf.control_dependencies(
        [exchange.push(host, worker, replica.generation, tf.constant(-1, tf.int64), [])]
    ):
        start_op = _take(averaged, replica.hosts, step)
    return Update(
        train_op,
        gradients,
        start_op,
        tf.group(*first),
        generation,
        hooks=[_LocalSteps(replica, local_op)],
    )


class _LocalSteps(tf.train.SessionRunHook):
    """Makes the steps of a period but the last one."""

    def __init__(self, replica, local_op):
        self._replica = replica
        self._local_op = local_op

    def after_create_session(self, session, coord):
        self._global_step = tf.train.get_global_step()

    def before_run(self, run_context):
        step = run_context.session.run(self._global_step)
        for _ in range(
            min(self._replica.strategy.average_period, self._replica.job.pace.last_step - step) - 1
        ):
            run_context.session.run(self._local_op)
            self._replica.made_local_step()


def _part_variable(host, name, shape):
    with tf.device(host.device), tf.variable_scope('averaging/%s_%d' % host, reuse=tf.AUTO_REUSE):
        # The supervisor does not know the network: an initial value of unknown shape.
        initial = tf.placeholder_with_default(0.0, None) if shape is None else tf.zeros(shape)
        return tf.get_variable(
            name,
            dtype=tf.float32,
            initializer=initial,
            validate_shape=shape is not None,
            trainable=False,
            collections=[],
            use_resource=True,
        )


def _slot(host, worker, shape):
    """A parameter server's part of what a worker has sent."""
    return _part_variable(host, 'worker_%d' % worker.index, shape)


def _average(host, shape):
    """A parameter server's part of the newest average."""
    return _part_variable(host, 'average', shape)


def _cut(variables, num_parts):
    """The values of the variables in one vector, cut into parts that are equal, but for the last
    one."""
    flat = tf.concat([tf.reshape(variable.read_value(), [-1]) for variable in variables], 0)
    return tf.split(flat, _sizes(flat.shape.num_elements(), num_parts))


def _sizes(total, num_parts):
    """The sizes of the parts, which are equal but for the last one."""
    part = -(-total // num_parts)
    return [min(part, total - part * i) for i in range(num_parts)]


def _take(variables, hosts, step):
    """An operation that gives the variables the newest average, and `step` the step of it."""
    lengths = [variable.shape.num_elements() for variable in variables]
    newest = board.variable(hosts[0], 'step').read_value()
    # if another average is made meanwhile, the step is that of the older one
    with tf.control_dependencies([newest]):
        flat = tf.concat(
            [
                _average(host, [size]).read_value()
                for host, size in zip(hosts, _sizes(sum(lengths), len(hosts)))
            ],
            0,
        )
    return tf.group(
        step.assign(newest),
        *(
            variable.assign(tf.reshape(part, variable.shape))
            for variable, part in zip(variables, tf.split(flat, lengths))
        ),
    )


def round_op(cluster, is_counted, step):
    """An operation of the supervisor that averages what the counted workers have sent, and wakes
    all.

    Args:
      cluster: a Cluster.
      is_counted: bool [number of workers].
      step: int64 scalar, the step that they have reached.
    """
    averages = []
    for host in cluster.servers:
        with tf.device(host.device):
            sent = [_slot(host, worker, None).read_value() for worker in cluster.workers]
            counted = [
                tf.where_v2(is_counted[i], value, tf.zeros_like(value))
                for i, value in enumerate(sent)
            ]
            mean = tf.add_n(counted) / tf.reduce_sum(tf.cast(is_counted, tf.float32))
            averages.append(_average(host, None).assign(mean))
    with tf.control_dependencies(averages):
        return exchange.announce(cluster.servers, cluster.workers, step)
