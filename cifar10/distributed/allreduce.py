"""All-reduce of the gradients, with the variables on every worker.

Each of n workers sends and receives 2 (n - 1) / n times the bytes of the gradient (Patarasuk and
Yuan, 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations"). All workers
must run the same collectives. A tensor that only one worker fetches must not depend on them.
"""

import tensorflow.compat.v1 as tf

from cifar10.distributed import exchange
from cifar10.system import private_api

_GROUP_KEY = 1  # all workers
_GRADIENT_KEY = 1  # instance key of the gradients; the next keys are for initial values


def update(worker, unused_copies, own_gradients, unused_learning_rate, apply_gradients):
    """Return the Update of a worker; see synchronous.update."""
    variables = [variable for _, variable in own_gradients]
    flat = exchange.flatten([gradient for gradient, _ in own_gradients])
    means = exchange.unflatten(_all_reduce(worker, flat, _GRADIENT_KEY, 'Div'), variables)
    gradients = list(zip(means, variables))
    train_op = apply_gradients(gradients)
    init_ops = []
    for instance_key, variable in enumerate(tf.global_variables(), _GRADIENT_KEY + 1):
        # Broadcast the chief's value: the other workers add zeros.
        value = variable.read_value()
        own = value if worker.task.is_chief else tf.zeros_like(value)
        init_ops.append(variable.assign(_all_reduce(worker, own, instance_key)))
    return exchange.Update(train_op, gradients, tf.group(*init_ops), chief_init_op=tf.no_op())


def _all_reduce(worker, tensor, instance_key, final_op='Id'):
    num_workers = worker.strategy.num_workers
    if num_workers == 1:
        return tensor
    return private_api.all_reduce(tensor, num_workers, _GROUP_KEY, instance_key, 'Add', final_op)
