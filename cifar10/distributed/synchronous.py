"""Mode sync: one update from the average of the workers' gradients, by SyncReplicasOptimizer."""

import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu, network
from cifar10.distributed.worker_session import WorkerOps


def variable_scope(unused_worker):
    """Return a context manager that places the variables on the CPUs of the servers.

    tf.train.replica_device_setter would add the GPU of the tower to the server.
    """
    return multi_gpu.variables_on('/cpu:0')


def worker_ops(worker, opt, gradients):
    """Return the WorkerOps of the mode.

    A worker sends its gradient to accumulators on the servers, and waits for a token. A thread of
    the chief takes the averages from the accumulators, makes the update and the moving averages on
    the servers, and hands out the tokens.

    Args:
      worker: a Worker.
      opt: a tf.train.Optimizer.
      gradients: a list of (gradient, variable), averaged over the worker's towers.
    """
    strategy, job, global_step = worker.strategy, worker.job, tf.train.get_global_step()
    max_decay = job.run_length.max_average_decay(job.hparams)
    sync = tf.train.SyncReplicasOptimizer(
        opt,
        replicas_to_aggregate=strategy.num_aggregated,
        total_num_replicas=strategy.num_workers,
        variable_averages=tf.train.ExponentialMovingAverage(max_decay, global_step),
        variables_to_average=[v for v in network.variables().values() if v.dtype.is_floating],
    )
    train_op = sync.apply_gradients(gradients, global_step)
    if worker.task.is_chief:
        # The statistics are those of the chief. They are no control dependencies of
        # apply_gradients: its thread would inherit these, and take batches.
        train_op = tf.group(train_op, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    return WorkerOps(train_op, gradients, **hooks_and_last_op(worker, sync))


def hooks_and_last_op(worker, sync):
    """Return the fields `hooks` and `last_op` of the WorkerOps with a SyncReplicasOptimizer."""
    is_chief = worker.task.is_chief
    # With initial tokens, a fast worker could send two gradients for one update.
    hook = sync.make_session_run_hook(is_chief, num_tokens=0)
    if not is_chief:
        return dict(hooks=[hook])
    runner = sync.get_chief_queue_runner()
    # It would close the tokens' queue if another server is lost, and that server's restart would
    # not open the queue again.
    runner._cancel_op = runner._close_op = tf.no_op()
    # A lost worker can have taken a token that another one waits for.
    return dict(hooks=[hook], last_op=sync.get_init_tokens_op(worker.strategy.num_workers))
