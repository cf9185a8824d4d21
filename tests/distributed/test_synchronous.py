"""The chief's update in one session with simulated workers."""

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.distributed import cluster_state, exchange, synchronous
from cifar10.distributed.cluster import Strategy
from cifar10.distributed.variable_placement import Copies
from tests.helpers import tasks_here


def _send(strategy, variables, index, value, step):
    """Return the operation by which another worker sends gradients of this value."""
    sender = tasks_here.worker(strategy, index=index)
    buffers = [synchronous.buffer(sender.task, variable) for variable in variables]
    assign_ops = [buffer.assign(tf.fill(buffer.shape, value)) for buffer in buffers]
    return exchange.report_arrival(sender, tf.constant(step, tf.int64), assign_ops)


def test_backup_workers():
    """Workers that have not arrived do not count, with any values in their buffers."""
    worker = tasks_here.worker(Strategy('sync', 3, replicas_to_aggregate=2))
    step = tf.train.get_or_create_global_step()
    copies = Copies(worker.task)
    with copies.variable_scope():
        read = [
            tf.get_variable(name, shape, initializer=tf.ones_initializer())
            for name, shape in [('matrix', [2, 3]), ('vector', [5])]
        ]
    weights, sgd = tf.trainable_variables(), tf.train.GradientDescentOptimizer(0.5)
    update = synchronous.update(
        worker,
        copies,
        [(tf.identity(copy), copy) for copy in read],  # the gradient is the weights
        None,
        lambda averages: sgd.apply_gradients(averages, step),
    )
    with tasks_here.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(update.chief_init_op)
        session.run(update.worker_init_op)
        session.run(_send(worker.strategy, weights, 1, np.nan, -1))
        session.run(_send(worker.strategy, weights, 2, 11.0, 0))
        session.run(update.train_op)
        published = cluster_state.variable(worker.state_tasks[0], 'step')
        assert session.run([step, published]) == [1, 1]
        for value in session.run(weights + read):
            np.testing.assert_allclose(value, np.full_like(value, 1 - 0.5 * (1 + 11) / 2))
