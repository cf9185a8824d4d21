#!/usr/bin/env python3
"""Trains the CIFAR-10 network on one device, the GPU if there is one.

The shortest program of the family; cifar10_multi_gpu_train.py is the same with several towers.

  cifar10_train.py --max_steps=100000
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

from absl import flags
import cifar10
from cifar10 import input as cifar10_input, multi_gpu, optimizer, summaries, training
from cifar10.cli import program as command_line, recipe_flags
from cifar10.data import dataset
from cifar10.runs import run_directory
import tensorflow.compat.v1 as tf  # after cifar10, which keeps its import quiet

FLAGS = flags.FLAGS


def train(hparams, data_dir, num_examples, device, threads, directory):
    """Trains on one device, from the checkpoint of the RunDirectory on if it has one."""
    with tf.Graph().as_default():
        command_line.set_seed(directory.resumed)
        images, labels = cifar10.distorted_inputs(data_dir, hparams.batch_size, hparams)
        images, labels = cifar10_input.prefetch_queue(images, labels, 2, threads.input).dequeue()
        with tf.device('/cpu:0'):
            global_step = tf.train.get_or_create_global_step()
        learning_rate = optimizer.learning_rate(global_step, hparams.batch_size, num_examples, hparams)
        opt = optimizer.create(learning_rate, hparams)
        with tf.device(device):
            logits = cifar10.inference(images, threads.slices, hparams)
            loss = cifar10.loss(logits, labels, hparams=hparams)
            gradients = opt.compute_gradients(loss)
        num_steps = optimizer.num_steps(hparams.batch_size, num_examples, hparams)
        train_op = optimizer.train(opt, gradients, global_step, hparams, num_steps)
        summary_op = summaries.training(images, [loss], learning_rate, gradients)
        saver = tf.train.Saver(max_to_keep=FLAGS.max_to_keep, save_relative_paths=True)
        training.run(train_op, [loss], [gradients], learning_rate, summary_op, saver, directory,
                     command_line.schedule(num_steps), hparams.batch_size, num_examples,
                     multi_gpu.session_config([device], threads, FLAGS.log_device_placement))


def main():
    """Makes data, device and directory ready, prints the plan, and trains."""
    hparams = recipe_flags.hparams()
    data_dir = command_line.prepare_data()
    num_examples = dataset.verify(dataset.train_files(data_dir))
    device, = multi_gpu.tower_devices(1)
    threads = command_line.choose_threads([device], hparams.batch_size)
    with run_directory.held(FLAGS.train_dir, FLAGS.fresh, hparams, 1, data_dir) as directory:
        training.print_plan(data_dir, [device], threads, num_examples, hparams, FLAGS.max_steps, directory.resumed)
        train(hparams, data_dir, num_examples, device, threads, directory)


if __name__ == '__main__':
    command_line.define_training_flags()
    flags.adopt_module_key_flags(command_line)
    flags.adopt_module_key_flags(recipe_flags)
    command_line.run(main)
