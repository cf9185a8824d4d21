#!/usr/bin/env python3
"""Trains on one or several devices.

Each device has a tower. The towers share the variables, on the CPU or the first GPU
(--variable_strategy). In each step, every tower takes its own batch. Then the gradients are
averaged, and one update is applied.

  cifar10_multi_gpu_train.py --num_gpus=4
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import program, training_flags

# Mistakes in flags are reported before the slow import of TensorFlow.
program.start(__name__, training_flags.define_towers, training_flags.check)

from absl import flags
import tensorflow.compat.v1 as tf

from cifar10 import (
    input as input_lib,
    multi_gpu,
    optimizer,
    placement,
    summaries,
    training,
)
from cifar10.cli import training_job

FLAGS = flags.FLAGS


def train(job, run):
    """Train job.num_towers towers on job.devices.

    Args:
      job: a training.Job.
      run: a Run; its checkpoint, if any, is resumed.
    """
    hparams, settings, run_length = job.hparams, job.settings, job.run_length
    if training.is_complete(job, run):
        return
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        training.set_seed(settings, run.saved_step)
        images, labels = input_lib.distorted_inputs(
            job.dataset, hparams.batch_size, job.input_settings
        )
        queue = input_lib.prefetch_queue(images, labels, 2 * job.num_towers, job.threads.prefetch)
        batches = input_lib.tower_batches(queue, job.num_towers)
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, run_length, hparams)
        opt = optimizer.create(learning_rate, hparams)
        with placement.variables_on(job.variable_device):
            losses, tower_grads = multi_gpu.tower_gradients(
                job.devices, batches, opt, job.dataset.num_classes, hparams, job.num_sub_batches
            )
        gradients = multi_gpu.average_gradients(tower_grads)
        train_op = optimizer.train_op(opt, gradients, global_step, run_length, hparams)
        first_images, _ = batches[0]
        summary_op = summaries.training(first_images, losses, learning_rate, gradients)
        saver = tf.train.Saver(max_to_keep=settings.max_to_keep, save_relative_paths=True)
        step = training.Step(train_op, losses, gradients, summary_op)
        with training.session(job, run, step, saver, queue) as session:
            # The session has initialized or restored the variables, and started the queue runners.
            while not session.should_stop():
                session.run(train_op)  # The hooks add their fetches, such as the loss.


def main():
    """Prepare the data set and the train_dir, print the plan, and train."""
    job = training_job.job_from_flags(FLAGS.num_gpus, FLAGS.variable_strategy)
    with training_job.start_run(job) as run:
        train(job, run)


if __name__ == '__main__':
    program.run(main)
