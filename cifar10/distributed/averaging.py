"""Mode average: the workers' weights are averaged after every period of local steps.

Each worker trains variables of its own. SyncReplicasOptimizer moves shared variables on the servers
to the average: it applies gradient descent with rate 1, and the gradient of a worker is the
difference between shared and own value. The optimizer's state stays local.
"""

import time

import tensorflow.compat.v1 as tf

from cifar10.distributed import allreduce, server, synchronous
from cifar10.distributed.worker_session import WorkerOps
from cifar10.runs import checkpoint

variable_scope = allreduce.variable_scope


def worker_ops(worker, opt, gradients):
    """Return the WorkerOps; see synchronous.worker_ops."""
    step, num_workers = tf.train.get_global_step(), worker.strategy.num_workers
    train_op = worker.train_op(opt, gradients)
    # The statistics of the run are those of the chief.
    averages = [v.op.name + checkpoint.AVERAGE_SUFFIX for v in tf.trainable_variables()]
    own_variables = [
        step,
        *tf.trainable_variables(),
        *(v for v in tf.global_variables() if v.op.name in averages),
    ]
    with tf.device(server.device_setter(worker.cluster, worker.task)):
        num_averages = _shared_variable('num_averages', tf.constant(0, tf.int64))
        pairs = [(_shared_variable(own.op.name, _float(own)), own) for own in own_variables]
        sync = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(1.0), num_workers, num_workers, name='average'
        )
        average_op = sync.apply_gradients(
            [(_difference(shared, own), shared) for shared, own in pairs], num_averages
        )
    with tf.control_dependencies([average_op]):
        exchange = _fetch(pairs)
    with tf.control_dependencies([train_op]):
        reached_step = step.read_value()
    fields = synchronous.hooks_and_last_op(worker, sync)
    shared_variables = [num_averages] + [shared for shared, _ in pairs]
    hook = _AverageHook(worker, shared_variables, _fetch(pairs), reached_step, exchange)
    # It is the first hook: that of SyncReplicasOptimizer reads `num_averages`.
    return WorkerOps(train_op, gradients, hooks=[hook, *fields.pop('hooks')], **fields)


def _shared_variable(name, initial_value):
    return tf.Variable(initial_value, trainable=False, collections=[], name='shared/' + name)


def _float(own):
    """Return a value that can be averaged; float64 is exact for a step below 2^53."""
    value = own.read_value()
    return value if value.dtype.is_floating else tf.cast(value, tf.float64)


def _difference(shared, own):
    """Return shared value - own value, computed on the server, so that only one value is sent."""
    value = _float(own)
    with tf.device(shared.device):
        return shared.read_value() - value


def _fetch(pairs):
    return tf.group(
        *(own.assign(tf.cast(shared.read_value(), own.dtype.base_dtype)) for shared, own in pairs)
    )


class _AverageHook(tf.train.SessionRunHook):
    """Hook that averages at every multiple of `average_period` steps, and after the last step."""

    def __init__(self, worker, shared_variables, fetch, reached_step, exchange):
        self._is_chief, self._period = worker.task.is_chief, worker.strategy.average_period
        self._last_step = worker.job.run_length.last_step
        self._shared_variables, self._fetch = shared_variables, fetch
        self._reached_step, self._exchange = reached_step, exchange

    def begin(self):
        """Add the operation that returns the names of the missing variables."""
        self._missing = tf.report_uninitialized_variables(self._shared_variables)

    def after_create_session(self, session, coord):
        """Initialize the shared variables with the chief's own ones; all workers fetch them."""
        if self._is_chief:
            session.run([shared.initializer for shared in self._shared_variables])
        while session.run(self._missing).size:
            time.sleep(server.POLL_SECS)
        session.run(self._fetch)

    def before_run(self, run_context):
        """Request the step."""
        return tf.train.SessionRunArgs(self._reached_step)

    def after_run(self, run_context, run_values):
        """Average if it is due."""
        step = run_values.results
        if step % self._period == 0 or step >= self._last_step:
            run_context.session.run(self._exchange)
