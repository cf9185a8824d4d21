#!/usr/bin/env python3
"""Measures the training speed of this machine.

Each measurement runs in a new process, after a warm-up. Tables show the median (least to
greatest). --baseline also measures the reference, which has the tutorial's operations. It
does not work with train.

  cifar10_benchmark.py input  the input pipeline alone
  cifar10_benchmark.py step   the training step on a batch in memory
  cifar10_benchmark.py train  the training script, with summaries and checkpoints
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10 import networks
from cifar10.cli import data_flags, program, training_flags

# isort: split
from absl import flags


def define_flags():
    """Define the flags."""
    data_flags.define(default_dataset='synthetic')
    data_flags.define_network(networks.DEFAULT)
    training_flags.define_hparam('batch_size')
    training_flags.define_hparam('compute_dtype')
    training_flags.define_num_gpus()
    training_flags.define_settings(['intra_op_threads', 'inter_op_threads'])
    flags.DEFINE_boolean('baseline', False, 'input, step: also measure the reference, alternately.')
    flags.DEFINE_integer('rounds', 5, 'Number of measurements.', 1, 1000)
    flags.DEFINE_integer(
        'warmup_steps', 0, 'Steps of the warm-up; 0: depends on the subcommand.', 0, 10**6
    )
    flags.DEFINE_integer('steps', 0, 'Measured steps; 0: depends on the subcommand.', 0, 10**6)


SUBCOMMANDS = 'input', 'step', 'train'
ARGUMENTS = program.start(__name__, define_flags, arguments=dict.fromkeys(SUBCOMMANDS, ()))

import dataclasses

from cifar10.benchmark import subcommands
from cifar10.benchmark.measurements import BASELINE, OURS, StepCounts
from cifar10.benchmark.subcommands import BenchmarkSettings
from cifar10.cli import training_job
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import signals
from cifar10.training import create_job

FLAGS = flags.FLAGS


def job_from_flags(subcommand):
    """Prepare the data set if the subcommand needs it; return the Job."""
    # For a batch in memory, a step needs only the number of classes.
    data = dataset.WITHOUT_FILES
    if subcommand in ('input', 'train') or FLAGS['dataset'].present or FLAGS['data_dir'].present:
        data = data_flags.dataset_from_flags()
    return create_job(
        data,
        hparams=dataclasses.replace(
            CLASSIC, batch_size=FLAGS.batch_size, compute_dtype=FLAGS.compute_dtype
        ),
        settings=training_flags.settings_from_flags(),
        devices=training_job.find_devices(FLAGS.num_gpus),
        network_name=FLAGS.network,
    )


def main(subcommand):
    """Run a subcommand; print and write its results."""
    if subcommand == 'train' and FLAGS.baseline:
        raise UserError('--baseline has no effect on train: leave it out')
    if FLAGS.baseline and FLAGS.network != networks.DEFAULT:
        raise UserError("--baseline is of the books' network: leave it out, or --network")
    settings = BenchmarkSettings(
        job_from_flags(subcommand),
        StepCounts(FLAGS.warmup_steps, FLAGS.steps),
        os.path.dirname(os.path.realpath(__file__)),
    )
    formulations = [OURS, BASELINE] if FLAGS.baseline else [OURS]
    # A signal ends the child processes and removes their files.
    with signals.StopRequest(raises=True):
        rounds = subcommands.measure_rounds(subcommand, settings, formulations, FLAGS.rounds)
    print(subcommands.table(rounds))


if __name__ == '__main__':
    program.run(main, ARGUMENTS)
