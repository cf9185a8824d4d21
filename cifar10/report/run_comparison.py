"""Comparison of runs by their event files, as a table and as a plot.

The plot shows precision against epochs and against minutes.
"""

import glob
import io
import os

import numpy as np
from tensorboard.backend.event_processing import event_accumulator

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.report import event_files, text_report
from cifar10.system import directories, files


def _read_scalars(directory, required_tags):
    """Read the scalars of the event files in a directory.

    If a resumed run has repeated a step, the last value of the step counts.

    Args:
      directory: the output directory of a trainer or an evaluation.
      required_tags: tags of scalars that must exist.

    Returns:
      A dict from tag to a dict from step to value, in the order of steps.

    Raises:
      UserError: the directory does not exist, or lacks a tag.
    """
    hint = 'name the train_dir and the eval_dir of a run with summaries'
    directories.check_exists(directory, hint)
    accumulator = event_accumulator.EventAccumulator(
        directory, size_guidance={event_accumulator.SCALARS: 0}
    )
    if glob.glob(os.path.join(glob.escape(directory), '*tfevents*')):  # else 1.15 fails
        accumulator.Reload()
    scalars = {}
    for tag in accumulator.Tags()['scalars']:
        in_order = sorted(accumulator.Scalars(tag), key=lambda event: event.step)
        scalars[tag] = {event.step: event.value for event in in_order}
    early = scalars.pop('sec_per_batch', {})  # the tag of early versions
    if early:
        resumed = scalars.get(event_files.SEC_PER_STEP, {})
        scalars[event_files.SEC_PER_STEP] = dict(sorted({**early, **resumed}.items()))
    for tag in required_tags:
        if tag not in scalars:
            raise UserError(
                f'{directory} holds no event file with "{tag}"',
                f'{hint} (written every save_summaries_steps)',
            )
    return scalars


def read_curve(train_dir, eval_dir):
    """Read the evaluations of a run, in the order of steps.

    Returns:
      float [evaluations, 4]: epochs; minutes of training, without the startup time; precision of
      one view; precision of 10 views or NaN.

    Raises:
      UserError: a directory does not exist, or lacks event files, tags or steps.
    """
    train_scalars = _read_scalars(train_dir, [event_files.EPOCH, event_files.SEC_PER_STEP])
    evaluations = _read_scalars(eval_dir, [event_files.PRECISION])
    ten_views = evaluations.get(event_files.PRECISION + ', 10 views', {})
    epoch_at, speed_at = train_scalars[event_files.EPOCH], train_scalars[event_files.SEC_PER_STEP]
    # A killed process may have written only one of the two tags.
    steps = [step for step in epoch_at if step > 0 and step in speed_at]
    if not steps:
        raise UserError(
            f'{train_dir} holds no step with both "epoch" and "sec_per_step"', 'train further'
        )
    epochs = [epoch_at[step] for step in steps]
    evaluated = list(evaluations[event_files.PRECISION])
    # The last summary may be before the end of the run: assume the same throughput after it.
    end = max(steps[-1], evaluated[-1])
    epochs = [0] + epochs + [epochs[-1] * end / steps[-1]]
    seconds_per_step = [speed_at[step] for step in steps + steps[-1:]]
    steps = [0] + steps + [end]
    minutes = np.append(0, np.cumsum(np.diff(steps) * seconds_per_step)) / 60
    return np.transpose(
        [
            np.interp(evaluated, steps, epochs),
            np.interp(evaluated, steps, minutes),
            list(evaluations[event_files.PRECISION].values()),
            [ten_views.get(step, np.nan) for step in evaluated],
        ]
    )


def comparison(curves, target_precisions):
    """Return a Markdown table, with mean and extremes of repetitions.

    Args:
      curves: a dict from name to the results of `read_curve` for its runs.
      target_precisions: each adds a row per name for the first evaluation that reaches it.
    """
    rows = [_row(name, [points[-1] for points in group]) for name, group in curves.items()]
    for precision in target_precisions:
        for name, group in curves.items():
            # event files hold float32
            found = [points[points[:, 2] >= np.float32(precision)] for points in group]
            reached = [points[0] for points in found if len(points)]
            label = f'{name}, first at {precision:g}'
            if len(reached) == len(group):
                rows.append(_row(label, reached))
            else:
                rows.append([label, f'{len(reached)} of {len(group)}', '', '', '', ''])
    return text_report.markdown_table(
        ['', 'runs', 'epochs', 'minutes', 'precision @ 1', '10 views'], rows
    )


def _row(label, points):
    """Return the cells of one run, or mean and extremes of its repetitions."""
    cells = [label, str(len(points))]
    for digits, values in zip((1, 1, 4, 4), np.transpose(points)):
        if np.isnan(values).any():
            cells.append('')
        elif len(values) == 1:
            cells.append(f'{values[0]:.{digits}f}')
        else:
            mean, lowest, highest = (f'{f(values):.{digits}f}' for f in (np.mean, np.min, np.max))
            cells.append(f'{mean} ({lowest} to {highest})')
    return cells


def plot(curves, path):
    """Plot the curves (see `comparison`) to a file in the format of its suffix.

    Raises:
      UserError: matplotlib is missing or does not know the suffix, or the file is not writable.
    """
    try:
        from matplotlib import figure
    except ImportError:
        raise UserError('The plot needs matplotlib', 'pip install matplotlib')
    drawing = figure.Figure(figsize=(10, 4), layout='constrained')
    for column, axes in enumerate(drawing.subplots(1, 2, sharey=True)):
        for color, (name, group) in enumerate(curves.items()):
            for i, points in enumerate(group):
                label = None if i else name
                axes.plot(points[:, column], points[:, 2], color=f'C{color}', label=label)
        axes.set(xscale='log', xlabel=f'{["epochs", "minutes"][column]} of training')
        axes.xaxis.set_major_formatter('{x:g}')
        axes.grid(alpha=0.3)
    drawing.axes[0].set_ylabel(event_files.PRECISION)
    drawing.axes[0].legend()
    image_file = io.BytesIO()
    try:
        drawing.savefig(image_file, format=os.path.splitext(path)[1][1:].lower())
    except (RuntimeError, ValueError) as error:  # ValueError: an unknown suffix
        raise UserError(
            f'Cannot draw {path} ({errors.reason(error)})', 'give another suffix, like .svg'
        )
    files.atomic_write(path, image_file.getvalue(), 'name another file')
