#!/usr/bin/env python3
"""Compares runs by their event files: a table, and a plot of precision against epochs and against minutes.

A run is NAME:TRAIN_DIR:EVAL_DIR; runs of the same name are repetitions.

  cifar10_results.py --runs=classic:/tmp/classic:/tmp/classic_eval,fast:/tmp/fast:/tmp/fast_eval --plot=precision.svg
"""
from cifar10.cli import quiet

quiet.start(__name__)

import logging

from absl import flags

from cifar10.cli import program
from cifar10.errors import UserError
from cifar10.measure import results

FLAGS = flags.FLAGS


def numbers(flag):
    """The values of the list flag as numbers."""
    try:
        return [float(value) for value in FLAGS[flag].value]
    except ValueError as error:
        raise UserError('--%s must be a list of numbers: %s' % (flag, error))


def main():
    """Prints the table and draws the plot that the flags name."""
    logging.getLogger('tensorboard').setLevel(logging.ERROR)  # it reports every file and every resumed run
    epochs, precisions = numbers('at_epochs'), numbers('reach')
    curves = [results.read_curve(run) for run in FLAGS.runs]
    print(results.comparison(curves, epochs, precisions))
    if FLAGS.plot:
        results.plot(curves, FLAGS.plot)


if __name__ == '__main__':
    flags.DEFINE_list('runs', None, 'Runs to compare, each NAME:TRAIN_DIR:EVAL_DIR.', required=True)
    flags.DEFINE_list('at_epochs', [], 'Also rows for the first evaluation after these numbers of epochs.')
    flags.DEFINE_list('reach', [], 'Also rows for the first evaluation with at least these precisions.')
    flags.DEFINE_string('plot', None, 'Draw precision against epochs and minutes to this file (.svg, .png); needs matplotlib.')
    program.run(main)
