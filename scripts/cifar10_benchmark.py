#!/usr/bin/env python3
"""Measures the training speed of this machine.

Each measurement runs in a new process, after a warm-up. Tables show the median (least to
greatest). --baseline also measures the reference, which has the tutorial's operations.

  cifar10_benchmark.py input        the input pipeline alone
  cifar10_benchmark.py step         the training step on a batch in memory
  cifar10_benchmark.py train        the training script, with summaries and checkpoints
  cifar10_benchmark.py towers       a batch on one tower, or divided over two or four
  cifar10_benchmark.py profile      the most expensive operations of a step, and a Chrome trace
  cifar10_benchmark.py distributed  local clusters of 2 and 4 workers
  cifar10_benchmark.py check        is each operation right on this machine? Compares it with NumPy
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import data_flags, program, training_flags

# isort: split
from absl import flags


def define_flags():
    """Define the flags."""
    data_flags.define(default_dataset='synthetic')
    training_flags.define_hparam('batch_size')
    training_flags.define_hparam('compute_dtype')
    training_flags.define_num_gpus()
    training_flags.define_threads()
    flags.DEFINE_boolean('baseline', False, 'Also measure the reference, alternately.')
    data_flags.define_integer('rounds', 5, 'Number of measurements.', 1, 1000)
    data_flags.define_integer(
        'warmup_steps', 0, 'Steps of the warm-up; 0: depends on the subcommand.', 0, 10**6
    )
    data_flags.define_integer('steps', 0, 'Measured steps; 0: depends on the subcommand.', 0, 10**6)
    data_flags.define_output_file('json_file', None, 'JSON file for the metrics of every round.')
    data_flags.define_output_file(
        'trace_file', '/tmp/cifar10_trace.json', 'profile: file for the Chrome trace.'
    )


SUBCOMMANDS = 'input', 'step', 'train', 'towers', 'profile', 'distributed', 'check'
CHECK_FLAGS = 'batch_size', 'intra_op_threads', 'inter_op_threads'
ARGUMENTS = program.start(__name__, define_flags, arguments=dict.fromkeys(SUBCOMMANDS, ()))

import dataclasses

import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.benchmark import machine_check, subcommands
from cifar10.benchmark.measurements import BASELINE, OURS, StepCounts
from cifar10.cli import training_job
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import files, signals
from cifar10.training import Job

FLAGS = flags.FLAGS


def benchmark_settings(subcommand):
    """Prepare the data set if the subcommand needs it; return the BenchmarkSettings."""
    is_read = subcommand in ('input', 'train', 'distributed') or any(
        FLAGS[name].present for name in ('dataset', 'data_dir')
    )
    # For a batch in memory, a step needs only the number of classes.
    data = data_flags.dataset_from_flags() if is_read else dataset.read('')
    if is_read:
        training_job.check_batch_size(FLAGS.batch_size, data)
    num_devices = FLAGS.num_gpus
    if subcommand == 'towers':
        num_devices = subcommands.MAX_TOWERS
    job = Job(
        dataset=data,
        hparams=dataclasses.replace(
            CLASSIC, batch_size=FLAGS.batch_size, compute_dtype=FLAGS.compute_dtype
        ),
        settings=training_flags.settings_from_flags(),
        devices=training_job.find_devices(num_devices),
    )
    names = ['compute_dtype', 'intra_op_threads', 'inter_op_threads']
    return subcommands.BenchmarkSettings(
        job=job,
        steps=StepCounts(warmup=FLAGS.warmup_steps, measured=FLAGS.steps),
        scripts_dir=os.path.dirname(os.path.realpath(__file__)),
        trainer_flags=[FLAGS[name].serialize() for name in names] + ['--eval_every=0'],
        trace_path=FLAGS.trace_file,
        data_flags=['--data_dir=' + data.directory],
    )


def check():
    """Compare the operations of the trainers with NumPy."""
    for flag in FLAGS.get_key_flags_for_module(sys.argv[0]):
        if flag.present and flag.name not in CHECK_FLAGS:
            raise UserError(f'--{flag.name} has no effect on check', 'leave it out')
    threads = training.requested_threads(training_flags.settings_from_flags())
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    print(program.versions())
    with signals.RaiseOnSignal():
        machine_check.run(machine_check.make_plans(FLAGS.batch_size, threads, num_gpus))


def main(subcommand):
    """Run a subcommand; print and write its results."""
    if subcommand == 'check':
        check()
        return
    if FLAGS['trace_file'].present and subcommand != 'profile':
        raise UserError(f'--trace_file has no effect on {subcommand}', 'leave it out')
    if FLAGS.json_file is not None:
        files.check_writable(FLAGS.json_file)
    if subcommand == 'profile':
        files.check_writable(FLAGS.trace_file)
    if subcommand == 'towers' and FLAGS.batch_size % 4:
        raise UserError('--batch_size must be a multiple of 4, because four towers share the batch')
    if subcommand == 'distributed' and FLAGS.baseline:
        raise UserError('distributed has no baseline', 'leave out --baseline')
    settings = benchmark_settings(subcommand)
    # A signal ends the child processes and removes their files.
    with signals.RaiseOnSignal():
        results = subcommands.measure_rounds(
            subcommand,
            settings,
            [OURS, BASELINE] if FLAGS.baseline else [OURS],
            FLAGS.rounds,
        )
    print(subcommands.tables(subcommand, results, settings))
    if FLAGS.json_file is not None:
        flag_values = {
            flag.name: flag.value for flag in FLAGS.get_key_flags_for_module(sys.argv[0])
        }
        files.atomic_write(
            FLAGS.json_file,
            subcommands.json_report(subcommand, results, flag_values),
            'name another file',
        )


if __name__ == '__main__':
    program.run(main, ARGUMENTS)
