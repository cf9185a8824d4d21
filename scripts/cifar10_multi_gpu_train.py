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
    hooks as hooks_lib,
    input as input_lib,
    multi_gpu,
    optimizer,
    summaries,
    tensorboard_hooks,
    training,
)
from cifar10.cli import training_job
from cifar10.eval_hook import EvalHook
from cifar10.system import signals

FLAGS = flags.FLAGS


def train(job, run, hooks=()):
    """Train one tower per device, from the checkpoint of the run, if it has one.

    Args:
      job: a training.Job.
      run: a Run.
      hooks: further tf.train.SessionRunHooks, see docs/hooks.md.
    """
    hparams, settings, run_length = job.hparams, job.settings, job.run_length
    resources, devices = job.resources, job.resources.devices
    if training.is_complete(job, run.directory, run.saved_step):
        return
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        training.set_seed(settings, run.saved_step)
        images, labels = input_lib.distorted_inputs(
            job.dataset, hparams.batch_size, job.input_settings
        )
        queue = input_lib.prefetch_queue(
            images, labels, 2 * len(devices), resources.threads.prefetch
        )
        batches = input_lib.tower_batches(queue, len(devices))
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, run_length, hparams)
        opt = optimizer.create(learning_rate, hparams)
        with multi_gpu.variables_on(resources.variable_device):
            losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt, job.network)
        gradients = multi_gpu.average_gradients(tower_grads)
        train_op = optimizer.train_op(opt, gradients, global_step, run_length, hparams)
        training.add_step_tensors(train_op, losses, gradients)
        summary_op = summaries.training(batches[0][0], losses, learning_rate, gradients)
        saver = tf.train.Saver(save_relative_paths=True)
        # The session restores or initializes the variables, and starts the queue runners.
        creator = training.session_creator(job, run, saver)
        # SaverHook uses the same writer. Of two event files of a process, TensorBoard shows one.
        writer = tf.summary.FileWriterCache.get(run.directory)
        stop_request = signals.StopRequest()
        step = training.Step(queue, train_op, summary_op)
        all_hooks = [
            *session_hooks(job, run, step, saver, writer, stop_request),
            EvalHook(run, job.dataset.test, settings.eval_every, devices[0]),
            *hooks,
        ]
        with stop_request, tf.train.MonitoredSession(creator, all_hooks, 10) as session:
            while not session.should_stop():
                session.run(train_op)  # The hooks add their fetches, such as the loss.


def session_hooks(job, run, step, saver, writer, stop_request):
    """Return the hooks of a training session. TensorFlow calls them in this order.

    Only the chief of a cluster has a run and a writer, and writes files.
    """
    settings, run_length = job.settings, job.run_length
    found = [
        # Stop after the last step.
        tf.train.StopAtStepHook(last_step=run_length.last_step),
        # Before the first step, fill the shuffle queue, and print the progress.
        hooks_lib.QueueFillHook(stop_request),
    ]
    if settings.deterministic:
        # Skip the batches of the steps before the checkpoint.
        found.append(hooks_lib.ReplayHook(step.queue, step.train_op, job.num_towers, stop_request))
    found += [
        # Stop at a loss or gradient that is not finite, before it is printed or saved.
        hooks_lib.FiniteHook(run),
        # Print the log lines.
        hooks_lib.LoggingHook(run_length, settings.log_frequency),
        # Stop after Ctrl-C or another signal.
        hooks_lib.StopOnSignalHook(stop_request),
    ]
    if run:
        found += [
            # Save checkpoints, also of the initial weights.
            hooks_lib.SaverHook(run, saver, settings.save_checkpoint_steps),
            # Write the graph and the summaries for TensorBoard.
            tensorboard_hooks.GraphHook(writer, step.train_op),
            tensorboard_hooks.SummaryHook(
                run, writer, step.summary_op, run_length, settings.save_summaries_steps
            ),
        ]
    if run and settings.profile_step:
        found.append(tensorboard_hooks.ProfilerHook(run, writer, settings.profile_step))
    return found


def main():
    """Prepare the data set and the train_dir, print the plan, and train."""
    job = training_job.job_from_flags(FLAGS.num_gpus, FLAGS.variable_strategy)
    with training_job.start_run(job) as run:
        train(job, run)


if __name__ == '__main__':
    program.run(main)
