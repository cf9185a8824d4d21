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
    training_flags.define_placement('cpu')
    cluster_flags.define()


# Mistakes in flags are reported before the slow import of TensorFlow.
program.start(__name__, define_flags, cluster_flags.check)

from absl import flags
import tensorflow.compat.v1 as tf

from cifar10 import (
    evaluation,
    input as cifar10_input,
    model,
    multi_gpu,
    optimizer,
    summaries,
    training,
)
from cifar10.cli import data_flags, training_job
from cifar10.distributed import parameter_server, server
from cifar10.distributed.cluster import EVALUATOR
from cifar10.distributed.task_context import TaskContext
from cifar10.distributed.worker import Worker
from cifar10.input import Shard
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.system import machine

FLAGS = flags.FLAGS


def train(job, run, worker):
    """Train the towers of one worker.

    Args:
      job: a training.Job.
      run: the Run of the chief; None for the other workers, which write no files.
      worker: a Worker that has joined the cluster.

    Returns:
      The signal that has stopped the chief, or None.
    """
    hparams, settings, run_length = job.hparams, job.settings, job.run_length
    if run and training.is_complete(job, run):
        return None
    with tf.Graph().as_default(), tf.device(worker.device):
        training.set_seed(settings, worker.first_step, worker.task.index)
        model.set_num_sub_batches(job.num_sub_batches)
        images, labels = cifar10_input.distorted_inputs(
            job.dataset, hparams.batch_size, job.input_settings
        )
        queue = cifar10_input.prefetch_queue(
            images, labels, 2 * job.num_towers, job.threads.prefetch
        )
        batches = cifar10_input.tower_batches(queue, job.num_towers)
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, run_length, hparams)
        opt = optimizer.create(learning_rate, hparams)
        with worker.variable_scope():
            losses, tower_grads = multi_gpu.tower_gradients(
                job.devices, batches, opt, job.dataset.num_classes, hparams
            )
        gradients = multi_gpu.average_gradients(tower_grads)
        update = worker.update(
            gradients,
            learning_rate,
            lambda gradients: optimizer.train_op(opt, gradients, global_step, run_length, hparams),
        )
        first_images, _ = batches[0]
        summary_op = summaries.training(
            first_images, losses, learning_rate, update.gradients, update.summaries
        )
        saver = tf.train.Saver(max_to_keep=settings.max_to_keep, save_relative_paths=True)
        with tf.device(worker.task.device):  # The average of the losses is not shared.
            step = training.Step(update.train_op, losses, gradients, summary_op)
        return worker.train(run, step, saver, queue)


def evaluate(cluster, timeouts):
    """Evaluate new checkpoints until the run ends; write summaries to TRAIN_DIR/eval."""
    # The chief may first resume or move aside an older run in this directory.
    server.wait_for_chief(cluster, timeouts.connect)
    evaluator = evaluation.Evaluator(data_flags.dataset_from_flags().test)
    checkpoints = evaluation.checkpoints_iterator(FLAGS.train_dir)
    evaluation.evaluate_checkpoints(evaluator, checkpoints, os.path.join(FLAGS.train_dir, 'eval'))


def main():
    """Run the task: parameter server, evaluator or worker."""
    cluster, task = cluster_flags.cluster_from_flags()
    timeouts = cluster_flags.timeouts_from_flags()
    if task.job_name == EVALUATOR:
        evaluate(cluster, timeouts)
        return
    if task.job_name == 'ps':
        threads = training.requested_threads(training_flags.settings_from_flags())
        config = machine.session_config(['/cpu:0'], threads)
        parameter_server.serve(TaskContext(cluster, task, config, timeouts))
        return
    strategy = cluster_flags.strategy_from_flags(cluster)
    job = training_job.job_from_flags(
        FLAGS.num_gpus,
        FLAGS.devices_per_tower,
        FLAGS.variable_strategy,
        resumes=task.is_chief,
        shard=Shard(task.index, strategy.num_workers),
        mode=strategy.mode,
        batches_per_tower=strategy.batches_per_tower,
        steps_per_execution=strategy.steps_per_execution,
    )
    worker = Worker(
        TaskContext(cluster, task, job.session_config, timeouts),
        strategy,
        job,
        adopted_hparams=['warmup_epochs'] if FLAGS.warmup_epochs is None else [],
    )

    def attempt(is_first):
        # A later attempt must not move aside the run of this process.
        starts_new_run = FLAGS.fresh and is_first
        with (
            open_run(FLAGS.train_dir, job.record, fresh=starts_new_run)
            if task.is_chief
            else contextlib.nullcontext()
        ) as run:
            has_joined = worker.join(
                run.saved_step if run else 0,
                starts_new_run,
                has_ended=lambda: (
                    not FLAGS.fresh
                    and checkpoint.has_ended(FLAGS.train_dir, job.run_length.last_step)
                ),
            )
            if not has_joined:
                return None
            if is_first:
                cluster_line = training_job.describe_cluster(cluster, task, strategy)
                plan = training_job.print_plan(worker.job, worker.first_step, cluster_line)
                if run:
                    run.plan = plan
            return train(worker.job, run, worker)

    worker.run_with_recovery(attempt)


if __name__ == '__main__':
    program.run(main)
