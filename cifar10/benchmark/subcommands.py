"""Subcommands of the benchmark, and their results as tables and as JSON."""

import collections
import dataclasses
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
from cifar10.benchmark.measurements import BASELINE, OURS, SUM, StepCounts
from cifar10.report import text_report
from cifar10.system import files, machine
from cifar10.training import Job

MAX_TOWERS = 4  # of the subcommand `towers`
_UTILIZATION = 'share of the matrix product'
_STEP_EXAMPLES = 'examples/sec of the step'


def measure_rounds(subcommand, settings, formulations, num_rounds):
    """Measure the formulations in turn in each round.

    Args:
      subcommand: a key of BENCHMARKS.
      settings: a BenchmarkSettings.
      formulations: list of OURS and BASELINE.
      num_rounds: the number of rounds.

    Returns:
      A dict from formulation to a dict from metric name to a list of one value per round.
    """
    rounds = {formulation: collections.defaultdict(list) for formulation in formulations}
    for i in range(num_rounds):
        for formulation in formulations:
            line = f'Round {i + 1} of {num_rounds}: {formulation}'
            print(line, file=sys.stderr, flush=True)
            for name, value in BENCHMARKS[subcommand](formulation, settings).items():
                rounds[formulation][name].append(value)
    return rounds


def ratios(rounds):
    """Return the ratios of OURS to BASELINE, one per round, of their common metrics."""
    baseline = rounds.get(BASELINE, {})
    return {
        name: [ours / reference for ours, reference in zip(values, baseline[name])]
        for name, values in rounds[OURS].items()
        if name in baseline and 0 not in baseline[name]
    }


def summary_table(rounds):
    """Return a table of the metrics, and of the ratios if there is a baseline."""
    columns = dict(rounds, **{'ours / reference': ratios(rounds)} if BASELINE in rounds else {})
    return metrics_table(columns, rounds[OURS])


def metrics_table(columns, names):
    """Return a Markdown table of medians (least to greatest).

    Args:
      columns: a dict from heading to a dict from metric name to values.
      names: metric names, one per row. A column may lack some of them.
    """
    return text_report.markdown_table(
        ['', *columns],
        [
            [name] + [_cell(column[name]) if name in column else '' for column in columns.values()]
            for name in names
        ],
    )


def _cell(values):
    """Format median and extremes with three significant digits, or as integers from 100 on."""
    median, lowest, highest = (
        f'{value:.0f}' if value >= 100 else f'{value:.3g}'
        for value in (statistics.median(values), min(values), max(values))
    )
    return f'{median} ({lowest} to {highest})'


def json_report(subcommand, rounds, flag_values):
    """Return the metrics of each round, statistics, host, versions and flags as JSON."""
    return json.dumps(
        {
            'subcommand': subcommand,
            'time': time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            'host': {
                'processor': machine.cpu_name(),
                'cores': machine.num_cores(),
                'system': platform.platform(),
                'gpus': machine.gpu_names(),
                'python': platform.python_version(),
                'tensorflow': tf.__version__,
                'numpy': np.__version__,
            },
            'flags': flag_values,
            'rounds': rounds,
            'summary': {name: _statistics(metrics) for name, metrics in rounds.items()},
            'ratios': _statistics(ratios(rounds)),
        },
        indent=1,
    )


def _statistics(values_by_metric):
    return {
        name: {'median': statistics.median(values), 'min': min(values), 'max': max(values)}
        for name, values in values_by_metric.items()
    }


class BenchmarkSettings(NamedTuple):
    """Job and settings of a benchmark."""

    job: Job
    steps: StepCounts  # 0: the default of the subcommand
    scripts_dir: str
    trainer_flags: list  # not for BASELINE
    trace_path: str  # for `profile`
    data_flags: list  # of the trainer, for the data set of the job

    def steps_or_default(self, warmup, measured):
        """Return the StepCounts, with these defaults for 0."""
        return StepCounts(self.steps.warmup or warmup, self.steps.measured or measured)


def _step_metrics(formulation, settings, job):
    return processes.call_in_new_process(
        measurements.step_metrics, formulation, job, settings.steps_or_default(10, 100)
    )


def measure_input(formulation, settings):
    """Measure the input pipeline alone, and the images per second of a step."""
    steps = settings.steps_or_default(100, 500)
    metrics = processes.call_in_new_process(
        measurements.input_metrics, formulation, settings.job, steps
    )
    metrics[_STEP_EXAMPLES] = _step_metrics(formulation, settings, settings.job)['examples/sec']
    return metrics


def input_analysis(rounds, job):
    """Return a line that compares the input pipeline with the step."""
    produced, consumed = (
        statistics.median(rounds[OURS][name]) for name in ('examples/sec', _STEP_EXAMPLES)
    )
    can_feed = 'can feed' if produced > consumed else 'CANNOT feed'
    return (
        f'The input pipeline {can_feed} the towers on {", ".join(job.devices)}. Without training, it reaches '
        f'{produced / consumed:.1f} times the examples/sec of the step.'
    )


def measure_step(formulation, settings):
    """Measure the training step on batches in memory."""
    return _with_utilization(_step_metrics(formulation, settings, settings.job), settings.job)


def measure_train(formulation, settings):
    """Measure the whole training script, by the times of its log lines."""
    job, steps = settings.job, settings.steps_or_default(100, 500)
    script = 'cifar10_multi_gpu_train.py' if formulation == OURS else 'cifar10_classic.py'
    with tempfile.TemporaryDirectory() as train_dir:
        command = [sys.executable, os.path.join(settings.scripts_dir, script)] + settings.data_flags
        command += [
            '--train_dir=' + train_dir,
            f'--num_gpus={len(job.devices)}',
            f'--batch_size={job.hparams.batch_size}',
            f'--max_steps={sum(steps)}',
            f'--log_frequency={math.gcd(10, math.gcd(*steps))}',
            '--save_summaries_steps=100',
            f'--save_checkpoint_steps={min(1000, steps.measured)}',
        ]
        if formulation == OURS:
            command += settings.trainer_flags
        logged_steps, peak_mb = processes.run_trainer(command, sum(steps))
    seconds = (logged_steps[sum(steps)].time - logged_steps[steps.warmup].time).total_seconds()
    metrics = {
        'ms per step': seconds / steps.measured * 1e3,
        'examples/sec': steps.measured * job.run_length.examples_per_step / seconds,
        'peak memory, MB': peak_mb,
    }
    return _with_utilization(metrics, job)


def _with_utilization(step_metrics, job):
    """Add the GFLOP/s, and their ratio to a matrix product measured in the same round."""
    flops = measurements.step_flops(job.hparams.batch_size, job.dataset.num_classes)
    rate = flops * len(job.devices) / (step_metrics['ms per step'] / 1e3)
    # CPU devices share the same cores.
    num_units = len(set(job.devices)) if machine.is_gpu(job.devices[0]) else 1
    limit = num_units * processes.call_in_new_process(
        measurements.matmul_flops_per_sec, job.devices[0]
    )
    return {
        **step_metrics,
        'GFLOP/s': rate / 1e9,
        'matrix product, GFLOP/s': limit / 1e9,
        _UTILIZATION: rate / limit,
    }


def flops_analysis(rounds, job):
    """Return the operations per step, and the limit: arithmetic or overhead."""
    batch_size, num_classes = job.hparams.batch_size, job.dataset.num_classes
    lines = ['Floating-point operations per tower per step:'] + [
        f'  {layer:<14} {len(flops)} products {sum(flops) / 1e9:9.4f} GFLOP'
        for layer, flops in measurements.layer_flops(batch_size, num_classes).items()
    ]
    total = measurements.step_flops(batch_size, num_classes)
    lines.append(f'  {"sum":<25} {total / 1e9:9.4f} GFLOP')
    for formulation, metrics in rounds.items():
        share = statistics.median(metrics[_UTILIZATION])
        limit = 'arithmetic' if share >= 0.5 else 'overhead'
        lines.append(
            f'Limit: {limit} for {formulation} ({100 * share:.0f} % of the rate of a float32 matrix product)'
        )
    return '\n'.join(lines)


def measure_towers(formulation, settings):
    """Measure a batch on one tower, and divided among two and four towers."""
    size = settings.job.hparams.batch_size
    whole = f'1 x {size}'
    metrics, ratios = {}, {}
    for n in (1, 2, MAX_TOWERS):
        name = f'ms per step, {n} x {size // n}'
        metrics[name] = _towers_ms(formulation, settings, n)
        if n > 1:
            ratios[f'{name} / {whole}'] = metrics[name] / metrics['ms per step, ' + whole]
    return dict(metrics, **ratios)


def _towers_ms(formulation, settings, num_towers):
    """Return milliseconds per step of the job's batch, divided among `num_towers` towers."""
    job = settings.job
    hparams = dataclasses.replace(job.hparams, batch_size=job.hparams.batch_size // num_towers)
    part = job._replace(devices=job.devices[:num_towers], hparams=hparams)
    return _step_metrics(formulation, settings, part)['ms per step']


def measure_profile(formulation, settings):
    """Measure the operations of a step, and write a Chrome trace."""
    metrics, trace = processes.call_in_new_process(
        measurements.profile_metrics, formulation, settings.job, settings.steps_or_default(10, 20)
    )
    files.atomic_write(_trace_path(formulation, settings), trace, 'give another --trace_file')
    return metrics


def _trace_path(formulation, settings):
    return settings.trace_path + ('' if formulation == OURS else '.' + formulation)


def tables(subcommand, rounds, settings):
    """Return the results of a subcommand as Markdown tables and their analysis."""
    if subcommand == 'profile':
        parts = [
            f'{formulation}, Chrome trace in {_trace_path(formulation, settings)} (open it in ui.perfetto.dev)\n\n{_most_expensive(op_ms)}'
            for formulation, op_ms in rounds.items()
        ]
        sums = {formulation: {SUM: op_ms[SUM]} for formulation, op_ms in rounds.items()}
        return '\n\n'.join(parts + [summary_table(sums)])
    analyses = {'input': input_analysis, 'step': flops_analysis, 'train': flops_analysis}
    analysis = [analyses[subcommand](rounds, settings.job)] if subcommand in analyses else []
    return '\n\n'.join([summary_table(rounds)] + analysis)


def _most_expensive(op_ms):
    """Return a Markdown table of the 25 most expensive operations and their shares of the sum.

    Args:
      op_ms: a dict from the names of measurements.profile_metrics to milliseconds per round.
    """
    medians = {name: statistics.median(values) for name, values in op_ms.items() if name != SUM}
    names = sorted(medians, key=medians.get, reverse=True)[:25] + [SUM]
    shares = {
        name: [100 * ms / total for ms, total in zip(op_ms[name], op_ms[SUM])] for name in names
    }
    return metrics_table({'ms': op_ms, 'share in %': shares}, names)


BENCHMARKS = {
    'input': measure_input,
    'step': measure_step,
    'train': measure_train,
    'towers': measure_towers,
    'profile': measure_profile,
    'distributed': clusters.measure_distributed,
}
