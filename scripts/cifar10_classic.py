#!/usr/bin/env python3
"""Trains in the tutorial's operations (the reference), without resuming an existing run.

It is the baseline of cifar10_benchmark.py, and refuses a directory that is not empty.

  cifar10_classic.py --num_gpus=2 --max_steps=1000
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import data_flags, program, training_flags


def define_flags():
    """Define the flags."""
    data_flags.define()
    training_flags.define_run()
    training_flags.define_hparam('batch_size')
    training_flags.define_num_gpus()


program.start(__name__, define_flags, training_flags.check_run)

import dataclasses

from absl import flags

from cifar10.benchmark import reference
from cifar10.cli import training_job
from cifar10.config import CLASSIC
from cifar10.training import Job

FLAGS = flags.FLAGS


def main():
    """Prepare the data set and train."""
    data = data_flags.dataset_from_flags()
    training_job.check_batch_size(FLAGS.batch_size, data)
    job = Job(
        dataset=data,
        hparams=dataclasses.replace(CLASSIC, batch_size=FLAGS.batch_size),
        settings=training_flags.settings_from_flags(),
        devices=training_job.find_devices(FLAGS.num_gpus),
    )
    reference.train(job, FLAGS.train_dir)


if __name__ == '__main__':
    program.run(main)
