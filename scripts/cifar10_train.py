#!/usr/bin/env python3
"""Trains on one device: a GPU if available, else the CPU.

Its train() is that of cifar10_multi_gpu_train.py, with one tower.

  cifar10_train.py --epochs=256
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import program, training_flags

# Mistakes in flags are reported before the slow import of TensorFlow.
program.start(__name__, training_flags.define_one_tower, training_flags.check)

from absl import flags

from cifar10.cli import training_job
from cifar10.scripts.cifar10_multi_gpu_train import train

FLAGS = flags.FLAGS


def main():
    """Prepare the data set and the train_dir, print the plan, and train."""
    job = training_job.job_from_flags(variable_strategy=FLAGS.variable_strategy)
    with training_job.start_run(job) as run:
        train(job, run)


if __name__ == '__main__':
    program.run(main)
