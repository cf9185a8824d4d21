#!/usr/bin/env python3
"""Compares runs by what they wrote for TensorBoard: a table, and a plot of precision against epochs and against minutes.

A run is NAME:TRAIN_DIR:EVAL_DIR; runs of the same name are repetitions.

  cifar10_results.py --runs=classic:/tmp/classic:/tmp/classic_eval,fast:/tmp/fast:/tmp/fast_eval --plot=precision.svg
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

import logging

from absl import flags

from cifar10.cli import program as command_line
from cifar10.measure import results
from cifar10.errors import UserError

FLAGS = flags.FLAGS


def _numbers(flag):
    try:
        return [float(value) for value in FLAGS[flag].value]
    except ValueError as error:
        raise UserError('--%s is a list of numbers: %s' % (flag, error))


def main():
    """Prints the table and draws the plot that the flags name."""
    logging.getLogger('tensorboard').setLevel(logging.ERROR)  # it tells of every file, and of every start of a run
    epochs, precisions = _numbers('at_epochs'), _numbers('reach')
    curves = [results.read_curve(run) for run in FLAGS.runs]
    print(results.table(curves, epochs, precisions))
    if FLAGS.plot:
        results.plot(curves, FLAGS.plot)


if __name__ == '__main__':
    flags.DEFINE_list('runs', None, 'Runs to compare, each NAME:TRAIN_DIR:EVAL_DIR.', required=True)
    flags.DEFINE_list('at_epochs', [], 'Rows for the first evaluation after so many epochs too, not only for the last one.')
    flags.DEFINE_list('reach', [], 'Rows for the first evaluation with such a precision.')
    flags.DEFINE_string('plot', None, 'Draw precision against epochs and minutes to this file (.svg, .png); needs matplotlib.')
    command_line.run(main)
