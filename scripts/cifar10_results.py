#!/usr/bin/env python3
"""Compares runs by what they wrote for TensorBoard: a table, and a plot of precision against epochs and against minutes.

A run is NAME:TRAIN_DIR:EVAL_DIR; runs of the same name are repetitions, of which the table gives the mean and the spread.

  cifar10_results.py --runs=classic:/tmp/classic:/tmp/classic_eval,fast:/tmp/fast:/tmp/fast_eval --plot=precision.png
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

import logging
import os
from typing import NamedTuple

from absl import flags
import numpy as np

from cifar10 import command_line
from cifar10.errors import UserError

FLAGS = flags.FLAGS


class Curve(NamedTuple):
    """What a run had reached at each of its evaluations, in order."""
    name: str
    epochs: np.ndarray
    minutes: np.ndarray  # of training: without start, evaluation, and the time between a stop and the next start
    precision: np.ndarray


def scalars(directory, tag):
    """The steps and the values of a tag in the event files of a directory; steps that a later start took anew count once.

    Raises:
      UserError: there is no such tag.
    """
    from tensorboard.backend.event_processing import event_accumulator
    if not os.path.isdir(directory):
        raise UserError('%s is not there: name a directory that a run has written to' % directory)
    accumulator = event_accumulator.EventAccumulator(directory, size_guidance={event_accumulator.SCALARS: 0}).Reload()
    if tag not in accumulator.Tags()['scalars']:
        raise UserError('%s holds no event file with "%s": name the directory of a run whose summaries are there' % (directory, tag))
    points = accumulator.Scalars(tag)
    return np.array([point.step for point in points]), np.array([point.value for point in points])


def read_curve(run):
    """Reads the event files of a run.

    Args:
      run: NAME:TRAIN_DIR:EVAL_DIR.

    Returns:
      A Curve.
    """
    if run.count(':') != 2:
        raise UserError('--runs: %s is not of the form NAME:TRAIN_DIR:EVAL_DIR' % run)
    name, train_dir, eval_dir = run.split(':')
    steps, epochs = scalars(train_dir, 'epoch')
    _, sec_per_batch = scalars(train_dir, 'sec_per_batch')
    minutes = np.cumsum(np.diff(steps, prepend=0) * sec_per_batch) / 60
    evaluated, precision = scalars(eval_dir, 'Precision @ 1')
    at_end = np.append(0, steps)
    return Curve(name, np.interp(evaluated, at_end, np.append(0, epochs)), np.interp(evaluated, at_end, np.append(0, minutes)),
                 precision)


def table(curves, epochs, precisions):
    """Markdown: what each recipe reaches after so many epochs and at its end, and when it first reaches a precision."""
    lines = ['| | runs | epochs | minutes | precision @ 1 |', '|---|---|---|---|---|']
    for name, repetitions in _by_name(curves).items():
        moments = [[np.searchsorted(curve.epochs, epoch * 0.999) for curve in repetitions] for epoch in epochs]
        moments = [moment for moment in moments if all(i < len(c.epochs) - 1 for i, c in zip(moment, repetitions))]
        for moment in moments + [[-1] * len(repetitions)]:
            lines.append(_row(name, repetitions, moment))
    for precision in precisions:
        for name, repetitions in _by_name(curves).items():
            moment = [int(np.argmax(curve.precision >= precision)) for curve in repetitions]
            if all(curve.precision[i] >= precision for i, curve in zip(moment, repetitions)):
                lines.append(_row('%s, first at %g' % (name, precision), repetitions, moment))
    return '\n'.join(lines)


def _by_name(curves):
    names = {}
    for curve in curves:
        names.setdefault(curve.name, []).append(curve)
    return names


def _row(label, repetitions, moment):
    def spread(values, form):
        mean = form % np.mean(values)
        return mean if len(values) == 1 else '%s (%s to %s)' % (mean, form % min(values), form % max(values))
    columns = [[getattr(curve, field)[i] for curve, i in zip(repetitions, moment)] for field in ('epochs', 'minutes', 'precision')]
    return '| %s | %d | %s |' % (label, len(repetitions), ' | '.join(
        spread(values, form) for values, form in zip(columns, ('%.1f', '%.1f', '%.4f'))))


def plot(curves, path):
    """Draws the curves to a file, whose suffix chooses the format."""
    try:
        from matplotlib import figure
    except ImportError:
        raise UserError('--plot needs matplotlib: pip install matplotlib')
    drawing = figure.Figure(figsize=(10, 4), layout='constrained')
    for axes, field in zip(drawing.subplots(1, 2, sharey=True), ('epochs', 'minutes')):
        for index, (name, repetitions) in enumerate(_by_name(curves).items()):
            for i, curve in enumerate(repetitions):
                axes.plot(getattr(curve, field), curve.precision, color='C%d' % index, label=None if i else name)
        axes.set(xscale='log', xlabel='%s of training' % field)
        axes.grid(alpha=0.3)
    drawing.axes[0].set_ylabel('precision @ 1')
    drawing.axes[0].legend()
    drawing.savefig(path)


def main():
    """Prints the table and draws the plot that the flags name."""
    logging.getLogger('tensorboard').setLevel(logging.ERROR)  # it tells of every file, and of every start of a run
    curves = [read_curve(run) for run in FLAGS.runs]
    print(table(curves, [float(epoch) for epoch in FLAGS.at_epochs], [float(precision) for precision in FLAGS.reach]))
    if FLAGS.plot:
        plot(curves, FLAGS.plot)


def _numbers(values):
    try:
        return bool([float(value) for value in values]) or True
    except ValueError:
        return False


if __name__ == '__main__':
    flags.DEFINE_list('runs', None, 'Runs to compare, each NAME:TRAIN_DIR:EVAL_DIR.', required=True)
    flags.DEFINE_list('at_epochs', [], 'Rows for the first evaluation after so many epochs too, not only for the last one.')
    flags.DEFINE_list('reach', [], 'Rows for the first evaluation with such a precision.')
    for flag in ('at_epochs', 'reach'):
        flags.register_validator(flag, _numbers, 'is not a list of numbers')
    flags.DEFINE_string('plot', None, 'Draw precision against epochs and minutes to this file (.svg, .png); needs matplotlib.')
    command_line.run(main)
