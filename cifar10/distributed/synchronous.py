"""Synchronous replicas with parameter servers: one update from the average of all workers'
gradients.

What tf.train.SyncReplicasOptimizer does, but no worker counts twice, and the moving averages are
those of the updated weights in every checkpoint: the chief alone updates, in the session run of its
own step, and so it saves between two updates.
"""

import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from cifar10.distributed import exchange
from cifar10.distributed.update import Update


def update(replica, copies, gradients, unused_learning_rate, apply):
    """One step of a worker: its gradients go to the servers, and it waits for the update, which the
    chief makes.

    Args:
      replica: a Replica.
      copies: Copies.
      gradients: a list of (gradient, copy), averaged over the worker's towers.
      apply: a function that takes a list of (gradient, variable) and makes the operation of an
        update.

    Returns:
      An Update.
    """
    host, worker = replica.hosts[0], replica.task
    gradients = copies.of_originals(gradients)
    step = copies.step.read_value()
    filled = []
    for gradient, variable in gradients:
        with tf.device(variable.device):
            filled.append(_slot(worker, variable).assign(gradient))
    arrived = exchange.push(host, worker, replica.generation, step, filled)
    if worker.is_chief:
        slots = {
            variable.op.name: [_slot(other, variable) for other in replica.cluster.workers]
            for _, variable in gradients
        }
        with tf.control_dependencies([arrived]):
            who = exchange.gather(
                host,
                replica.generation,
                step,
                replica.cluster.workers,
                replica.strategy.num_aggregated,
            )
        gradients = [
            _average(slots[variable.op.name], variable, who, replica.strategy.num_aggregated)
            for _, variable in gradients
        ]
        with tf.control_dependencies([apply(gradients)]):
            made = exchange.announce(
                replica.hosts, replica.cluster.workers[1:], tf.train.get_global_step().read_value()
            )
        publish = [slot.initializer for each in slots.values() for slot in each]
    else:
        with tf.control_dependencies([arrived]):
            made = exchange.wait_for_update(
                host, worker, replica.generation, tf.train.get_global_step().read_value, step
            )
        publish = []
    with tf.control_dependencies([made]):
        train_op = copies.fetch()
    return Update(
        train_op,
        gradients,
        start_op=copies.fetch(),
        publish_op=tf.group(*publish),
        generation=None if worker.is_chief else made,
    )


def _slot(worker, variable):
    return exchange.slot(worker, variable.op.name, variable.device, variable)


def _average(slots, variable, who, wanted):
    """The average gradient of the workers that have arrived, and the variable; computed where the
    variable is.

    Args:
      slots: the slots of all workers.
      variable: a variable.
      who: bool [number of workers], which of them have arrived.
      wanted: how many have.
    """
    with tf.device(variable.device), tf.control_dependencies([who]):
        sent = [slot.read_value() for slot in slots]
        if wanted == len(slots):
            return multi_gpu.average_gradients([[(gradient, variable)] for gradient in sent])[0]
        counted = [
            tf.where_v2(who[i], gradient, tf.zeros_like(gradient))
            for i, gradient in enumerate(sent)
        ]
        return tf.add_n(counted) / wanted, variable
