"""Subcommands of the benchmark: rounds in turn, medians and ratios, as a table and as JSON."""

import collections
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.benchmark import clusters, measurements, processes
from cifar10.benchmark.measurements import BASELINE, OURS, SUM, Steps
from cifar10.report import text_report
from cifar10.system import files, machine
from cifar10.training import Job

MOST_TOWERS = 4  # among which `towers` divides a batch
_SHARE = 'share of the matrix product'
_STEP_IMAGES = 'images/sec that the step takes'


def in_turn(command, request, formulations, num_rounds):
    """Measures each formulation in turn, round after round.

    Args:
      command: the subcommand, one of MEASURES.
      request: a Request.
      formulations: names.
      num_rounds: how often.

    Returns:
      A dict from each formulation to a dict from each figure's name to its values, one per round.
    """
    rounds = {formulation: collections.defaultdict(list) for formulation in formulations}
    for i in range(num_rounds):
        for formulation in formulations:
            line = 'Round %d of %d: %s' % (i + 1, num_rounds, formulation)
            print(line, file=sys.stderr, flush=True)
            for name, value in MEASURES[command](formulation, request).items():
                rounds[formulation][name].append(value)
    return rounds


def ratios(rounds):
    """The ratio of ours to the baseline's, round by round, of each figure that both have."""
    baseline = rounds.get(BASELINE, {})
    return {
        name: [ours / classic for ours, classic in zip(values, baseline[name])]
        for name, values in rounds[OURS].items()
        if name in baseline and 0 not in baseline[name]
    }


def comparison(rounds):
    """The table of the figures, with the ratios if there is a baseline: see `figures_table`."""
    columns = dict(rounds, **{'ours / classic': ratios(rounds)} if BASELINE in rounds else {})
    return figures_table(columns, rounds[OURS])


def figures_table(columns, names):
    """A table in Markdown: median (least to greatest).

    Args:
      columns: a dict from each heading to a dict from a figure's name to its values.
      names: of the figures, one row each; a column may lack some.
    """
    return text_report.markdown_table(
        ['', *columns],
        [
            [name] + [_cell(column[name]) if name in column else '' for column in columns.values()]
            for name in names
        ],
    )


def _cell(values):
    """Median and extremes with three significant digits, and all digits before the point."""
    return '%s (%s to %s)' % tuple(
        '%.0f' % value if value >= 100 else '%.3g' % value
        for value in (statistics.median(values), min(values), max(values))
    )


def report(subcommand, rounds, flag_values):
    """The figures of every round, their summaries, host, versions and flags, as JSON."""
    return json.dumps(
        {
            'subcommand': subcommand,
            'time': time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            'host': {
                'processor': machine.processor(),
                'cores': machine.num_cores(),
                'system': platform.platform(),
                'gpus': machine.gpus(),
                'python': platform.python_version(),
                'tensorflow': tf.__version__,
                'numpy': np.__version__,
            },
            'flags': flag_values,
            'rounds': rounds,
            'summary': {name: _summaries(figures) for name, figures in rounds.items()},
            'ratios': _summaries(ratios(rounds)),
        },
        indent=1,
    )


def _summaries(measured):
    return {
        name: {'median': statistics.median(values), 'min': min(values), 'max': max(values)}
        for name, values in measured.items()
    }


class Request(NamedTuple):
    """What is to be measured, and how."""

    job: Job
    steps: Steps  # 0 means what suits the subcommand
    scripts_dir: str  # of the trainers, for `train`
    trainer_flags: list  # for ours alone
    trace_path: str  # for `profile`
    data_flags: list  # that name the data of the job to a trainer

    def steps_or(self, warmup, measured):
        """The Steps, with these numbers instead of 0."""
        return Steps(self.steps.warmup or warmup, self.steps.measured or measured)


def _step(formulation, request, job):
    return processes.fresh_process(
        measurements.step_figures, formulation, job, request.steps_or(10, 100)
    )


def measure_input(formulation, request):
    """Batches out of the input pipeline alone, and how many a step could use."""
    steps = request.steps_or(100, 500)
    figures = processes.fresh_process(measurements.input_figures, formulation, request.job, steps)
    figures[_STEP_IMAGES] = _step(formulation, request, request.job)['images/sec']
    return figures


def input_verdict(rounds, job):
    """Whether the input is fast enough."""
    made, taken = (statistics.median(rounds[OURS][name]) for name in ('images/sec', _STEP_IMAGES))
    return (
        'The input %s the towers on %s: with all cores for itself it makes %.1f times the images that the step takes.'
        % ('can feed' if made > taken else 'CANNOT feed', ', '.join(job.devices), made / taken)
    )


def measure_step(formulation, request):
    """The training step on batches that stay in memory."""
    return _with_limit(_step(formulation, request, request.job), request.job)


def measure_train(formulation, request):
    """The training script from end to end, by the times of its log lines."""
    job, steps = request.job, request.steps_or(100, 500)
    script = 'cifar10_multi_gpu_train.py' if formulation == OURS else 'cifar10_classic.py'
    with tempfile.TemporaryDirectory() as train_dir:
        command = [sys.executable, os.path.join(request.scripts_dir, script)] + request.data_flags
        command += [
            '--train_dir=' + train_dir,
            '--num_gpus=%d' % len(job.devices),
            '--batch_size=%d' % job.hparams.batch_size,
            '--max_steps=%d' % sum(steps),
            '--log_frequency=%d' % math.gcd(10, math.gcd(*steps)),
            '--summary_steps=100',
            '--checkpoint_steps=%d' % min(1000, steps.measured),
        ]
        if formulation == OURS:
            command += request.trainer_flags
        marks, peak_mb = processes.run_trainer(command, sum(steps))
    seconds = (marks[sum(steps)].time - marks[steps.warmup].time).total_seconds()
    figures = {
        'ms per step': seconds / steps.measured * 1e3,
        'images/sec': steps.measured * job.pace.examples_per_step / seconds,
        'peak memory, MB': peak_mb,
    }
    return _with_limit(figures, job)


def _with_limit(measured, job):
    """Adds the share of the machine's limit, which is measured each time."""
    operations = measurements.step_operations(job.hparams.batch_size, job.data.num_classes)
    rate = operations * len(job.devices) / (measured['ms per step'] / 1e3)
    # CPU devices share the cores
    num_units = len(set(job.devices)) if machine.is_gpu(job.devices[0]) else 1
    limit = num_units * processes.fresh_process(measurements.matrix_product_rate, job.devices[0])
    return {
        **measured,
        'GFLOP/s': rate / 1e9,
        'matrix product, GFLOP/s': limit / 1e9,
        _SHARE: rate / limit,
    }


def flops_verdict(rounds, job):
    """The operations of a step; last, whether arithmetic or overhead takes most of its time."""
    batch_size, num_classes = job.hparams.batch_size, job.data.num_classes
    lines = ['Floating-point operations per tower per step:'] + [
        '  %-14s %d products %9.4f GFLOP' % (layer, len(operations), sum(operations) / 1e9)
        for layer, operations in measurements.step_products(batch_size, num_classes).items()
    ]
    total = measurements.step_operations(batch_size, num_classes)
    lines.append('  %-25s %9.4f GFLOP' % ('sum', total / 1e9))
    for formulation, figures in rounds.items():
        share = statistics.median(figures[_SHARE])
        limit = 'arithmetic' if share >= 0.5 else 'overhead'
        text = 'Limit: %s for %s (%.0f %% of the rate of a matrix product)'
        lines.append(text % (limit, formulation, 100 * share))
    return '\n'.join(lines)


def measure_towers(formulation, request):
    """One tower with the whole batch, two with half of it, four with a quarter; if the job places
    them otherwise, both in turn."""
    placed, size = request.job, request.job.hparams.batch_size
    usual = placed._replace(devices_per_tower=1, variable_strategy='cpu')
    whole = '1 x %d' % size
    figures, ratios = {}, {}
    for n in (1, 2, MOST_TOWERS):
        name = 'ms per step, %d x %d' % (n, size // n)
        figures[name] = _towers_ms(formulation, request, usual, n)
        if n > 1:
            ratios['%s / %s' % (name, whole)] = figures[name] / figures['ms per step, ' + whole]
        if placed != usual:
            other = '%s, divided by %d, variables %s' % (
                name,
                placed.devices_per_tower,
                placed.variable_strategy,
            )
            figures[other] = _towers_ms(formulation, request, placed, n)
            ratios[other + ' / without'] = figures[other] / figures[name]
    return dict(figures, **ratios)


def _towers_ms(formulation, request, job, num_towers):
    """Milliseconds of a step in which so many towers share the batch of the job."""
    hparams = job.hparams._replace(batch_size=job.hparams.batch_size // num_towers)
    part = job._replace(devices=job.devices[: num_towers * job.devices_per_tower], hparams=hparams)
    return _step(formulation, request, part)['ms per step']


def measure_profile(formulation, request):
    """The operations of a step; writes a Chrome trace."""
    figures, trace = processes.fresh_process(
        measurements.profile_figures, formulation, request.job, request.steps_or(10, 20)
    )
    files.write_whole(_trace_path(formulation, request), trace, 'give another --trace')
    return figures


def _trace_path(formulation, request):
    return request.trace_path + ('' if formulation == OURS else '.' + formulation)


def tables(command, rounds, request):
    """The figures of a subcommand as text: tables in Markdown, and what they mean."""
    if command == 'profile':
        parts = [
            '%s, Chrome trace in %s (open it in ui.perfetto.dev)\n\n%s'
            % (formulation, _trace_path(formulation, request), _most_expensive(measured))
            for formulation, measured in rounds.items()
        ]
        sums = {formulation: {SUM: measured[SUM]} for formulation, measured in rounds.items()}
        return '\n\n'.join(parts + [comparison(sums)])
    verdicts = {'input': input_verdict, 'step': flops_verdict, 'train': flops_verdict}
    told = [verdicts[command](rounds, request.job)] if command in verdicts else []
    return '\n\n'.join([comparison(rounds)] + told)


def _most_expensive(measured):
    """The most expensive operations and their share of the sum, as a table in Markdown.

    Args:
      measured: dict from each operation to its milliseconds in each round, as
        measurements.profile_figures names them.
    """
    medians = {name: statistics.median(values) for name, values in measured.items() if name != SUM}
    names = sorted(medians, key=medians.get, reverse=True)[:25] + [SUM]
    shares = {
        name: [100 * ms / total for ms, total in zip(measured[name], measured[SUM])]
        for name in names
    }
    return figures_table({'ms': measured, 'share in %': shares}, names)


MEASURES = {
    'input': measure_input,
    'step': measure_step,
    'train': measure_train,
    'towers': measure_towers,
    'profile': measure_profile,
    'distributed': clusters.measure,
}
