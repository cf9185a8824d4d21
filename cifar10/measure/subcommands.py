"""The subcommands of the benchmark: what each one measures in a round, and what it says at the
end."""

import math
import os
import sys
import tempfile
from typing import NamedTuple

from cifar10 import files
from cifar10.measure import benchmark, clusters, flops, measurements, processes, profiling
from cifar10.measure.benchmark import OURS
from cifar10.measure.measurements import Steps
from cifar10.parallelism import layers
from cifar10.runs import machine
from cifar10.training import Job

MOST_TOWERS = 4  # among which `towers` divides a batch
_SHARE = 'share of the matrix product'


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
    figures = processes.fresh_process(
        measurements.input_figures, formulation, request.job, request.steps_or(100, 500)
    )
    figures['images/sec that the step takes'] = _step(formulation, request, request.job)[
        'images/sec'
    ]
    return figures


def input_verdict(rounds, job):
    """Whether the input is fast enough."""
    made, taken = (
        benchmark.summarize(rounds[OURS][name])['median']
        for name in ('images/sec', 'images/sec that the step takes')
    )
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
    script = (
        'cifar10_multi_gpu_train.py' if benchmark.is_ours(formulation) else 'cifar10_classic.py'
    )
    with tempfile.TemporaryDirectory() as train_dir:
        command = (
            [sys.executable, os.path.join(request.scripts_dir, script)]
            + request.data_flags
            + [
                '--train_dir=' + train_dir,
                '--num_gpus=%d' % len(job.devices),
                '--batch_size=%d' % job.hparams.batch_size,
                '--max_steps=%d' % sum(steps),
                '--log_frequency=%d' % math.gcd(10, math.gcd(*steps)),
                '--summary_steps=100',
                '--checkpoint_steps=%d' % min(1000, steps.measured),
            ]
        )
        if benchmark.is_ours(formulation):
            command += request.trainer_flags
        seconds, peak_mb = processes.run_trainer(command, steps.warmup, sum(steps))
    figures = {
        'ms per step': seconds / steps.measured * 1e3,
        'images/sec': steps.measured * job.pace.examples_per_step / seconds,
        'peak memory, MB': peak_mb,
    }
    return _with_limit(figures, job)


def _with_limit(values, job):
    """Adds the share of the machine's limit, which is measured each time."""
    operations = layers.total(
        layers.step_products(job.hparams.batch_size, job.data.num_classes)
    ) * len(job.devices)
    rate = operations / (values['ms per step'] / 1e3)
    # CPU devices share the cores
    num_units = len(set(job.devices)) if machine.is_gpu(job.devices[0]) else 1
    limit = num_units * processes.fresh_process(flops.matrix_product_rate, job.devices[0])
    return dict(
        values,
        **{'GFLOP/s': rate / 1e9, 'matrix product, GFLOP/s': limit / 1e9, _SHARE: rate / limit},
    )


def flops_verdict(rounds, job):
    """Describes the operations of a step, and whether arithmetic or overhead takes most of its
    time, in the last line."""
    products = layers.step_products(job.hparams.batch_size, job.data.num_classes)
    limits = []
    for formulation, figures in rounds.items():
        share = benchmark.summarize(figures[_SHARE])['median']
        limits.append(
            '%s for %s (%.0f %% of the rate of a matrix product)'
            % ('arithmetic' if share >= 0.5 else 'overhead', formulation, 100 * share)
        )
    return 'Floating-point operations per tower per step:\n%s\nLimit: %s' % (
        flops.describe(products),
        ', '.join(limits),
    )


def measure_towers(formulation, request):
    """One tower with the whole batch, two with half of it, four with a quarter; if the job places
    them otherwise, both in turn."""
    usual, size = (
        request.job._replace(devices_per_tower=1, variable_strategy='cpu'),
        request.job.hparams.batch_size,
    )
    figures, ratios = {}, {}
    for n in (1, 2, MOST_TOWERS):
        name, first = 'ms per step, %d x %d' % (n, size // n), 'ms per step, 1 x %d' % size
        figures[name] = _towers_ms(formulation, request, usual, n)
        if n > 1:
            ratios['%s / %s' % (name, first[len('ms per step, ') :])] = (
                figures[name] / figures[first]
            )
        if usual != request.job:
            placed = '%s, divided by %d, variables %s' % (
                name,
                request.job.devices_per_tower,
                request.job.variable_strategy,
            )
            figures[placed] = _towers_ms(formulation, request, request.job, n)
            ratios['%s / without' % placed] = figures[placed] / figures[name]
    return dict(figures, **ratios)


def _towers_ms(formulation, request, job, num_towers):
    """Milliseconds of a step in which so many towers share the batch of the job."""
    hparams = job.hparams._replace(batch_size=job.hparams.batch_size // num_towers)
    part = job._replace(devices=job.devices[: num_towers * job.devices_per_tower], hparams=hparams)
    return _step(formulation, request, part)['ms per step']


def measure_distributed(unused_formulation, request):
    """Clusters of 2 and 4 workers on this machine, in each mode."""
    return clusters.measure(request)


def measure_profile(formulation, request):
    """The operations of a step; writes a Chrome trace."""
    figures, trace = processes.fresh_process(
        measurements.profile_figures, formulation, request.job, request.steps_or(10, 20)
    )
    files.write_whole(_trace_path(formulation, request), trace, 'give another --trace')
    return figures


def _trace_path(formulation, request):
    return (
        request.trace_path
        if benchmark.is_ours(formulation)
        else '%s.%s' % (request.trace_path, formulation)
    )


def profile_tables(rounds, request):
    """The most expensive operations of each formulation, and the sums."""
    tables = [
        '%s, Chrome trace in %s (open it in ui.perfetto.dev)\n\n%s'
        % (formulation, _trace_path(formulation, request), profiling.most_expensive(figures))
        for formulation, figures in rounds.items()
    ]
    sums = {
        formulation: {profiling.SUM: figures[profiling.SUM]}
        for formulation, figures in rounds.items()
    }
    return '\n\n'.join(tables + [benchmark.comparison(sums)])


MEASURES = {
    'input': measure_input,
    'step': measure_step,
    'train': measure_train,
    'towers': measure_towers,
    'profile': measure_profile,
    'distributed': measure_distributed,
}
VERDICTS = {'input': input_verdict, 'step': flops_verdict, 'train': flops_verdict}
