"""Runs compared by their event files: a table, and a plot of precision against epochs and against minutes."""
import io
import os
from typing import NamedTuple

import numpy as np

from cifar10 import evaluation, files
from cifar10.errors import UserError
from cifar10.measure import markdown


class Curve(NamedTuple):
    """The state of a run at each of its evaluations, in order."""
    name: str
    epochs: np.ndarray
    minutes: np.ndarray  # of training by the wall clock, without the time before the first step of each start
    precision: np.ndarray  # float32, of one view
    precision_10_views: float  # at the last evaluation; NaN if that step was not evaluated with 10 views


def _scalars(directory, tag):
    """The steps and the float32 values of a tag; for each step the last value. Steps that a resumed run repeated are dropped.

    Raises:
      UserError: the directory does not exist or has no such tag.
    """
    from tensorboard.backend.event_processing import event_accumulator
    if not os.path.isdir(directory):
        raise UserError('%s does not exist: name a directory that a run has written to' % directory)
    accumulator = event_accumulator.EventAccumulator(directory, size_guidance={event_accumulator.SCALARS: 0}).Reload()
    if tag not in accumulator.Tags()['scalars']:
        raise UserError('%s holds no event file with "%s": name the directory of a run that has written summaries' % (directory, tag))
    points = {point.step: point.value for point in accumulator.Scalars(tag)}
    steps = sorted(points)
    return np.array(steps), np.array([points[step] for step in steps], np.float32)


def read_curve(run):
    """Reads the event files of a run.

    Args:
      run: NAME:TRAIN_DIR:EVAL_DIR.

    Returns:
      A Curve.

    Raises:
      UserError: the run has another form, or a directory lacks what a run writes.
    """
    if run.count(':') != 2:
        raise UserError('--runs: %s is not of the form NAME:TRAIN_DIR:EVAL_DIR' % run)
    name, train_dir, eval_dir = run.split(':')
    steps, epochs = _scalars(train_dir, 'epoch')
    _, sec_per_batch = _scalars(train_dir, 'sec_per_batch')
    evaluated, precision = _scalars(eval_dir, evaluation.PRECISION)
    try:
        with_views = dict(zip(*_scalars(eval_dir, evaluation.tag_with_views(evaluation.PRECISION, 10))))
    except UserError:
        with_views = {}
    # A run seldom ends with a summary: after the last one its speed is taken to be the same.
    end = max(steps[-1], evaluated[-1])
    minutes = np.cumsum(np.diff(np.append(steps, end), prepend=0) * np.append(sec_per_batch, sec_per_batch[-1])) / 60
    epochs = np.append(epochs, epochs[-1] * end / steps[-1])
    steps = np.concatenate([[0], steps, [end]])
    return Curve(name, np.interp(evaluated, steps, np.append(0, epochs)), np.interp(evaluated, steps, np.append(0, minutes)),
                 precision, with_views.get(evaluated[-1], np.nan))


def _by_name(curves):
    names = {}
    for curve in curves:
        names.setdefault(curve.name, []).append(curve)
    return names


def comparison(curves, epochs, precisions):
    """A table in Markdown; for repetitions, which are curves of the same name, it gives means and spreads.

    Args:
      curves: a list of Curve.
      epochs: numbers of epochs; for each, a row for the first evaluation after so many epochs, if it is not the last one.
      precisions: for each, a row for the first evaluation with at least this precision.
    """
    rows = []
    for name, group in _by_name(curves).items():
        for epoch in epochs:
            # An evaluation belongs to a step, which may lie a little before the end of the epoch.
            found = [np.flatnonzero(curve.epochs[:-1] > epoch - 0.01) for curve in group]
            if all(len(indices) for indices in found):
                rows.append(_row(name, [_moment(curve, indices[0]) for curve, indices in zip(group, found)]))
        rows.append(_row(name, [_moment(curve, -1)._replace(precision_10_views=curve.precision_10_views) for curve in group]))
    for precision in precisions:
        for name, group in _by_name(curves).items():
            found = [(curve, np.flatnonzero(curve.precision >= np.float32(precision))) for curve in group]
            found = [_moment(curve, indices[0]) for curve, indices in found if len(indices)]
            label = '%s, first at %g' % (name, precision)
            rows.append(_row(label, found) if len(found) == len(group)
                        else [label, '%d of %d' % (len(found), len(group)), '', '', '', ''])
    return markdown.table(['', 'runs', 'epochs', 'minutes', 'precision @ 1', '10 views'], rows)


class _Moment(NamedTuple):
    epochs: float
    minutes: float
    precision: float
    precision_10_views: float = np.nan


def _moment(curve, i):
    return _Moment(curve.epochs[i], curve.minutes[i], curve.precision[i])


def _row(label, moments):
    """The cells of one run, or of the repetitions of a run."""
    def cell(values, form):
        if np.isnan(values).any():
            return ''
        mean = form % np.mean(values)
        return mean if len(values) == 1 else '%s (%s to %s)' % (mean, form % min(values), form % max(values))
    return [label, str(len(moments)), cell([moment.epochs for moment in moments], '%.1f'),
            cell([moment.minutes for moment in moments], '%.1f'), cell([moment.precision for moment in moments], '%.4f'),
            cell([moment.precision_10_views for moment in moments], '%.4f')]


def plot(curves, path):
    """Draws the curves to a file; its suffix chooses the format.

    Raises:
      UserError: matplotlib is missing or does not know the suffix, or the file cannot be written.
    """
    try:
        from matplotlib import figure
    except ImportError:
        raise UserError('--plot needs matplotlib: pip install matplotlib')
    drawing = figure.Figure(figsize=(10, 4), layout='constrained')
    for axes, field in zip(drawing.subplots(1, 2, sharey=True), ('epochs', 'minutes')):
        for color, (name, group) in enumerate(_by_name(curves).items()):
            for i, curve in enumerate(group):
                axes.plot(getattr(curve, field), curve.precision, color='C%d' % color, label=None if i else name)
        axes.set(xscale='log', xlabel='%s of training' % field)
        axes.xaxis.set_major_formatter('{x:g}')
        axes.grid(alpha=0.3)
    drawing.axes[0].set_ylabel(evaluation.PRECISION)
    drawing.axes[0].legend()
    drawn = io.BytesIO()
    try:
        drawing.savefig(drawn, format=os.path.splitext(path)[1][1:])
    except ValueError as error:
        raise UserError('Cannot draw %s (%s): give another suffix, like .svg' % (path, error))
    files.write_whole(path, drawn.getvalue(), 'name another file')
