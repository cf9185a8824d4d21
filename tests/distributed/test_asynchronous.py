"""Staleness of asynchronous updates."""

from types import SimpleNamespace

import tensorflow.compat.v1 as tf

from cifar10.distributed import asynchronous
from cifar10.distributed.cluster import Strategy
from cifar10.distributed.variable_placement import Copies
from tests.helpers import tasks_here


def test_staleness_counts_the_updates_of_others():
    worker = tasks_here.worker(Strategy('async', 2))
    step = tf.train.get_or_create_global_step()
    copies = Copies(worker.task)
    with copies.variable_scope():
        copy = tf.get_variable('weights', [3], initializer=tf.zeros_initializer())
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):  # as a second tower
            assert tf.get_variable('weights') is copy
    sgd = tf.train.GradientDescentOptimizer(0.1)
    update = asynchronous.update(
        worker,
        copies,
        [(tf.identity(copy), copy)],
        tf.constant(0.1),
        lambda totals: sgd.apply_gradients(totals, step),
    )
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
            asynchronous.staleness_stats(worker.state_tasks[0], task)
            for task in worker.cluster.worker_tasks
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
