"""The benchmark's figures: rounds in turn, medians, spreads and ratios, as a table and as JSON."""

import contextlib
import json
import platform
import statistics
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.report import text_report
from cifar10.runs import machine

OURS, BASELINE = 'ours', 'classic'  # formulations


def is_ours(formulation):
    """Whether the formulation is ours rather than the baseline.

    Raises:
      ValueError: it is unknown.
    """
    if formulation not in (OURS, BASELINE):
        raise ValueError('Unknown formulation: %s' % formulation)
    return formulation == OURS


def in_turn(measure_once, formulations, num_rounds):
    """Measures each formulation in turn, round after round.

    Args:
      measure_once: takes a formulation's name, returns a dict of figures.
      formulations: names.
      num_rounds: how often.

    Returns:
      A dict from each formulation to a dict from each figure's name to its values, one per round.
    """
    rounds = {formulation: [] for formulation in formulations}
    for i in range(num_rounds):
        for formulation in formulations:
            with contextlib.suppress(OSError):  # nobody may read it any more
                print(
                    'Round %d of %d: %s' % (i + 1, num_rounds, formulation),
                    file=sys.stderr,
                    flush=True,
                )
            rounds[formulation].append(measure_once(formulation))
    return {
        formulation: {name: [figures[name] for figures in measured] for name in measured[0]}
        for formulation, measured in rounds.items()
    }


def summarize(values):
    """Median and extremes."""
    return {'median': statistics.median(values), 'min': min(values), 'max': max(values)}


def ratios(rounds):
    """For each figure that both formulations have, the ratio of ours to the baseline's, round by
    round."""
    baseline = rounds.get(BASELINE, {})
    return {
        name: [ours / classic for ours, classic in zip(values, baseline[name])]
        for name, values in rounds[OURS].items()
        if name in baseline and 0 not in baseline[name]
    }


def comparison(rounds):
    """The figures as a table in Markdown, with the ratios if there is a baseline: see
    `figures_table`."""
    columns = dict(rounds)
    if BASELINE in rounds:
        columns['ours / classic'] = ratios(rounds)
    return figures_table(columns, list(rounds[OURS]))


def figures_table(columns, names):
    """A table in Markdown: median (least to greatest).

    Args:
      columns: a dict from each heading to a dict from a figure's name to its values.
      names: of the figures, one row each; a column may lack some.
    """
    return text_report.markdown_table(
        [''] + list(columns),
        [
            [name] + [_cell(column[name]) if name in column else '' for column in columns.values()]
            for name in names
        ],
    )


def _cell(values):
    summary = summarize(values)
    return '%s (%s to %s)' % tuple(_digits(summary[key]) for key in ('median', 'min', 'max'))


def _digits(value):
    """Three significant digits, and all digits before the point."""
    return '%.0f' % value if value >= 100 else '%.3g' % value


def host():
    """Where it was measured: processor, cores, GPUs, versions."""
    return {
        'processor': machine.processor(),
        'cores': machine.num_cores(),
        'system': platform.platform(),
        'gpus': machine.gpus(),
        'python': platform.python_version(),
        'tensorflow': tf.__version__,
        'numpy': np.__version__,
    }


def report(subcommand, rounds, flag_values):
    """The figures of every round, their summaries, host, versions and flags, as JSON."""
    return json.dumps(
        {
            'subcommand': subcommand,
            'time': time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            'host': host(),
            'flags': flag_values,
            'rounds': rounds,
            'summary': {
                formulation: {name: summarize(values) for name, values in figures.items()}
                for formulation, figures in rounds.items()
            },
            'ratios': {name: summarize(values) for name, values in ratios(rounds).items()},
        },
        indent=1,
    )
