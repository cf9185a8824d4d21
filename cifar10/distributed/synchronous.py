"""Synchronous replicas with parameter servers: one update from the average of all workers'
gradients.

What tf.train.SyncReplicasOptimizer does, but no worker counts twice, and the moving averages are
those of the updated weights in every checkpoint: the chief alone updates, in the session run of its
own step, and so it saves between two updates.
"""

import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from cifar10.distributed import exchange
from cifar10.distributed.variable_placement import shared_variable


def update(replica, copies, gradients, unused_learning_rate, apply):
    """One step of a worker: its gradients go to the servers, and it waits for the update, which the
    chief makes.

    Args:
      replica: a Worker.
      copies: Copies.
      gradients: a list of (gradient, copy), averaged over the worker's towers.
      apply: a function that takes a list of (gradient, variable) and makes the operation of an
        update.

    Returns:
      An Update.
    """
    gradients = copies.of_originals(gradients)
    step, global_step = copies.step.read_value(), tf.train.get_global_step()
    filled = []
    for gradient, variable in gradients:
        with tf.device(variable.device):
            filled.append(slot(replica.task, variable).assign(gradient))
    push_op = exchange.push(replica, step, filled)
    if replica.task.is_chief:
        workers = replica.cluster.workers
        slots = [[slot(worker, variable) for worker in workers] for _, variable in gradients]
        publish_op = tf.group(*(held.initializer for row in slots for held in row))
        with tf.control_dependencies([push_op]):
            arrived = exchange.gather(replica, step)
        gradients = [
            _average(row, variable, arrived, replica.strategy.num_aggregated)
            for row, (_, variable) in zip(slots, gradients)
        ]
        with tf.control_dependencies([apply(gradients)]):
            made = exchange.announce(replica.hosts, workers[1:], global_step.read_value())
    else:
        publish_op = tf.no_op()
        with tf.control_dependencies([push_op]):
            made = exchange.wait_for_update(replica, global_step.read_value, step)
    with tf.control_dependencies([made]):
        train_op = copies.fetch()
    return exchange.Update(
        train_op,
        gradients,
        start_op=copies.fetch(),
        publish_op=publish_op,
        generation=None if replica.task.is_chief else made,
    )


def slot(worker, variable):
    """The variable in which the gradient of a variable waits for those of the other workers, beside
    it.

    Args:
      worker: the Task that has computed the gradient.
      variable: a variable of the network.
    """
    with tf.device(variable.device):
        zeros = tf.zeros(variable.shape)
    return shared_variable(variable.device, 'slots/%s_%d/' % worker + variable.op.name, zeros)


def _average(slots, variable, arrived, wanted):
    """The average gradient of the workers that have arrived, and the variable; computed where the
    variable is.

    Args:
      slots: the slots of all workers.
      variable: a variable.
      arrived: bool [number of workers].
      wanted: how many have.
    """
    with tf.device(variable.device), tf.control_dependencies([arrived]):
        sent = [held.read_value() for held in slots]
        if wanted == len(slots):
            return multi_gpu.average_gradients([[(gradient, variable)] for gradient in sent])[0]
        return exchange.mean_of_counted(sent, arrived), variable
