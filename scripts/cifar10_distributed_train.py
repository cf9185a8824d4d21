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

# Import from this checkout.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from cifar10.system import startup

startup.start(__name__)

from cifar10.cli import cluster_flags, program, training_flags


def define_flags():
    """Define the flags."""
    training_flags.define()
    training_flags.define_num_gpus()
    training_flags.define_placement()
    cluster_flags.define()


program.parse(__name__, define_flags, cluster_flags.check)

from absl import flags
import tensorflow.compat.v1 as tf

from cifar10 import evaluation, input as cifar10_input, multi_gpu, optimizer, summaries, training
from cifar10.cli import data_flags, training_job
from cifar10.distributed import parameter_server, server
from cifar10.distributed.cluster import EVALUATOR
from cifar10.distributed.task_context import TaskContext
from cifar10.distributed.worker import Worker
from cifar10.hooks import outputs
from cifar10.input import Shard
from cifar10.runs import run_directory
from cifar10.system import machine

FLAGS = flags.FLAGS


def train(job, run, replica):
    """Train the towers of one worker.

    Args:
      job: a training.Job.
      run: a ChiefRun or a WorkerRun.
      replica: a Worker that has joined the cluster.
    """
    with tf.Graph().as_default(), tf.device(replica.device):
        training.set_seed(job.seed, run.first_step, replica.task.index)
        images, labels = cifar10_input.distorted_inputs(
            job.dataset, job.hparams.batch_size, job.input_settings
        )
        queue = cifar10_input.prefetch_queue(
            images, labels, 2 * job.num_towers, job.threads.prefetch
        )
        batches = cifar10_input.tower_batches(queue, job.num_towers)
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, job.run_length, job.hparams)
        opt = optimizer.create(learning_rate, job.hparams)
        with replica.variables():
            losses, tower_grads = multi_gpu.tower_gradients(
                job.devices, batches, opt, job.model_params
            )
        gradients = multi_gpu.average_gradients(tower_grads)
        update = replica.update(
            gradients,
            learning_rate,
            lambda averages: optimizer.train(
                opt, averages, global_step, job.run_length, job.hparams
            ),
        )
        first_images, _ = batches[0]
        summary_op = summaries.training(
            first_images, losses, learning_rate, update.gradients, update.summaries
        )
        saver = tf.train.Saver(max_to_keep=job.intervals.max_to_keep, save_relative_paths=True)
        step = training.Step(update.train_op, losses, tower_grads, learning_rate, summary_op)
        with run.summary_writer() as summary_writer, training.session(
            step, job, run, saver, summary_writer, replica.session(update)
        ) as session:
            while not session.should_stop():
                session.run(update.train_op)


def evaluate(cluster, timeouts):
    """Evaluate new checkpoints until the run ends; write summaries to TRAIN_DIR/eval."""
    # The chief may first resume or move aside an older run in this directory.
    server.wait_for_chief(cluster, timeouts.connect)
    evaluator = evaluation.Evaluator(data_flags.prepare().test)
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
        config = machine.session_config(['/cpu:0'], training_job.threads())
        parameter_server.serve(TaskContext(cluster, task, config, timeouts))
        return
    strategy = cluster_flags.strategy_from_flags(cluster)
    job = training_job.prepare(
        FLAGS.num_gpus,
        FLAGS.devices_per_tower,
        FLAGS.variable_strategy,
        resumes=task.is_chief,
        shard=Shard(task.index, strategy.num_workers),
        batches_per_step=strategy.batches_per_step,
        steps_per_execution=strategy.steps_per_execution,
    )
    replica = Worker(
        TaskContext(cluster, task, job.session_config, timeouts),
        strategy,
        job,
        adopted_hparams=['warmup_epochs'] if FLAGS.warmup_epochs is None else [],
    )

    def attempt(is_first):
        with (
            # A later attempt must not move aside the run of this process.
            outputs.open_run(FLAGS.train_dir, FLAGS.fresh and is_first, job)
            if task.is_chief
            else contextlib.nullcontext(outputs.WorkerRun())
        ) as run:
            if not replica.join(
                run,
                starts_new_run=FLAGS.fresh and is_first,
                has_ended=lambda: (
                    not FLAGS.fresh
                    and run_directory.has_ended(FLAGS.train_dir, job.run_length.last_step)
                ),
            ):
                return None
            if is_first:
                training_job.print_plan(
                    replica.job, run, training_job.describe_cluster(cluster, task, strategy)
                )
            train(replica.job, run, replica)
            return run.stop_signal

    replica.run_with_recovery(attempt)


if __name__ == '__main__':
    program.run(main)
