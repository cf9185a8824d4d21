#!/usr/bin/env python3
"""Trains on one device: a GPU if available, else the CPU.

cifar10_multi_gpu_train.py trains several towers.

  cifar10_train.py --max_steps=100000
"""

import os
import sys

# Import from this checkout.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from cifar10.system import startup

startup.start(__name__)

from cifar10.cli import program, training_flags


def define_flags():
    """Define the flags."""
    training_flags.define()
    training_flags.define_variable_strategy()


program.parse(__name__, define_flags, training_flags.check)

from absl import flags
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import optimizer, placement, summaries, training
from cifar10.cli import training_job
from cifar10.hooks import outputs

FLAGS = flags.FLAGS


def train(job, run):
    """Train on the only device in job.devices.

    Args:
      job: a training.Job.
      run: a hooks.outputs.ChiefRun; its checkpoint, if any, is resumed.
    """
    (device,) = job.devices
    hparams = job.hparams
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        training.set_seed(job.seed, run.first_step)
        images, labels = cifar10.distorted_inputs(
            job.dataset, hparams.batch_size, job.input_settings
        )
        images, labels = cifar10.input.prefetch_queue(
            images, labels, 2, job.threads.prefetch
        ).dequeue()
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, job.run_length, hparams)
        opt = optimizer.create(learning_rate, hparams)
        with placement.variables_on(job.variable_devices), tf.device(device):
            logits = cifar10.inference(
                images, job.dataset.num_classes, job.num_sub_batches, hparams.fc_weight_decay
            )
            loss = cifar10.loss(logits, labels, label_smoothing=hparams.label_smoothing)
            gradients = opt.compute_gradients(loss)
        train_op = optimizer.train(opt, gradients, global_step, job.run_length, hparams)
        summary_op = summaries.training(images, [loss], learning_rate, gradients)
        saver = tf.train.Saver(max_to_keep=job.intervals.max_to_keep, save_relative_paths=True)
        step = training.Step(train_op, [loss], [gradients], learning_rate, summary_op)
        with run.summary_writer() as summary_writer, training.session(
            step, job, run, saver, summary_writer
        ) as session:
            while not session.should_stop():
                session.run(train_op)


def main():
    """Prepare the data set and the train_dir, print the plan, and train."""
    job = training_job.prepare(variable_strategy=FLAGS.variable_strategy)
    with outputs.open_run(FLAGS.train_dir, FLAGS.fresh, job) as run:
        training_job.print_plan(job, run)
        train(job, run)


if __name__ == '__main__':
    program.run(main)
