"""Arrivals, stale gradients and waiting, in one session."""

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.distributed import cluster_state, exchange
from cifar10.distributed.cluster import Strategy
from tests.helpers import tasks_here

GENERATION = 7


@pytest.fixture
def session(graph):
    with tasks_here.Session() as session:
        yield session


def _push(index, step=5, generation=GENERATION, assign_ops=()):
    """Return the arrival operation of one of three workers."""
    worker = tasks_here.worker(Strategy('sync', 3), index=index, generation=generation)
    return exchange.report_arrival(worker, tf.constant(step, tf.int64), assign_ops)


def _gather(wanted):
    """Return the mask of arrived workers."""
    return exchange.wait_for_arrivals(
        tasks_here.worker(Strategy('sync', 3, wanted)), tf.constant(5, tf.int64)
    )


def _arrivals():
    return exchange.arrival_queue(tasks_here.LocalTask('ps', 0))


@pytest.mark.parametrize('wanted', [2, 3])
def test_the_first_ones_count(session, wanted):
    order = (2, 0, 1)
    for index in (2,) + order:  # one has arrived twice, as after a restart
        session.run(_push(index))
    who = session.run(_gather(wanted))
    np.testing.assert_array_equal(who, [index in order[:wanted] for index in range(3)])
    assert session.run(_arrivals().size()) == 3 - wanted


@pytest.mark.parametrize(
    'step, generation',
    [(4, GENERATION), (5, GENERATION - 1)],
)
def test_stale_arrivals_are_dropped(session, step, generation):
    for arrival in [(0, step, generation), (2,), (1,)]:
        session.run(_push(*arrival))
    np.testing.assert_array_equal(session.run(_gather(2)), [False, True, True])
    assert session.run(_arrivals().size()) == 0


def test_an_arrival_comes_after_what_it_announces(session):
    held = tf.get_variable('held', initializer=0, use_resource=True)
    session.run(held.initializer)
    session.run(_push(2, assign_ops=[held.assign(3)]))
    assert session.run(held) == 3
    assert session.run(_arrivals().dequeue()).tolist() == [GENERATION, 5, 2]


class _Waiting:
    """Worker 1 waits for an update past a step."""

    def __init__(self, session):
        worker = tasks_here.worker(Strategy('sync', 3), 2, index=1, generation=GENERATION)
        state_tasks, tasks = worker.state_tasks, worker.cluster.worker_tasks
        self.session = session
        self.generation = cluster_state.variable(state_tasks[0], 'generation')
        self.steps = [cluster_state.variable(state_task, 'step') for state_task in state_tasks]
        self.queues = [cluster_state.token_queue(state_tasks[0], task) for task in tasks]
        self._wait = exchange.wait_for_update(
            worker, self.steps[0].read_value, tf.constant(5, tf.int64)
        )
        self._step = tf.placeholder(tf.int64, [])
        self._announce = exchange.publish_step(state_tasks, tasks[1:], self._step)
        for variable, value in [(self.generation, GENERATION)] + [(step, 5) for step in self.steps]:
            self.write(variable, value)

    def write(self, variable, value):
        variable.load(value, self.session)

    def start(self):
        return self.session.start(self._wait)

    def wake(self):
        """Wake worker 1 without an update, and wait until it has read the token."""
        self.session.run(self.queues[1].enqueue(tf.constant(0, tf.int64)))
        size, deadline = self.queues[1].size(), time.monotonic() + tasks_here.DEADLINE_SECS
        while self.session.run(size):
            assert time.monotonic() < deadline

    def announce(self, step):
        self.session.run(self._announce, {self._step: step})


@pytest.fixture
def waiting(session):
    return _Waiting(session)


def test_an_update_that_has_been_made(waiting):
    waiting.write(waiting.steps[0], 6)
    assert waiting.start().result() == GENERATION


@pytest.mark.parametrize('generation', [0, GENERATION + 1])
def test_the_chief_has_begun_anew(waiting, generation):
    waiting.write(waiting.generation, generation)
    assert waiting.start().result() == generation


def test_waiting_ends_with_the_announcement(waiting):
    waited = waiting.start()
    for _ in range(3):
        waiting.wake()
        assert not waited.done()
    waiting.announce(6)
    assert waited.result() == GENERATION
    assert waiting.session.run(waiting.steps) == [6, 6]
    # The chief does not wait for tokens.
    assert waiting.session.run([queue.size() for queue in waiting.queues]) == [0, 0, 1]
