"""Mode async: each worker updates the shared variables without waiting for the others.

With push_steps or fetch_steps, it is Downpour SGD, algorithm 7.1 of Dean et al., "Large scale
distributed deep networks", 2012: a worker fetches the weights every n_fetch steps, and sends the
sum of its gradients every n_push steps. Each local step updates the worker's copy by gradient
descent, if n_fetch > 1.
"""

import contextlib

import tensorflow.compat.v1 as tf

from cifar10 import optimizer
from cifar10.distributed import synchronous
from cifar10.distributed.worker_session import StartHook, WorkerOps

_PAIRS = 'shared_and_copied_variables'  # graph collection of pairs


def _is_downpour(worker):
    return worker.strategy.push_steps > 1 or worker.strategy.fetch_steps > 1


@contextlib.contextmanager
def variable_scope(worker):
    """Let towers read copies of the shared variables, for Downpour SGD.

    tf.get_variable in this block creates a variable and a copy, and returns the copy. Only the
    copies are trainable in the block; only the shared variables are trainable after it.
    """
    if not _is_downpour(worker):
        with synchronous.variable_scope(worker):
            yield
        return

    def get(getter, name, *args, **kwargs):
        is_floating = tf.as_dtype(kwargs.get('dtype') or tf.float32).is_floating
        if kwargs.get('trainable') is False or not is_floating:  # It has no gradient.
            return getter(name, *args, **kwargs)
        shared = getter(name, *args, **dict(kwargs, trainable=False))
        for pair in tf.get_collection(_PAIRS):
            if pair[0] is shared:  # of an earlier tower
                return pair[1]
        zeros = tf.zeros(shared.shape, shared.dtype.base_dtype)
        copy = _local_variable(worker, 'copies/' + name, zeros, trainable=True)
        tf.add_to_collection(_PAIRS, (shared, copy))
        return copy

    with synchronous.variable_scope(worker), tf.variable_scope(
        tf.get_variable_scope(), custom_getter=get
    ):
        yield
    trainable = tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)
    trainable[:] = [shared for shared, _ in tf.get_collection(_PAIRS)]


def worker_ops(worker, opt, gradients):
    """Return the WorkerOps; see synchronous.worker_ops."""
    global_step = tf.train.get_global_step()
    fetched_step = _local_variable(worker, 'fetched_step', tf.constant(0, tf.int64))
    # The step comes first: it must not be newer than the weights.
    fetch_op = fetched_step.assign(global_step.read_value())
    descend, hooks, sums = tf.no_op(), [], []
    if _is_downpour(worker):
        fetch_op = _fetch_copies(fetch_op)
        descend, sums = _descend(worker, gradients), _gradient_sums(worker, gradients)
        add = [total.assign_add(gradient) for total, (gradient, _) in zip(sums, gradients)]
        hooks = [_LocalSteps(worker, fetch_op, tf.group(descend, *add))]
        gradients = _shared_gradients(gradients, sums)
    push = worker.train_op(opt, gradients)
    with tf.control_dependencies([push, descend]):
        step = global_step.read_value()
        # The other workers' updates between the fetch of the weights and the update from them
        staleness = step - 1 - fetched_step.read_value()
    with tf.control_dependencies([staleness]):
        resets = [total.assign(tf.zeros_like(total)) for total in sums]
        # Without copies, the next step reads the weights after this update.
        train_op = tf.group(*resets) if hooks else fetched_step.assign(step).op
    summary = tf.raw_ops.ScalarSummary(tags='staleness', values=tf.cast(staleness, tf.float32))
    tf.add_to_collection(tf.GraphKeys.SUMMARIES, summary)
    return WorkerOps(train_op, gradients, hooks=[StartHook(fetch_op), *hooks])


def _local_variable(worker, name, initial_value, trainable=False):
    with tf.device(worker.task.device), tf.device(worker.job.resources.variable_device):
        return tf.Variable(
            initial_value,
            trainable=trainable,
            name=name,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )


def _fetch_copies(fetch_step_op):
    """Return an operation that runs `fetch_step_op`, and then updates the copies."""
    with tf.name_scope('fetch'), tf.control_dependencies([fetch_step_op]):
        return tf.group(
            *(copy.assign(shared.read_value()) for shared, copy in tf.get_collection(_PAIRS))
        )


def _descend(worker, gradients):
    """Return an operation of gradient descent in a list of (gradient, copy)."""
    if worker.strategy.fetch_steps == 1:  # The next step fetches the copies.
        return tf.no_op()
    run_length, hparams = worker.job.run_length, worker.job.hparams
    rate = optimizer.learning_rate(tf.train.get_global_step(), run_length, hparams)
    return tf.group(*(copy.assign_sub(rate * gradient) for gradient, copy in gradients))


def _gradient_sums(worker, gradients):
    """Return local variables for the sums of the gradients that are not pushed yet."""
    if worker.strategy.push_steps == 1:
        return []
    return [
        _local_variable(worker, 'sums/' + copy.op.name, tf.zeros(copy.shape))
        for _, copy in gradients
    ]


def _shared_gradients(gradients, sums):
    """Return a list of (sum with the newest gradient, shared variable)."""
    shared_variables = {copy.op.name: shared for shared, copy in tf.get_collection(_PAIRS)}
    totals = [total.read_value() + gradient for total, (gradient, _) in zip(sums, gradients)] or [
        gradient for gradient, _ in gradients
    ]
    return [(total, shared_variables[copy.op.name]) for total, (_, copy) in zip(totals, gradients)]


class _LocalSteps(tf.train.SessionRunHook):
    """Hook for the local steps between two pushes, and for fetches of the weights."""

    def __init__(self, worker, fetch_op, local_op):
        self._strategy, self._fetch_op, self._local_op = worker.strategy, fetch_op, local_op
        self._num_steps = 0

    def before_run(self, run_context):
        """Run all steps before the push; fetch the weights every fetch_steps steps."""
        for i in range(self._strategy.push_steps):
            if i:
                run_context.session.run(self._local_op)
            if self._num_steps % self._strategy.fetch_steps == 0:
                run_context.session.run(self._fetch_op)
            self._num_steps += 1
