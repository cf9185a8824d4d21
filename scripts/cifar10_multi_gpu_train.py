#!/usr/bin/env python3
"""Trains the CIFAR-10 network on one or several devices, one tower a device.

The towers share one set of variables, which the CPU holds. In each step every tower takes its own batch, their gradients
are averaged, and one update is made.

  cifar10_multi_gpu_train.py --num_gpus=4
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

from absl import flags

from cifar10 import command_line, dataset, input as cifar10_input, multi_gpu, optimizer, run_directory, summaries, training
import tensorflow.compat.v1 as tf  # after cifar10, which keeps its import quiet

FLAGS = flags.FLAGS


def train(hparams, data_dir, num_examples, devices, threads, directory):
    """Trains with one tower on each device, from the checkpoint of the RunDirectory on if it has one."""
    examples_per_step = hparams.batch_size * len(devices)
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        command_line.set_seed(directory.resumed)
        images, labels = cifar10_input.distorted_inputs(data_dir, hparams.batch_size)
        queue = cifar10_input.prefetch_queue(images, labels, 2 * len(devices), threads.input)
        batches = [queue.dequeue() for _ in devices]
        global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, examples_per_step, num_examples, hparams)
        sgd = tf.train.GradientDescentOptimizer(learning_rate)
        losses, tower_grads = multi_gpu.tower_gradients(devices, batches, sgd, threads.slices)
        gradients = multi_gpu.average_gradients(tower_grads)
        train_op = optimizer.train(sgd, gradients, global_step, hparams)
        summary_op = summaries.training(batches[0][0], losses, learning_rate, gradients)
        saver = tf.train.Saver(max_to_keep=FLAGS.max_to_keep, save_relative_paths=True)
        training.run(train_op, losses, tower_grads, learning_rate, summary_op, saver, directory, command_line.schedule(),
                     examples_per_step, multi_gpu.session_config(devices, threads, FLAGS.log_device_placement))


def main():
    """Makes data, devices and directory ready, prints the plan, and trains."""
    data_dir = command_line.prepare_data()
    num_examples = dataset.verify(dataset.train_files(data_dir))
    devices = multi_gpu.tower_devices(FLAGS.num_gpus)
    threads = command_line.choose_threads(devices, FLAGS.batch_size)
    hparams = command_line.hparams()
    with run_directory.held(FLAGS.train_dir, FLAGS.fresh, hparams, len(devices), data_dir) as directory:
        training.print_plan(data_dir, devices, threads, num_examples, hparams, directory.resumed)
        train(hparams, data_dir, num_examples, devices, threads, directory)


if __name__ == '__main__':
    command_line.define_training_flags()
    command_line.define_num_gpus()
    flags.adopt_module_key_flags(command_line)
    command_line.run(main)
