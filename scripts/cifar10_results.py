#!/usr/bin/env python3
r"""Compares the precision of runs, in a table and a plot.

The plot shows precision against epochs and minutes. Runs with the same NAME are repetitions.

  cifar10_results.py --plot_file=precision.svg \
    --runs=classic:/tmp/classic:/tmp/classic_eval,fast:/tmp/fast:/tmp/fast_eval
"""

import collections
import logging
import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import data_flags, program

# isort: split
from absl import flags

from cifar10.errors import UserError
from cifar10.system import files

FLAGS = flags.FLAGS


def parse_numbers(values):
    """Return the values of a list flag as numbers.

    Raises:
      UserError: a value is not a number.
    """
    try:
        return [float(value) for value in values]
    except ValueError as error:
        raise UserError(f'it must be a list of numbers: {error}')


def parse_runs(texts):
    """Return [name, train_dir, eval_dir] of each run in --runs.

    Raises:
      UserError: there is no run, or one is malformed.
    """
    if not texts:
        raise UserError('--runs is missing', 'give NAME:TRAIN_DIR:EVAL_DIR')
    for text in texts:
        if text.count(':') != 2 or not all(text.split(':')):
            raise UserError(
                f'{text or "an empty name"} is not of the form NAME:TRAIN_DIR:EVAL_DIR, each without a colon'
            )
    fields = [text.split(':') for text in texts]
    # A shell does not expand ~ after a colon.
    return [[name, *map(os.path.expanduser, directories)] for name, *directories in fields]


def define_flags():
    """Define the flags."""
    flags.DEFINE_list(
        'runs', None, 'Runs to compare, each NAME:TRAIN_DIR:EVAL_DIR, separated by commas.'
    )
    flags.DEFINE_list(
        'target_precision', [], 'Add rows for the first evaluation with at least these precisions.'
    )
    data_flags.validate('runs', parse_runs)
    data_flags.validate('target_precision', parse_numbers)
    data_flags.define_output_file(
        'plot_file',
        None,
        'Plot precision against epochs and minutes to this file (.svg, .png); needs matplotlib.',
    )


program.start(__name__, define_flags)


def main():
    """Print the table and draw the plot."""
    from cifar10.report import run_comparison

    # TensorBoard would log every file and every resumed run.
    logging.getLogger('tensorboard').setLevel(logging.ERROR)
    if FLAGS.plot_file is not None:
        files.check_writable(FLAGS.plot_file)
    curves = collections.defaultdict(list)
    for name, train_dir, eval_dir in parse_runs(FLAGS.runs):
        curves[name].append(run_comparison.read_curve(train_dir, eval_dir))
    print(run_comparison.comparison(curves, parse_numbers(FLAGS.target_precision)))
    if FLAGS.plot_file is not None:
        run_comparison.plot(curves, FLAGS.plot_file)


if __name__ == '__main__':
    program.run(main, uses_gpus=False)
