#!/usr/bin/env python3
"""Starts a cluster on this machine, and restarts lost tasks.

  cifar10_launch.py --num_ps=1 --num_workers=2 -- --max_steps=1000
  cifar10_launch.py --num_ps=0 --num_workers=2 -- --max_steps=1000

The flags after -- are flags of cifar10_distributed_train.py, for every task. Each line of output
begins with the name of a task. Without parameter servers, the workers train with an all-reduce, and
all restart if one is lost.

After Ctrl-C, the chief (worker 0) saves a checkpoint. A second Ctrl-C ends all tasks at once.
"""

import os
import sys

# Import from this checkout.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from cifar10.system import startup

startup.start(__name__)


from absl import flags

from cifar10.cli import program
from cifar10.distributed import launcher
from cifar10.errors import UserError

FLAGS = flags.FLAGS
TRAINER = 'cifar10_distributed_train.py'


def main(trainer_flags):
    """Run all tasks to their end; return the exit status."""
    if os.name == 'nt':
        raise UserError(
            'The launcher needs Linux or macOS: on Windows use WSL2, or start each task yourself'
        )
    trainer = os.path.join(os.path.dirname(os.path.realpath(__file__)), TRAINER)
    return launcher.Launcher(
        [sys.executable, trainer],
        trainer_flags,
        FLAGS.num_ps,
        FLAGS.num_workers,
        FLAGS.max_restarts,
    ).run()


if __name__ == '__main__':
    flags.DEFINE_integer(
        'num_ps',
        1,
        'Number of parameter servers; 0 for allreduce.',
        lower_bound=0,
        upper_bound=64,
    )
    flags.DEFINE_integer('num_workers', 2, 'Number of workers.', lower_bound=1, upper_bound=64)
    flags.DEFINE_integer(
        'max_restarts',
        3,
        'Maximum number of restarts in the whole launch.',
        lower_bound=0,
        upper_bound=10**6,
    )
    program.parse(remainder='the flags of ' + TRAINER, needs_tensorflow=False)
    program.run(main)
