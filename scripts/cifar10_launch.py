#!/usr/bin/env python3
"""Starts a cluster on this machine, and restarts lost tasks.

  cifar10_launch.py --num_ps=1 --num_workers=2 -- --max_steps=1000
  cifar10_launch.py --num_ps=0 --num_workers=2 -- --max_steps=1000

The flags after -- are flags of cifar10_distributed_train.py, for every task. Each line of output
begins with the name of a task. Without parameter servers, the workers train with an all-reduce.

After Ctrl-C, the chief (worker 0) saves a checkpoint. A second Ctrl-C ends all tasks at once.
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import cluster_flags, program

# isort: split
from absl import flags

from cifar10.distributed import launcher

FLAGS = flags.FLAGS
TRAINER = 'cifar10_distributed_train.py'


def define_flags():
    """Define the flags."""
    flags.DEFINE_integer('num_ps', 1, 'Number of parameter servers; 0 for allreduce.', 0, 64)
    flags.DEFINE_integer('num_workers', 2, 'Number of workers.', 1, 64)
    flags.DEFINE_integer(
        'max_restarts', 3, 'Maximum number of restarts because of one task.', 0, 10**6
    )


def main(*trainer_flags):
    """Run all tasks to their end; return the exit status."""
    trainer = os.path.join(os.path.dirname(os.path.realpath(__file__)), TRAINER)
    command = cluster_flags.TrainerCommand([sys.executable, trainer], list(trainer_flags))
    return launcher.Launcher(command, FLAGS.num_ps, FLAGS.num_workers, FLAGS.max_restarts).run()


ARGUMENTS = program.start(
    __name__,
    define_flags,
    arguments='[-- FLAGS...]',
    hint=f'; the flags of {TRAINER} come after --',
    needs_tensorflow=False,
)

if __name__ == '__main__':
    program.run(main, ARGUMENTS)
