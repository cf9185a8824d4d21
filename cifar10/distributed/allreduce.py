"""All-reduce: every worker holds the variables; one flattened gradient goes round the ring, and all make the same update.

Each worker sends and receives 2 (n - 1) / n times the bytes of the gradient, however many workers there are (Patarasuk and Yuan,
2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations"). All have to run the same collectives equally
often: nothing that one worker fetches alone may need one.
"""
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import collective_ops  # no public name has it for graphs

from cifar10.distributed.update import Update

_GROUP = 1  # the key of the group of all workers
_GRADIENT = 1  # the key of the collective of the gradients; the following numbers are those of the first values


def update(replica, unused_copies, gradients, unused_learning_rate, apply):
    """One step of all workers; see synchronous.update."""
    num_workers = replica.strategy.num_workers
    flat = tf.concat([tf.reshape(gradient, [-1]) for gradient, _ in gradients], 0)
    mean = _sum(flat, num_workers, _GRADIENT, 'Div')
    parts = tf.split(mean, [gradient.shape.num_elements() for gradient, _ in gradients])
    gradients = [(tf.reshape(part, variable.shape), variable) for part, (_, variable) in zip(parts, gradients)]
    train_op = apply(gradients)
    return Update(train_op, gradients, start_op=_spread(replica, tf.global_variables()), publish_op=tf.no_op())


def _sum(tensor, num_workers, key, final='Id'):
    if num_workers == 1:
        return tensor
    return collective_ops.all_reduce(tensor, num_workers, _GROUP, key, 'Add', final)


def _spread(replica, variables):
    """An operation by which all workers take the chief's values of the variables: the others add zeros to them."""
    assigned = []
    for i, dtype in enumerate(sorted({variable.dtype.base_dtype for variable in variables}, key=lambda dtype: dtype.name)):
        same_type = [variable for variable in variables if variable.dtype.base_dtype == dtype]
        flat = tf.concat([tf.reshape(variable.read_value(), [-1]) for variable in same_type], 0)
        flat = _sum(flat if replica.task.is_chief else tf.zeros_like(flat), replica.strategy.num_workers, _GRADIENT + 1 + i)
        parts = tf.split(flat, [variable.shape.num_elements() for variable in same_type])
        assigned += [variable.assign(tf.reshape(part, variable.shape)) for part, variable in zip(parts, same_type)]
    return tf.group(*assigned)
