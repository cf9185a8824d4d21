"""Metrics of clusters, and a whole measurement."""

import dataclasses
import datetime
import json

import pytest

from cifar10.benchmark import clusters, processes, subcommands
from cifar10.benchmark.measurements import StepCounts
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.training import Job
from tests.helpers import faults, programs


def test_metrics_of_clusters(monkeypatch):
    commands = []

    def run_trainer(command, min_last_step, terminate_fn):
        commands.append(command)
        assert min_last_step == 11 and terminate_fn is processes.terminate_gracefully
        seconds = 1 + (len(commands) - 1) % 5  # per update: 1 for one process, 5 for average
        start = datetime.datetime(2026, 1, 1)
        return {
            1: processes.LoggedStep(start, 0),
            10: processes.LoggedStep(start, 1e6),
            30: processes.LoggedStep(start + datetime.timedelta(seconds=20 * seconds), 41e6),
        }, 0

    monkeypatch.setattr(processes, 'run_trainer', run_trainer)
    job = Job(dataset.read(''), dataclasses.replace(CLASSIC, batch_size=8))
    settings = subcommands.BenchmarkSettings(
        job, StepCounts(10, 20), 'scripts', [], '', ['--data_dir=there']
    )
    metrics = clusters.measure_distributed('ours', settings)
    assert len(commands) == 10
    assert metrics['updates/sec, one process, 2 towers'] == 1
    sync, asynchronous = 'sync, 4 workers', 'async, 4 workers'
    assert metrics['updates/sec, ' + sync] == 1 / 2
    assert metrics['examples/sec, ' + sync] == 4 * 8 / 2
    assert metrics['examples/sec, ' + asynchronous] == 8 / 4
    assert metrics['time of 4 batches / one process, ' + sync] == 2
    assert metrics['time of 4 batches / one process, ' + asynchronous] == 16
    assert metrics['MB per update, ' + sync] == 2
    assert commands[0][1:3] == ['scripts/cifar10_multi_gpu_train.py', '--num_gpus=2']
    launch = [
        'scripts/cifar10_launch.py',
        '--num_ps=1',
        '--num_workers=4',
        '--max_restarts=0',
        '--',
    ]
    assert commands[9][1:7] == launch + ['--mode=average']
    assert '--num_ps=0' in commands[7]
    for command in commands:
        assert {'--data_dir=there', '--max_steps=30', '--batch_size=8'} <= set(command)


@pytest.mark.long
@faults.needs_mounts
def test_the_subcommand(tmp_path, data_dir):
    """The loopback interface carries each weight as often as the mode needs it, and at most a tenth
    more.

    The interface is the run's own: other tests also use that of the machine.

    At an end of the measured steps, each worker can be in an update, and the launcher prints the
    log line up to 0.05 seconds late.
    """
    path = tmp_path / 'metrics.json'
    programs.DEADLINE_SECS, before = 600, programs.DEADLINE_SECS
    try:
        status, stdout, stderr = programs.run(
            'cifar10_benchmark',
            'distributed',
            '--rounds=1',
            '--batch_size=32',
            '--warmup_steps=10',
            '--steps=120',
            f'--data_dir={data_dir}',
            f'--json_file={path}',
            wrapper=faults.OWN_NETWORK,
        )
    finally:
        programs.DEADLINE_SECS = before
    assert (status, stderr) == (0, 'Round 1 of 1: ours\n')
    (metrics,) = json.loads(path.read_text())['rounds'].values()
    weights = 4.273192  # MB
    for workers in (2, 4):
        for mode, copies in [
            ('allreduce', 2 * (workers - 1)),
            ('sync', 2 * workers),
            ('async', 2),
            ('average', workers * 2 * 2 / 10),  # also the moving averages, once per 10 steps
        ]:
            name, expected = f'{mode}, {workers} workers', copies * weights
            (measured,) = metrics['MB per update, ' + name]
            (rate,) = metrics['updates/sec, ' + name]
            missed = (workers + 0.05 * rate) / 120
            assert (1 - missed) * expected <= measured < 1.1 * expected, name
    assert 'updates/sec, one process, 4 towers' in stdout
