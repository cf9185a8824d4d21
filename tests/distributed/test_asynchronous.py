"""Downpour with one worker against a simulation in NumPy; staleness."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.distributed import asynchronous, cluster_state
from cifar10.distributed.cluster import Strategy
from cifar10.distributed.variable_placement import Copies
from tests.helpers import tasks_here

RATE = 0.1
# the gradient is SCALE * (weights - TARGET)
TARGET, SCALE = np.array([3.0, -2.0, 0.5]), np.array([1.0, 0.5, 2.0])


def _build(num_workers=1, **numbers):
    """Return the replica, its weights and its Update."""
    replica = tasks_here.replica(Strategy('async', num_workers, **numbers))
    step = tf.train.get_or_create_global_step()
    copies = Copies(replica.task)
    with copies.read():
        copy = tf.get_variable('weights', [3], initializer=tf.zeros_initializer())
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):  # as a second tower
            assert tf.get_variable('weights') is copy
    (weights,) = tf.trainable_variables()
    gradient = tf.constant(SCALE, tf.float32) * (copy - tf.constant(TARGET, tf.float32))
    sgd = tf.train.GradientDescentOptimizer(RATE)
    update = asynchronous.update(
        replica,
        copies,
        [(gradient, copy)],
        tf.constant(RATE),
        lambda totals: sgd.apply_gradients(totals, step),
    )
    return replica, weights, update


def _simulate(fetch_steps, push_steps, pushes):
    """Yield the weights and the staleness after each push."""
    weights, steps = np.zeros(3), 0
    for push in range(pushes):
        total = 0
        for _ in range(push_steps):
            if steps % fetch_steps == 0:
                copy, fetched = weights, push
            gradient = SCALE * (copy - TARGET)
            if fetch_steps > 1:
                copy = copy - RATE * gradient
            total, steps = total + gradient, steps + 1
        weights = weights - RATE * total
        yield weights, push - fetched


@pytest.mark.parametrize('fetch_steps, push_steps', [(1, 1), (3, 2)])
def test_downpour(capsys, fetch_steps, push_steps):
    replica, weights, update = _build(fetch_steps=fetch_steps, push_steps=push_steps)
    table = asynchronous.staleness_stats(replica.state_tasks[0], replica.task)
    expected = list(_simulate(fetch_steps, push_steps, 7))
    state = [
        weights.read_value(),
        tf.train.get_global_step().read_value(),
        cluster_state.variable(replica.state_tasks[0], 'step').read_value(),
    ]
    with tf.train.SingularMonitoredSession(update.hooks) as monitored:
        session = monitored.raw_session()
        session.run(update.chief_init_op)
        for push, (value, _) in enumerate(expected, 1):
            monitored.run(update.train_op)
            reached, *steps = session.run(state)
            np.testing.assert_allclose(reached, value, rtol=1e-5)
            assert steps == [push, push]
        staleness = [old for _, old in expected]
        assert session.run(table).tolist() == [7, sum(staleness), max(staleness)]
    # The interval of log lines is two steps; the last line comes at the end.
    parts = [staleness[first : first + 2] for first in range(0, 7, 2)]
    assert capsys.readouterr().out.splitlines() == [
        f'Staleness of {len(part)} updates by this worker: mean {np.mean(part):.2f}, maximum {max(part)}'
        for part in parts
    ]


def test_staleness_counts_the_updates_of_others():
    replica, _, update = _build(2)
    others = tf.placeholder(tf.int64, [])
    run_by_others = tf.train.get_global_step().assign_add(others)
    counts = iter([0, 4, 1])
    steps = update.hooks[0]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(update.chief_init_op)
        for count in counts:
            steps.before_run(SimpleNamespace(session=session))
            session.run(run_by_others, {others: count})
            session.run(update.train_op)
        tables = [
            asynchronous.staleness_stats(replica.state_tasks[0], worker)
            for worker in replica.cluster.worker_tasks
        ]
        assert session.run(tables[0]).tolist() == [3, 5, 4]
        session.run(tables[1].assign([1, 11, 11]))
        values = [
            tf.Summary.FromString(summary).value[0]
            for summary in session.run(list(update.summaries))
        ]
        assert {value.tag: value.simple_value for value in values} == {
            'staleness/mean': 16 / 4,
            'staleness/maximum': 11,
        }
