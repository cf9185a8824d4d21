"""All-reduce: every worker holds the variables; one flattened gradient goes round the ring, and all
make the same update.

Each worker sends and receives 2 (n - 1) / n times the bytes of the gradient, however many workers
there are (Patarasuk and Yuan, 2009, "Bandwidth optimal all-reduce algorithms for clusters of
workstations"). All have to run the same collectives equally often: nothing that one worker fetches
alone may need one.
"""

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import collective_ops  # no public name has it for graphs

from cifar10.distributed.exchange import Update

_GROUP = 1  # the key of the group of all workers
_ROW = 16  # elements; TensorFlow splits rows of 64 bytes or a multiple without a copy
# the key of the collective of the gradients; the following numbers are those of the first values
_GRADIENT = 1


def update(replica, unused_copies, gradients, unused_learning_rate, apply):
    """One step of all workers; see synchronous.update."""
    num_workers = replica.strategy.num_workers
    mean = _sum(_flatten([gradient for gradient, _ in gradients]), num_workers, _GRADIENT, 'Div')
    variables = [variable for _, variable in gradients]
    gradients = list(zip(_unflatten(mean, variables), variables))
    train_op = apply(gradients)
    return Update(
        train_op, gradients, start_op=_spread(replica, tf.global_variables()), publish_op=tf.no_op()
    )


def _sum(tensor, num_workers, key, final='Id'):
    if num_workers == 1:
        return tensor
    return collective_ops.all_reduce(tensor, num_workers, _GROUP, key, 'Add', final)


def _flatten(tensors):
    """One tensor with rows of _ROW elements; each of the given ones begins at a row."""
    parts = []
    for tensor in tensors:
        parts += [
            tf.reshape(tensor, [-1]),
            tf.zeros([-tensor.shape.num_elements() % _ROW], tensor.dtype),
        ]
    return tf.reshape(tf.concat(parts, 0), [-1, _ROW])


def _unflatten(rows, like):
    """The tensors that _flatten put together, with the shapes of `like`."""
    sizes = [one.shape.num_elements() for one in like]
    parts = tf.split(rows, [-(-size // _ROW) for size in sizes])
    return [
        tf.reshape(tf.reshape(part, [-1])[:size], one.shape)
        for part, size, one in zip(parts, sizes, like)
    ]


def _spread(replica, variables):
    """An operation by which all workers take the chief's values of the variables: the others add
    zeros to them."""
    assigned = []
    for i, dtype in enumerate(
        sorted({variable.dtype.base_dtype for variable in variables}, key=lambda dtype: dtype.name)
    ):
        same_type = [variable for variable in variables if variable.dtype.base_dtype == dtype]
        flat = _flatten([variable.read_value() for variable in same_type])
        flat = _sum(
            flat if replica.task.is_chief else tf.zeros_like(flat),
            replica.strategy.num_workers,
            _GRADIENT + 1 + i,
        )
        assigned += [
            variable.assign(value)
            for value, variable in zip(_unflatten(flat, same_type), same_type)
        ]
    return tf.group(*assigned)
