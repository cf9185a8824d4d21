"""Mode allreduce: every worker holds the variables, and a collective operation sums the gradients.

Each of n workers sends and receives 2 (n - 1) / n times the bytes of the gradient (Patarasuk and
Yuan, 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations"). All workers
must run the same collectives. A tensor that only one worker fetches must not depend on them.
"""

import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from cifar10.distributed.worker_session import StartHook, WorkerOps

_GROUP_KEY = 1  # all workers
# Instance keys; the initial values of the variables have the next ones.
_GRADIENT, _VARIABLES = 1, 2


def variable_scope(worker):
    """Return a context manager that places the variables on a device of a Worker."""
    return multi_gpu.variables_on(worker.job.resources.variable_device)


def worker_ops(worker, opt, own_gradients):
    """Return the WorkerOps from the average of the gradients; see synchronous.worker_ops."""
    variables = [variable for _, variable in own_gradients]
    flat = tf.concat([tf.reshape(gradient, [-1]) for gradient, _ in own_gradients], 0)
    parts = tf.split(
        _all_reduce(worker, flat, _GRADIENT, 'Div'), [v.shape.num_elements() for v in variables]
    )
    gradients = [(tf.reshape(part, v.shape), v) for part, v in zip(parts, variables)]
    train_op = worker.train_op(opt, gradients)
    broadcast = [
        variable.assign(_broadcast(worker, variable.read_value(), key))
        for key, variable in enumerate(tf.global_variables(), _VARIABLES)
    ]
    return WorkerOps(train_op, gradients, hooks=[StartHook(tf.group(*broadcast))])


def _broadcast(worker, value, instance_key):
    """Return the chief's value on every worker: the other workers add zeros."""
    own = value if worker.task.is_chief else tf.zeros_like(value)
    return _all_reduce(worker, own, instance_key)


def _all_reduce(worker, tensor, instance_key, final_op='Id'):
    from tensorflow.python.ops import collective_ops  # not public for graphs

    num_workers = worker.strategy.num_workers
    if num_workers == 1:
        return tensor
    return collective_ops.all_reduce(tensor, num_workers, _GROUP_KEY, instance_key, 'Add', final_op)
