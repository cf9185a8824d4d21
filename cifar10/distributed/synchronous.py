"""Synchronous replicas: one update from the average of the workers' gradients.

Unlike in tf.train.SyncReplicasOptimizer, no worker counts twice. The chief makes all updates, and
saves only between two updates, so every checkpoint is consistent.
"""

import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from cifar10.distributed import exchange
from cifar10.distributed.variable_placement import shared_variable


def update(worker, copies, copy_gradients, unused_learning_rate, apply_gradients):
    """Return a worker's Update: send gradients; then the chief updates, and the others wait.

    Args:
      worker: a Worker.
      copies: the worker's Copies.
      copy_gradients: a list of (gradient, copy), averaged over the worker's towers.
      unused_learning_rate: a scalar tensor; only other modes use it.
      apply_gradients: a function that makes the update operation of a list of (gradient, variable).
    """
    own_gradients = copies.map_to_originals(copy_gradients)
    step, global_step = copies.step.read_value(), tf.train.get_global_step()
    assign_ops = []
    for gradient, variable in own_gradients:
        with tf.device(variable.device):
            assign_ops.append(buffer(worker.task, variable).assign(gradient))
    arrival_op = exchange.report_arrival(worker, step, assign_ops)
    if worker.task.is_chief:
        tasks = worker.cluster.worker_tasks
        buffers = [[buffer(task, variable) for task in tasks] for _, variable in own_gradients]
        chief_init_op = tf.group(
            *(buffer_variable.initializer for row in buffers for buffer_variable in row)
        )
        with tf.control_dependencies([arrival_op]):
            arrived = exchange.wait_for_arrivals(worker, step)
        gradients = [
            _average(row, variable, arrived, worker.strategy.num_aggregated)
            for row, (_, variable) in zip(buffers, own_gradients)
        ]
        with tf.control_dependencies([apply_gradients(gradients)]):
            update_done = exchange.publish_step(
                worker.state_tasks, tasks[1:], global_step.read_value()
            )
    else:
        gradients = own_gradients  # for the summaries
        chief_init_op = tf.no_op()
        with tf.control_dependencies([arrival_op]):
            update_done = exchange.wait_for_update(worker, global_step.read_value, step)
    with tf.control_dependencies([update_done]):
        train_op = copies.fetch()
    return exchange.Update(
        train_op,
        gradients,
        worker_init_op=copies.fetch(),
        chief_init_op=chief_init_op,
        generation=None if worker.task.is_chief else update_done,
    )


def buffer(task, variable):
    """Return the buffer for the gradient of a variable from the worker's Task."""
    with tf.device(variable.device):
        zeros = tf.zeros(variable.shape)
    name = f'buffers/{task.job_name}_{task.index}/{variable.op.name}'
    return shared_variable(variable.device, name, zeros)


def _average(buffers, variable, arrived, num_aggregated):
    """Return the average gradient, on the variable's device, and the variable.

    Args:
      buffers: the buffers of all workers.
      variable: a variable.
      arrived: bool [number of workers].
      num_aggregated: the number of arrived workers.
    """
    with tf.device(variable.device), tf.control_dependencies([arrived]):
        sent = [buffer_variable.read_value() for buffer_variable in buffers]
        if num_aggregated == len(buffers):
            return multi_gpu.average_gradients([[(gradient, variable)] for gradient in sent])[0]
        return exchange.masked_mean(sent, arrived), variable
