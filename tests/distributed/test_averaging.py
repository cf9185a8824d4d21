"""Averaging in one session: the supervisor's round, and a worker's part in it, against NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import optimizer
from cifar10.distributed import averaging, board, exchange
from cifar10.distributed.strategy import Strategy
from cifar10.hparams import FAST, Pace
from tests.helpers import tasks_here


@pytest.fixture
def session(graph):
    with tasks_here.Session() as session:
        yield session


@pytest.mark.parametrize('num_servers', [1, 2, 3])
def test_a_round(session, num_servers):
    """What a worker left in its slots, when it does not count, has no effect, not even NaN."""
    cluster, rng = tasks_here.cluster(num_servers, 3), np.random.RandomState(0)
    is_counted, step = tf.placeholder(tf.bool, [3]), tf.placeholder(tf.int64, [])
    made = averaging.round_op(cluster, is_counted, step)
    averages = [averaging._average(host, None) for host in cluster.servers]
    queues = [board.wake_queue(cluster.servers[0], worker) for worker in cluster.workers]
    for number, counted in enumerate([[1, 1, 1], [1, 0, 1], [0, 1, 0]], 1):
        expected = []
        for i, host in enumerate(cluster.servers):
            sent = rng.randn(3, 4 + i).astype(np.float32)
            sent[np.flatnonzero(np.logical_not(counted))] = np.nan
            for worker, value in zip(cluster.workers, sent):
                session.run(averaging._slot(host, worker, None).assign(value))
            expected.append(sent[np.array(counted, bool)].mean(0))
        session.run(made, {is_counted: counted, step: 10 * number})
        for average, value in zip(session.run(averages), expected):
            np.testing.assert_allclose(average, value, rtol=1e-6)
        assert (
            session.run([board.variable(host, 'step') for host in cluster.servers])
            == [10 * number] * num_servers
        )
        assert session.run([queue.size() for queue in queues]) == [number] * 3


class _Worker:
    """Worker 0 of two, with Nesterov's momentum; each gradient is 1."""

    def __init__(self, session, num_servers, period=1, last_step=1000):
        self.session, self.replica = (
            session,
            tasks_here.replica(
                Strategy('average', 2, average_period=period), num_servers, last_step=last_step
            ),
        )
        self.step = tf.train.get_or_create_global_step()
        self.weights = [
            tf.get_variable(name, initializer=np.array(value, np.float32))
            for name, value in [('matrix', [[1, 2, 3], [4, 5, 6]]), ('vector', [7, 8, 9, 10, 11])]
        ]
        hparams = FAST._replace(
            optimizer='momentum', moving_average_fraction=0.0, moving_average_decay=0.05
        )
        opt = optimizer.create(tf.constant(0.5), hparams)
        gradients = [(tf.ones_like(weights), weights) for weights in self.weights]
        self.update = averaging.update(
            self.replica,
            None,
            gradients,
            None,
            lambda averages: optimizer.train(opt, averages, self.step, Pace(10, 100), hparams),
        )
        self.variables = {variable.op.name: variable for variable in tf.global_variables()}
        self.other = [
            averaging._slot(host, self.replica.cluster.workers[1], None)
            for host in self.replica.hosts
        ]
        self._reached = tf.placeholder(tf.int64, [])
        self._round = averaging.round_op(
            self.replica.cluster, tf.constant([True, True]), self._reached
        )
        self._arrival = exchange.arrivals(self.replica.hosts[0]).dequeue()
        session.run(tf.global_variables_initializer())
        board.variable(self.replica.hosts[0], 'generation').load(self.replica.generation, session)
        for host in self.replica.hosts:
            board.variable(host, 'step').load(0, session)
        session.run(self.update.publish_op)

    def arrival(self):
        return self.session.start(self._arrival).result().tolist()

    def round(self, reached):
        self.session.run(self._round, {self._reached: reached})


@pytest.mark.parametrize('num_servers', [1, 2, 3])
def test_a_worker_takes_the_average(session, num_servers):
    """Of weights and moving averages; the momentum stays its own."""
    worker = _Worker(session, num_servers)
    session.run(worker.update.start_op)
    assert worker.arrival() == [7, -1, 0]
    before = session.run(worker.variables)
    made = session.start(worker.update.train_op)
    assert worker.arrival() == [7, 1, 0] and not made.done()
    sizes = [
        slot.size
        for slot in session.run(
            [averaging._slot(host, worker.replica.task, None) for host in worker.replica.hosts]
        )
    ]
    assert sizes == {1: [22], 2: [11, 11], 3: [8, 8, 6]}[num_servers]
    for slot, size in zip(worker.other, sizes):
        session.run(slot.assign(np.full(size, 100, np.float32)))
    worker.round(1)
    assert made.result() is None
    after = session.run(worker.variables)
    assert after.pop('global_step') == 1
    for name, value in after.items():
        weights = before[name.partition('/')[0]]
        own = {
            '': weights - 0.95,
            'Momentum': np.ones_like(weights),
            'ExponentialMovingAverage': 0.05 * weights + 0.95 * (weights - 0.95),
        }
        kind = name.partition('/')[2]  # the first step of Nesterov's momentum: 0.5 * (1 + 0.9 * 1)
        np.testing.assert_allclose(
            value,
            own[kind] if kind == 'Momentum' else (own[kind] + 100) / 2,
            rtol=1e-5,
            err_msg=name,
        )


def test_the_start_takes_what_the_chief_has_published(session):
    worker = _Worker(session, 2)
    published = session.run(worker.variables)
    for variable in worker.weights:
        session.run(variable.assign(tf.zeros_like(variable)))
    board.variable(worker.replica.hosts[0], 'step').load(30, session)
    session.run(worker.update.start_op)
    values = session.run(worker.variables)
    assert values.pop('global_step') == 30
    for name, value in values.items():
        np.testing.assert_array_equal(value, published[name], err_msg=name)


def test_who_comes_too_late_takes_the_newest_average(session):
    worker = _Worker(session, 1)
    session.run(worker.update.start_op)
    session.run(worker.other[0].assign(np.full(22, 100, np.float32)))
    session.run(
        averaging._slot(worker.replica.hosts[0], worker.replica.task, None).assign(
            np.full(22, 50, np.float32)
        )
    )
    worker.round(40)
    session.run(worker.update.train_op)
    assert session.run([worker.step] + worker.weights)[0] == 40
    np.testing.assert_array_equal(session.run(worker.weights[1]), np.full(5, 75))


def test_the_chief_has_begun_anew(session):
    worker = _Worker(session, 1)
    board.variable(worker.replica.hosts[0], 'generation').load(8, session)
    assert session.run([worker.update.train_op, worker.update.generation])[1] == 8


@pytest.mark.parametrize(
    'period, last_step, step, local_steps',
    [
        (1, 1000, 0, 0),
        (10, 1000, 0, 9),
        (10, 1000, 990, 9),
        (10, 994, 990, 3),
        (10, 991, 990, 0),
        (10, 3, 0, 2),
    ],
)
def test_the_steps_of_a_period(session, period, last_step, step, local_steps):
    worker = _Worker(session, 1, period, last_step)
    session.run(worker.step.assign(step))
    (hook,) = worker.update.hooks
    hook.after_create_session(session, None)
    hook.before_run(SimpleNamespace(session=session))
    assert session.run(worker.step) == step + local_steps
