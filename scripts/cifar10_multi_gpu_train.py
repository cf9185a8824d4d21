#!/usr/bin/env python3
"""Trains the CIFAR-10 network on one or several devices, one tower a device.

The towers share one set of variables, which the CPU holds. In each step every tower takes its own batch, their gradients
are averaged, and one update is made.

  cifar10_multi_gpu_train.py --num_gpus=4
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

from absl import flags

from cifar10 import input as cifar10_input, multi_gpu, optimizer, summaries, training
from cifar10.cli import program as command_line, recipe_flags
from cifar10.data import dataset
from cifar10.runs import run_directory
import tensorflow.compat.v1 as tf  # after cifar10, which keeps its import quiet

FLAGS = flags.FLAGS


def train(hparams, data_dir, num_examples, devices, threads, directory):
    """Trains with one tower on each device, from the checkpoint of the RunDirectory on if it has one."""
    examples_per_step = hparams.batch_size * len(devices)
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        command_line.set_seed(directory.resumed)
        images, labels = cifar10_input.distorted_inputs(data_dir, hparams.batch_size, hparams)
        queue = cifar10_input.prefetch_queue(images, labels, 2 * len(devices), threads.input)
        batches = [queue.dequeue() for _ in devices]
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, examples_per_step, num_examples, hparams)
        opt = optimizer.create(learning_rate, hparams)
        losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt, threads.slices, hparams)
        gradients = multi_gpu.average_gradients(tower_grads)
        num_steps = optimizer.num_steps(examples_per_step, num_examples, hparams)
        train_op = optimizer.train(opt, gradients, global_step, hparams, num_steps)
        summary_op = summaries.training(batches[0][0], losses, learning_rate, gradients)
        saver = tf.train.Saver(max_to_keep=FLAGS.max_to_keep, save_relative_paths=True)
        training.run(train_op, losses, tower_grads, learning_rate, summary_op, saver, directory,
                     command_line.schedule(num_steps), examples_per_step, num_examples,
                     multi_gpu.session_config(devices, threads, FLAGS.log_device_placement))


def main():
    """Makes data, devices and directory ready, prints the plan, and trains."""
    hparams = recipe_flags.hparams()
    data_dir = command_line.prepare_data()
    num_examples = dataset.verify(dataset.train_files(data_dir))
    devices = multi_gpu.tower_devices(FLAGS.num_gpus)
    threads = command_line.choose_threads(devices, hparams.batch_size)
    with run_directory.held(FLAGS.train_dir, FLAGS.fresh, hparams, len(devices), data_dir) as directory:
        training.print_plan(data_dir, devices, threads, num_examples, hparams, FLAGS.max_steps, directory.resumed)
        train(hparams, data_dir, num_examples, devices, threads, directory)


if __name__ == '__main__':
    command_line.define_training_flags()
    command_line.define_num_gpus()
    flags.adopt_module_key_flags(command_line)
    flags.adopt_module_key_flags(recipe_flags)
    command_line.run(main)
