"""Subcommands of the benchmark, and their results as a table."""

import collections
import math
import os
import statistics
import sys
import tempfile
from typing import NamedTuple

from cifar10 import errors
from cifar10.benchmark import measurements, processes
from cifar10.benchmark.measurements import BASELINE, OURS, StepCounts
from cifar10.report import text_report
from cifar10.training import Job


class BenchmarkSettings(NamedTuple):
    """Job and settings of a benchmark."""

    job: Job
    steps: StepCounts  # 0: the default of the subcommand
    scripts_dir: str

    def measure(self, function, formulation, default_steps):
        """Return the result of a function of measurements.py, called in a new process."""
        steps = self.steps_or_default(*default_steps)
        return processes.call_in_new_process(function, formulation, self.job, steps)

    def steps_or_default(self, warmup, measured):
        """Return the StepCounts, with these defaults for 0."""
        return StepCounts(self.steps.warmup or warmup, self.steps.measured or measured)


def measure_input(formulation, settings):
    """Measure the input pipeline alone, beside the step that it feeds."""
    metrics = settings.measure(measurements.input_metrics, formulation, (100, 500))
    step = settings.measure(measurements.step_metrics, formulation, (10, 100))
    metrics['examples/sec of the step'] = step['examples/sec']
    metrics['input / step'] = metrics['examples/sec'] / step['examples/sec']
    return metrics


def measure_step(formulation, settings):
    """Measure the training step on batches in memory."""
    return settings.measure(measurements.step_metrics, formulation, (10, 100))


def measure_train(_, settings):
    """Measure the whole training script, by the times of its log lines."""
    job, steps = settings.job, settings.steps_or_default(100, 500)
    with tempfile.TemporaryDirectory() as train_dir:
        command = [
            sys.executable,
            os.path.join(settings.scripts_dir, 'cifar10_multi_gpu_train.py'),
            '--data_dir=' + job.dataset.directory,
            '--train_dir=' + train_dir,
            f'--network={job.network.name}',
            f'--num_gpus={job.num_towers}',
            f'--batch_size={job.hparams.batch_size}',
            f'--max_steps={sum(steps)}',
            f'--log_frequency={math.gcd(10, math.gcd(*steps))}',
            '--save_summaries_steps=100',
            f'--save_checkpoint_steps={min(1000, steps.measured)}',
            f'--compute_dtype={job.hparams.compute_dtype}',
            f'--intra_op_threads={job.settings.intra_op_threads}',
            f'--inter_op_threads={job.settings.inter_op_threads}',
            '--eval_every=0',
        ]
        times = processes.run_trainer(command)
    # The line of the first update is that of step 0.
    start = times[steps.warmup if steps.warmup > 1 else 0]
    seconds = (times[sum(steps)] - start).total_seconds()
    return {
        'ms per step': seconds / steps.measured * 1e3,
        'examples/sec': steps.measured * job.run_length.examples_per_step / seconds,
    }


MEASURES = {'input': measure_input, 'step': measure_step, 'train': measure_train}


def measure_rounds(subcommand, settings, formulations, num_rounds):
    """Measure the formulations in turn in each round.

    Args:
      subcommand: a key of MEASURES.
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
            errors.warn(line)
            for name, value in MEASURES[subcommand](formulation, settings).items():
                rounds[formulation][name].append(value)
    return rounds


def table(rounds):
    """Return a Markdown table of medians (least to greatest), and of the ratios to a baseline."""
    columns = dict(rounds)
    if BASELINE in rounds:
        columns['ours / reference'] = {
            name: [ours / reference for ours, reference in zip(rounds[OURS][name], values)]
            for name, values in rounds[BASELINE].items()
        }
    return text_report.markdown_table(
        ['', *columns],
        [[name, *(_cell(column[name]) for column in columns.values())] for name in rounds[OURS]],
    )


def _cell(values):
    """Format median and extremes with three significant digits, or as integers from 100 on."""
    median, lowest, highest = (
        f'{value:.0f}' if value >= 100 else f'{value:.3g}'
        for value in (statistics.median(values), min(values), max(values))
    )
    return f'{median} ({lowest} to {highest})'
