"""Runs compared by their event files: a table, and a plot of precision against epochs and against
minutes."""

import io
import os
from typing import NamedTuple
import warnings

import numpy as np

from cifar10 import errors, files
from cifar10.errors import UserError
from cifar10.measure import scalars
from cifar10.report import tensorboard, text_report


class Run(NamedTuple):
    """What a run is called, and where it has written its event files."""

    name: str
    train_dir: str
    eval_dir: str


class Curve(NamedTuple):
    """The state of a run at each of its evaluations, in order."""

    name: str
    epochs: np.ndarray
    # of training by the wall clock, without the time before the first step of each start
    minutes: np.ndarray
    precision: np.ndarray  # float32, of one view
    # at the last evaluation; NaN if that step was not evaluated with 10 views
    precision_10_views: float


def parse_run(text):
    """The Run that NAME:TRAIN_DIR:EVAL_DIR names.

    Raises:
      UserError: it has another form, the name cannot be shown, or a directory is not on this
        machine.
    """
    parts = text.split(':')
    if len(parts) != 3 or not all(parts):
        raise UserError(
            '%s is not of the form NAME:TRAIN_DIR:EVAL_DIR, each without a colon'
            % (text or 'an empty name')
        )
    run = Run(*parts)
    # matplotlib leaves labels with an underscore out
    if not run.name.isprintable() or run.name.startswith('_'):
        raise UserError(
            '%r cannot be the name of a run: it has characters that cannot be printed, or begins with _'
            % run.name
        )
    files.check_name(run.train_dir)
    files.check_name(run.eval_dir)
    return run


def read_curve(run):
    """Reads the event files of a Run.

    Returns:
      A Curve.

    Raises:
      UserError: a directory lacks what a run writes.
    """
    ten_views = tensorboard.with_views(tensorboard.PRECISION, 10)
    trained = scalars.read(run.train_dir, [tensorboard.EPOCH, tensorboard.SEC_PER_BATCH])
    evaluations = scalars.read(run.eval_dir, [tensorboard.PRECISION], [ten_views])
    epoch_at, speed_at, precision_at = (
        trained[tensorboard.EPOCH],
        trained[tensorboard.SEC_PER_BATCH],
        evaluations[tensorboard.PRECISION],
    )
    # a killed process may have written only one of them
    steps = [step for step in epoch_at if step > 0 and step in speed_at]
    if not steps:
        raise UserError(
            '%s holds no step with both "epoch" and "sec_per_batch": name the directory of a run that has written '
            'summaries' % run.train_dir
        )
    epochs, sec_per_batch = (
        np.array([at[step] for step in steps], np.float32) for at in (epoch_at, speed_at)
    )
    evaluated, precision = (
        np.array(list(precision_at)),
        np.array(list(precision_at.values()), np.float32),
    )
    # A run seldom ends with a summary: after the last one its speed is taken to be the same.
    end = max(steps[-1], evaluated[-1])
    minutes = (
        np.cumsum(
            np.diff(np.append(steps, end), prepend=0) * np.append(sec_per_batch, sec_per_batch[-1])
        )
        / 60
    )
    epochs = np.append(epochs, epochs[-1] * end / steps[-1])
    steps = np.concatenate([[0], steps, [end]])
    return Curve(
        run.name,
        np.interp(evaluated, steps, np.append(0, epochs)),
        np.interp(evaluated, steps, np.append(0, minutes)),
        precision,
        evaluations[ten_views].get(evaluated[-1], np.nan),
    )


def _by_name(curves):
    names = {}
    for curve in curves:
        names.setdefault(curve.name, []).append(curve)
    return names


def comparison(curves, epochs, precisions):
    """A table in Markdown; for repetitions, which are curves of the same name, it gives means and
    spreads.

    Args:
      curves: a list of Curve.
      epochs: numbers of epochs; for each, a row for the first evaluation after so many epochs, if
        it is not the last one.
      precisions: for each, a row for the first evaluation with at least this precision.
    """
    rows = []
    for name, group in _by_name(curves).items():
        for epoch in epochs:
            # An evaluation belongs to a step, which may lie a little before the end of the epoch.
            found = [np.flatnonzero(curve.epochs[:-1] > epoch - 0.01) for curve in group]
            if all(len(indices) for indices in found):
                rows.append(
                    _row(name, [_moment(curve, indices[0]) for curve, indices in zip(group, found)])
                )
        rows.append(
            _row(
                name,
                [
                    _moment(curve, -1)._replace(precision_10_views=curve.precision_10_views)
                    for curve in group
                ],
            )
        )
    for precision in precisions:
        for name, group in _by_name(curves).items():
            found = [
                (curve, np.flatnonzero(curve.precision >= np.float32(precision))) for curve in group
            ]
            found = [_moment(curve, indices[0]) for curve, indices in found if len(indices)]
            label = '%s, first at %g' % (name, precision)
            rows.append(
                _row(label, found)
                if len(found) == len(group)
                else [label, '%d of %d' % (len(found), len(group)), '', '', '', '']
            )
    return text_report.markdown_table(
        ['', 'runs', 'epochs', 'minutes', 'precision @ 1', '10 views'], rows
    )


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
        return (
            mean
            if len(values) == 1
            else '%s (%s to %s)' % (mean, form % min(values), form % max(values))
        )

    return [
        label,
        str(len(moments)),
        cell([moment.epochs for moment in moments], '%.1f'),
        cell([moment.minutes for moment in moments], '%.1f'),
        cell([moment.precision for moment in moments], '%.4f'),
        cell([moment.precision_10_views for moment in moments], '%.4f'),
    ]


def check_plot(path):
    """Raises UserError if matplotlib is missing or does not know the suffix of the file, before
    anything is read."""
    try:
        from matplotlib import figure
    except ImportError:
        raise UserError('--plot needs matplotlib: pip install matplotlib')
    suffixes = sorted(figure.Figure().canvas.get_supported_filetypes())
    if os.path.splitext(path)[1][1:].lower() not in suffixes:
        raise UserError(
            'Cannot draw %s: give one of the suffixes .%s' % (path, ', .'.join(suffixes))
        )


def plot(curves, path):
    """Draws the curves to a file; its suffix chooses the format, see `check_plot`.

    Raises:
      UserError: the file cannot be written, or the format needs a program that is missing.
    """
    from matplotlib import figure

    drawing = figure.Figure(figsize=(10, 4), layout='constrained')
    for axes, field in zip(drawing.subplots(1, 2, sharey=True), ('epochs', 'minutes')):
        for color, (name, group) in enumerate(_by_name(curves).items()):
            for i, curve in enumerate(group):
                axes.plot(
                    getattr(curve, field),
                    curve.precision,
                    color='C%d' % color,
                    label=None if i else name.replace('$', r'\$'),
                )
        axes.set(xscale='log', xlabel='%s of training' % field)
        axes.xaxis.set_major_formatter('{x:g}')
        axes.grid(alpha=0.3)
    drawing.axes[0].set_ylabel(tensorboard.PRECISION)
    drawing.axes[0].legend()
    drawn = io.BytesIO()
    with warnings.catch_warnings(record=True) as told:
        try:
            drawing.savefig(drawn, format=os.path.splitext(path)[1][1:].lower())
        except RuntimeError as error:
            raise UserError(
                'Cannot draw %s (%s): give another suffix, like .svg' % (path, errors.reason(error))
            )
    for warning in told:  # of characters that the font lacks, say
        errors.warn(warning.message)
    files.write_whole(path, drawn.getvalue(), 'name another file')
