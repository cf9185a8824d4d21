"""Asynchronous updates: Downpour SGD.

Algorithm 7.1 of Dean et al., "Large scale distributed deep networks", 2012: a worker fetches the
weights every n_fetch steps, and sends the sum of its gradients every n_push steps. Each local step
updates the worker's copy by gradient descent, if n_fetch > 1.
"""

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import hooks
from cifar10.distributed import exchange
from cifar10.distributed.variable_placement import shared_variable


def update(worker, copies, gradients, learning_rate, apply_gradients):
    """Return the Update of a worker; see synchronous.update."""
    strategy, global_step = worker.strategy, tf.train.get_global_step()
    descend = copies.descend(gradients, learning_rate) if strategy.fetch_steps > 1 else tf.no_op()
    accumulators = []
    if strategy.push_steps > 1:
        # Local, because all workers would share variables on a parameter server.
        accumulators = [
            copies.local_variable('sums/' + copy.op.name, tf.zeros(copy.shape), copy.device)
            for _, copy in gradients
        ]
    with tf.control_dependencies([descend]):
        local_op = tf.group(
            *(
                accumulator.assign_add(gradient)
                for accumulator, (gradient, _) in zip(accumulators, gradients)
            )
        )
    totals = copies.map_to_originals(
        [_total(accumulator, *pair) for accumulator, pair in zip(accumulators, gradients)]
        or gradients
    )
    with tf.control_dependencies([apply_gradients(totals), descend]):
        update_step = global_step.read_value()
        reset_ops = [_reset(accumulator) for accumulator in accumulators]
    with tf.control_dependencies(reset_ops):
        staleness = tf.identity(update_step - 1 - copies.step.read_value(), name='staleness')
    stats = [staleness_stats(worker.state_tasks[0], task) for task in worker.cluster.worker_tasks]
    with tf.control_dependencies([_add_staleness(stats[worker.task.index], staleness)]):
        train_op = exchange.publish_step(worker.state_tasks, [], update_step)
    fetch = copies.fetch()
    return exchange.Update(
        train_op,
        totals,
        worker_init_op=tf.no_op(),
        chief_init_op=tf.group(*(worker_stats.initializer for worker_stats in stats)),
        hooks=[
            _LocalSteps(worker, fetch, local_op),
            StalenessHook(worker, staleness, update_step),
        ],
        summaries=_summaries(stats),
    )


def _reset(accumulator):
    with tf.device(accumulator.device):
        return accumulator.assign(tf.zeros_like(accumulator))


def _total(accumulator, gradient, copy):
    with tf.device(copy.device):
        return accumulator.read_value() + gradient, copy


class _LocalSteps(tf.train.SessionRunHook):
    """Hook for the local steps between two pushes, and for fetches of the weights."""

    def __init__(self, worker, fetch, local_op):
        self._worker, self._fetch, self._local_op = worker, fetch, local_op
        self._steps = 0

    def before_run(self, run_context):
        """Run all steps before the push; fetch the weights every fetch_steps steps."""
        strategy = self._worker.strategy
        for i in range(strategy.push_steps):
            if i:
                run_context.session.run(self._local_op)
                self._worker.report_local_step()
            if self._steps % strategy.fetch_steps == 0:
                run_context.session.run(self._fetch)
            self._steps += 1


def staleness_stats(state_task, worker_task):
    """Return a worker's int64 [3] variable: updates, sum and maximum of staleness."""
    with tf.device(state_task.device):
        zeros = tf.zeros([3], tf.int64)
    return shared_variable(state_task.device, f'staleness/worker_{worker_task.index}', zeros)


def _add_staleness(worker_stats, staleness):
    """Add an update to a worker's statistics."""
    with tf.device(worker_stats.device):
        count, total, maximum = tf.unstack(worker_stats.read_value())
        return worker_stats.assign([count + 1, total + staleness, tf.maximum(maximum, staleness)])


def _summaries(stats):
    """Return summaries of mean and maximum staleness of all updates since initialization."""
    counts, totals, maxima = tf.unstack(
        tf.stack([worker_stats.read_value() for worker_stats in stats], axis=1)
    )
    mean = tf.reduce_sum(totals) / tf.maximum(tf.reduce_sum(counts), 1)
    return [
        tf.raw_ops.ScalarSummary(tags='staleness/' + name, values=tf.cast(value, tf.float32))
        for name, value in [('mean', mean), ('maximum', tf.reduce_max(maxima))]
    ]


class StalenessHook(tf.train.SessionRunHook):
    """Hook that prints the staleness of this worker's updates.

    Staleness is the number of updates between a worker's fetch and its update.
    """

    def __init__(self, worker, staleness, step):
        self._fetches = [staleness, step]
        self._every_n_steps = worker.job.settings.log_frequency
        self._last_printed_step = worker.first_step
        self._values = []

    def before_run(self, run_context):
        """Request the staleness and the step."""
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        """Count the update; print the staleness every n steps."""
        staleness, step = run_values.results
        self._values.append(staleness)
        if hooks.should_trigger(step, self._last_printed_step, self._every_n_steps):
            self._print()
            self._last_printed_step = step

    def end(self, session):
        """Print the staleness of the last updates."""
        if self._values:
            self._print()

    def _print(self):
        print(
            f'Staleness of {len(self._values)} updates by this worker: mean {np.mean(self._values):.2f}, maximum {max(self._values)}'
        )
        self._values = []
