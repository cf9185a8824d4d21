"""The chief's update in one session with simulated workers, against NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import optimizer
from cifar10.config import CLASSIC
from cifar10.distributed import cluster_state, exchange, synchronous
from cifar10.distributed.cluster import Strategy
from cifar10.distributed.variable_placement import Copies
from tests.helpers import tasks_here

RATE, DECAY = 0.5, 0.05  # the warm-up of the moving averages has no effect
SHAPES = {'matrix': [2, 3], 'vector': [5]}


class _Run:
    """The chief of a cluster. The loss is half the sum of squares: its gradient is the weights."""

    def __init__(self, session, num_workers, wanted):
        self.session = session
        self.replica = replica = tasks_here.replica(Strategy('sync', num_workers, wanted))
        self.step = tf.train.get_or_create_global_step()
        copies = Copies(replica.task)
        with copies.read():
            read = [
                tf.get_variable(name, shape, initializer=tf.ones_initializer())
                for name, shape in SHAPES.items()
            ]
        self.weights = tf.trainable_variables()
        sgd, hparams = (
            tf.train.GradientDescentOptimizer(RATE),
            CLASSIC._replace(moving_average_decay=DECAY),
        )
        gradients = [(tf.identity(copy), copy) for copy in read]
        self.update = synchronous.update(
            replica,
            copies,
            gradients,
            None,
            lambda averages: optimizer.train(
                sgd, averages, self.step, replica.job.run_length, hparams
            ),
        )
        self.averages = [
            variable
            for variable in tf.global_variables()
            if variable.op.name.endswith('/ExponentialMovingAverage')
        ]
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(self.update.chief_init_op)
        session.run(self.update.worker_init_op)

    def send(self, index, value, step):
        """Send gradients of this value from another worker."""
        sender = tasks_here.replica(self.replica.strategy, index=index)
        assign_ops = []
        for weights in self.weights:
            buffer = synchronous.buffer(sender.task, weights)
            assign_ops.append(buffer.assign(tf.fill(buffer.shape, value)))
        self.session.run(exchange.report_arrival(sender, tf.constant(step, tf.int64), assign_ops))

    def assert_is(self, step, weights, average=None):
        """Assert one value of all weights and moving averages."""
        assert self.session.run(
            [self.step, cluster_state.variable(self.replica.state_tasks[0], 'step')]
        ) == [
            step,
            step,
        ]
        for value in self.session.run(self.weights):
            np.testing.assert_allclose(value, np.full_like(value, weights), rtol=1e-6)
        if average is not None:
            for value in self.session.run(self.averages):
                np.testing.assert_allclose(value, np.full_like(value, average), rtol=1e-6)


@pytest.fixture
def session(graph):
    with tasks_here.Session() as session:
        yield session


def test_the_average_of_all(session):
    run = _Run(session, 3, 0)
    weights = average = 1.0
    for step, (first, second) in enumerate([(7.0, 1.0), (-2.0, 0.5)]):
        made = session.start(run.update.train_op)
        run.send(2, 100.0, step)  # a second time, as after a restart: does not count
        run.send(2, second, step)
        run.send(1, first, step)
        made.result()
        weights -= RATE * (weights + first + second) / 3
        average = DECAY * average + (1 - DECAY) * weights
        run.assert_is(step + 1, weights, average)


@pytest.mark.parametrize('wanted, senders, value', [(1, [], 1.0), (2, [2], 6.0)])
def test_backup_workers(session, wanted, senders, value):
    """Workers that have not arrived do not count, with any values in their buffers."""
    run = _Run(session, 3, wanted)
    for index in {1, 2} - set(senders):
        run.send(index, np.nan, -1)
    for index in senders:
        run.send(index, 11.0, 0)
    session.run(run.update.train_op)
    run.assert_is(1, 1 - RATE * value)


def test_the_other_workers_are_woken(session):
    run = _Run(session, 3, 1)
    session.run(run.update.train_op)
    queues = [
        cluster_state.token_queue(run.replica.state_tasks[0], worker)
        for worker in run.replica.cluster.worker_tasks
    ]
    assert session.run([queue.size() for queue in queues]) == [0, 1, 1]


def test_slots():
    """Each worker has one buffer per variable, in no checkpoint, and reuses it."""
    weights, biases = tf.get_variable('weights', [2, 3]), tf.get_variable('biases', [3])
    workers = tasks_here.cluster(1, 2).worker_tasks
    buffers = [synchronous.buffer(worker, weights) for worker in workers]
    assert synchronous.buffer(workers[1], weights) is buffers[1] is not buffers[0]
    assert synchronous.buffer(workers[1], biases) is not buffers[1]
    assert [buffer.op.name for buffer in buffers] == [
        'buffers/worker_0/weights',
        'buffers/worker_1/weights',
    ]
    assert tf.global_variables() == [weights, biases]
