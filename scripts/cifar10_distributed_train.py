#!/usr/bin/env python3
r"""Trains in a cluster: several processes, on one or several machines.

Start one process per task of the cluster, all with the same --ps_hosts and --worker_hosts:

  cifar10_distributed_train.py --ps_hosts=a:2222 --worker_hosts=b:2222,c:2222 \
    --job_name=ps --task_index=0
  cifar10_distributed_train.py --ps_hosts=a:2222 --worker_hosts=b:2222,c:2222 \
    --job_name=worker --task_index=0

Each worker trains on its own shard of the examples, with towers on --num_gpus devices. --mode
selects synchronous updates, all-reduce, asynchronous updates or averaging of weights.
"""

import contextlib
import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import cluster_flags, program, training_flags


def define_flags():
    """Define the flags."""
    training_flags.define()
    training_flags.define_num_gpus()
    training_flags.define_variable_strategy('cpu')
    cluster_flags.define()


# Mistakes in flags are reported before the slow import of TensorFlow.
program.start(__name__, define_flags, cluster_flags.check)

from absl import flags
import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib, multi_gpu, optimizer, summaries, training
from cifar10.cli import training_job
from cifar10.distributed import (
    allreduce,
    asynchronous,
    averaging,
    server,
    synchronous,
    worker_session,
)
from cifar10.eval_hook import EvalHook
from cifar10.input import Shard
from cifar10.runs import checkpoint, run_record
from cifar10.scripts.cifar10_multi_gpu_train import session_hooks
from cifar10.system import machine, signals

FLAGS = flags.FLAGS
MODES = {'sync': synchronous, 'async': asynchronous, 'average': averaging, 'allreduce': allreduce}


def train(worker, run, first_step):
    """Train the towers of one worker, and end the process.

    It differs from train() of cifar10_multi_gpu_train.py in the devices, the WorkerOps of the mode
    and the session.

    Args:
      worker: a worker_session.Worker.
      run: the Run of the chief; None for the other workers, which write no files.
      first_step: the step of the last checkpoint, for the seed; 0 for a new run.
    """
    job, task, mode = worker.job, worker.task, MODES[worker.strategy.mode]
    hparams, settings = job.hparams, job.settings
    resources, devices = job.resources, job.resources.devices
    device = (
        task.device
        if worker.strategy.owns_variables
        else server.device_setter(worker.cluster, task)
    )
    with tf.Graph().as_default(), tf.device(device):
        training.set_seed(settings, first_step, task.index)
        images, labels = input_lib.distorted_inputs(
            job.dataset, hparams.batch_size, job.input_settings
        )
        queue = input_lib.prefetch_queue(
            images, labels, 2 * job.num_towers, resources.threads.prefetch
        )
        batches = input_lib.tower_batches(queue, job.num_towers)
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, job.run_length, hparams)
        opt = optimizer.create(learning_rate, hparams)
        with mode.variable_scope(worker):
            losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt, job.network)
        worker_ops = mode.worker_ops(worker, opt, multi_gpu.average_gradients(tower_grads))
        train_op, gradients = worker_ops.train_op, worker_ops.gradients
        with tf.device(task.device):  # The average of the losses is not shared.
            training.add_step_tensors(train_op, losses, gradients)
        summary_op = summaries.training(batches[0][0], losses, learning_rate, gradients)
        saver = tf.train.Saver(save_relative_paths=True)
        creator = worker_session.SessionCreator(worker, saver, run)
        writer = run and tf.summary.FileWriterCache.get(run.directory)
        step = training.Step(queue, train_op, summary_op)
        stop_request = signals.StopRequest()
        eval_hook = run and EvalHook(run, job.dataset.test, settings.eval_every, devices[0])
        all_hooks = [
            *worker_ops.hooks,
            *session_hooks(job, run, step, saver, writer, stop_request),
            worker_session.EndHook(worker, worker_ops.last_op, stop_request, eval_hook),
            *([eval_hook] if run else []),
        ]
        # Workers that are not the chief have nothing to save: a signal ends them immediately.
        stop_scope = stop_request if run else contextlib.nullcontext()
        restart_scope = worker_session.restart_after_lost_task()
        with stop_scope, restart_scope, tf.train.MonitoredSession(creator, all_hooks, 1) as session:
            while not session.should_stop():
                session.run(train_op)


def saved_step():
    """Return the step at which the workers start."""
    saved = None if FLAGS.fresh else checkpoint.read_latest(FLAGS.train_dir)
    return saved.step if saved else 0


def serve(cluster, task):
    """Run a parameter server until all workers have ended."""
    threads = machine.Threads(FLAGS.intra_op_threads, FLAGS.inter_op_threads)
    target = server.start(cluster, task, machine.session_config(['/cpu:0'], threads))
    watchdog = server.Watchdog(
        cluster,
        task,
        FLAGS.stall_timeout_secs,
        lambda: (
            checkpoint.newest_step(FLAGS.train_dir) >= run_record.read(FLAGS.train_dir).last_step
        ),
    )
    server.serve(target, cluster, task, watchdog)


def work(cluster, task):
    """Run a worker until the last checkpoint is saved."""
    strategy = cluster_flags.strategy_from_flags(cluster)
    job = training_job.job_from_flags(
        FLAGS.num_gpus,
        FLAGS.variable_strategy,
        shard=Shard(task.index, strategy.num_workers),
        batches_per_tower=strategy.batches_per_tower,
    )
    if training.is_complete(job, FLAGS.train_dir, saved_step()):
        return
    target = server.start(cluster, task, job.session_config)
    watchdog = server.Watchdog(
        cluster, task, FLAGS.stall_timeout_secs, lambda: saved_step() >= job.run_length.last_step
    )
    worker = worker_session.Worker(cluster, task, strategy, job, target, watchdog)
    cluster_line = training_job.describe_cluster(cluster, task, strategy)
    with (
        training_job.start_run(job, strategy.mode, cluster_line)
        if task.is_chief
        else contextlib.nullcontext()
    ) as run:
        if not run:
            training_job.print_plan(job, saved_step(), cluster_line)
        server.wait_for(cluster, worker.needed_tasks)
        worker_session.compare_with_chief(worker)
        train(worker, run, saved_step())


def main():
    """Run the task: parameter server or worker."""
    cluster, task = cluster_flags.cluster_from_flags()
    if task.job_name == 'ps':
        serve(cluster, task)
    else:
        work(cluster, task)


if __name__ == '__main__':
    program.run(main)
