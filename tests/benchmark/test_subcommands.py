"""Subcommands of the benchmark: arithmetic, flags, errors, whole measurements."""

import dataclasses
import json
import os
import re

import pytest
import tensorflow.compat.v1 as tf

from cifar10.benchmark import measurements, processes, subcommands
from cifar10.benchmark.measurements import StepCounts
from cifar10.config import CLASSIC, RunSettings
from cifar10.data import dataset
from cifar10.training import Job
from tests.helpers import programs

CPU_JOB = Job(
    dataset.read('there'), dataclasses.replace(CLASSIC, batch_size=8), ['/cpu:0', '/cpu:1']
)


def _settings(job=CPU_JOB, steps=StepCounts(0, 0), scripts_dir='', trace_path=''):
    return subcommands.BenchmarkSettings(
        job, steps, scripts_dir, ['--inter_op_threads=3'], trace_path, ['--data_dir=there']
    )


def test_comparison():
    """Three digits, or all digits of the integer part. A metric or a ratio may be missing."""
    rounds = {
        'ours': {'ms': [2, 1234.5, 0.12345], 's': [99.96], 'none': [1]},
        'reference': {'ms': [1, 10, 2], 'none': [0]},
    }
    assert subcommands.summary_table(rounds).splitlines() == [
        '|  | ours | reference | ours / reference |',
        '| --- | --- | --- | --- |',
        '| ms | 2 (0.123 to 1234) | 2 (1 to 10) | 2 (0.0617 to 123) |',
        '| s | 100 (100 to 100) |  |  |',
        '| none | 1 (1 to 1) | 0 (0 to 0) |  |',
    ]
    assert subcommands.summary_table({'ours': {'s': [1]}}).splitlines()[0] == '|  | ours |'


@pytest.mark.parametrize(
    'args, status, complaint',
    [
        ([], 2, 'the arguments must be input|step|train|towers|profile|distributed|check, not '),
        (['step', '--json_file={tmp}/nowhere/x'], 1, 'Cannot write {tmp}/nowhere/x (No such '),
        (['profile', '--trace_file={tmp}/nowhere/x'], 1, 'Cannot write {tmp}/nowhere/x (No such '),
        (['towers', '--batch_size=3'], 1, '--batch_size must be a multiple of 4'),
        (['distributed', '--baseline'], 1, 'distributed has no baseline: '),
        (['check', '--baseline'], 1, '--baseline has no effect on check: leave it out'),
        (['check', '--num_gpus=2'], 1, '--num_gpus has no effect on check: leave it out'),
        (['step', '--trace_file={tmp}/x'], 1, '--trace_file has no effect on step: leave it out'),
        (
            ['input', '--data_dir={data}', '--batch_size=1048576'],
            1,
            '--batch_size=1048576 is too large for the 300 training examples',
        ),
    ],
)
def test_mistake_gets_one_clear_line(tmp_path, data_dir, args, status, complaint):
    found, _, stderr = programs.call(
        'cifar10_benchmark', *[arg.format(tmp=tmp_path, data=data_dir) for arg in args]
    )
    assert stderr.startswith('cifar10_benchmark.py: error: ' + complaint.format(tmp=tmp_path))
    assert stderr.count('\n') == 1 and found == status


def test_input_verdict():
    rounds = {
        'ours': {'examples/sec': [100, 400, 300], 'examples/sec of the step': [1000, 50, 200]}
    }
    text = subcommands.input_analysis(rounds, CPU_JOB)
    assert 'can feed the towers on /cpu:0, /cpu:1' in text and 'reaches 1.5 times' in text
    rounds['ours']['examples/sec'] = [99, 98, 100]
    assert 'CANNOT feed' in subcommands.input_analysis(rounds, CPU_JOB)


def test_flops_verdict():
    share = 'share of the matrix product'
    rounds = {'ours': {share: [0.84, 0.2, 0.9]}, 'reference': {share: [0.4, 0.6, 0.44]}}
    lines = subcommands.flops_analysis(rounds, CPU_JOB).splitlines()
    assert lines[1] == '  conv1          2 products    0.0885 GFLOP' and len(lines) == 9
    assert lines[6].endswith(' 0.8424 GFLOP')
    assert lines[7].startswith(
        'Limit: arithmetic for ours (84 % of the rate of a float32 matrix product'
    )
    assert lines[8].startswith('Limit: overhead for reference (44 % ')


def test_profile_tables():
    """The 25 most expensive operations come first, with shares per round."""
    metrics = {f'op{i} (Add)': [i / 10, i / 10, 0] for i in range(1, 31)}
    metrics['conv (Conv2D)'] = [50, 5, 30]
    metrics['sum of all operations'] = [100, 50, 40]
    rounds = {'ours': metrics, 'reference': {'sum of all operations': [50, 50, 50]}}
    title, table, other, _, sums = subcommands.tables(
        'profile', rounds, _settings(trace_path='trace.json')
    ).split('\n\n')
    assert title == 'ours, Chrome trace in trace.json (open it in ui.perfetto.dev)'
    assert other.startswith('reference, Chrome trace in trace.json.reference ')
    lines = table.splitlines()
    assert lines[0] == '|  | ms | share in % |'
    assert lines[2] == '| conv (Conv2D) | 30 (5 to 50) | 50 (10 to 75) |'
    assert [line.split(' ')[1] for line in lines[3:-1]] == [f'op{i}' for i in range(30, 6, -1)]
    assert lines[-1] == '| sum of all operations | 50 (40 to 100) | 100 (100 to 100) |'
    assert sums.splitlines()[2].endswith(' | 50 (40 to 100) | 50 (50 to 50) | 1 (0.8 to 2) |')


@pytest.mark.parametrize(
    'devices, times',
    [(['/cpu:0', '/cpu:1'], 1), (['/gpu:0', '/gpu:1', '/gpu:0'], 2)],
)
def test_limit_counts_each_gpu_and_all_cores_once(monkeypatch, devices, times):
    def without_process(function, *args):
        if function is measurements.matmul_flops_per_sec:
            assert args == (devices[0],)
            return 3e9
        return {'ms per step': 50.0, 'examples/sec': 1.0}

    monkeypatch.setattr(processes, 'call_in_new_process', without_process)
    metrics = subcommands.measure_step('ours', _settings(CPU_JOB._replace(devices=devices)))
    gflops = measurements.step_flops(8) * len(devices) / 0.05 / 1e9
    assert metrics == {
        'ms per step': 50,
        'examples/sec': 1,
        'GFLOP/s': pytest.approx(gflops),
        'matrix product, GFLOP/s': times * 3,
        'share of the matrix product': pytest.approx(gflops / (times * 3)),
    }


@pytest.mark.parametrize(
    'formulation, script, extra',
    [
        ('ours', 'cifar10_multi_gpu_train.py', ['--inter_op_threads=3']),
        ('reference', 'cifar10_classic.py', []),
    ],
)
def test_trainer_gets_flags_and_is_timed(tmp_path, monkeypatch, formulation, script, extra):
    """The trainer only prints: 4 seconds from step 12 to step 28."""
    (tmp_path / script).write_text(
        f'import json, sys\njson.dump(sys.argv, open({str(tmp_path / "argv")!r}, "w"))\n'
        'for i in range(1, 8): print("2026-01-01 00:00:0%d.000000: step %d, " % (i, 4 * i))'
    )
    monkeypatch.setattr(processes, 'call_in_new_process', lambda function, device: 1e9)
    metrics = subcommands.measure_train(
        formulation,
        _settings(steps=StepCounts(12, 16), scripts_dir=str(tmp_path)),
    )
    assert (metrics['ms per step'], metrics['examples/sec']) == (250, 64)
    assert metrics['peak memory, MB'] > 0 and metrics['matrix product, GFLOP/s'] == 1
    with open(str(tmp_path / 'argv')) as argv:
        path, data_dir, train_dir, *others = json.load(argv)
    assert (path, data_dir) == (str(tmp_path / script), '--data_dir=there')
    assert re.match('--train_dir=.', train_dir) and not os.path.exists(train_dir.split('=')[1])
    expected = (
        '--num_gpus=2 --batch_size=8 --max_steps=28 --log_frequency=2 --save_summaries_steps=100'
    )
    assert others == expected.split() + ['--save_checkpoint_steps=16'] + extra


def test_towers_share_one_batch(monkeypatch):
    parts = []

    def without_process(unused_function, formulation, job, steps):
        parts.append((formulation, job.devices, job.hparams.batch_size, steps))
        return {'ms per step': 10.0 + len(parts)}

    monkeypatch.setattr(processes, 'call_in_new_process', without_process)
    cpus = [f'/cpu:{i}' for i in range(8)]
    job = CPU_JOB._replace(devices=cpus)
    metrics = subcommands.measure_towers('reference', _settings(job, StepCounts(3, 0)))
    assert parts == [('reference', cpus[:n], 8 // n, (3, 100)) for n in (1, 2, 4)]
    assert metrics == {
        'ms per step, 1 x 8': 11,
        'ms per step, 2 x 4': 12,
        'ms per step, 4 x 2': 13,
        'ms per step, 2 x 4 / 1 x 8': 12 / 11,
        'ms per step, 4 x 2 / 1 x 8': 13 / 11,
    }


def test_flags_reach_the_measure(tmp_path, data_dir, monkeypatch):
    """A fake measurement records its arguments."""
    requests = []

    def measure(formulation, settings):
        requests.append((formulation, settings))
        return {
            'ms': len(requests),
            'share of the matrix product': 1 / len(requests),
            'sum of all operations': 1,
        }

    monkeypatch.setitem(subcommands.BENCHMARKS, 'train', measure)
    args = [
        '--data_dir=' + data_dir,
        '--num_gpus=2',
        '--batch_size=16',
        '--compute_dtype=auto',
        '--intra_op_threads=5',
        '--inter_op_threads=6',
        '--warmup_steps=3',
        '--steps=4',
    ]
    path = tmp_path / 'report.json'
    status, stdout, stderr = programs.call(
        'cifar10_benchmark', 'train', '--baseline', '--rounds=2', f'--json_file={path}', *args
    )
    job = Job(
        dataset.read(data_dir),
        dataclasses.replace(CLASSIC, batch_size=16, compute_dtype='auto'),
        ['/cpu:0', '/cpu:1'],
        RunSettings(intra_op_threads=5, inter_op_threads=6),
    )
    expected = subcommands.BenchmarkSettings(
        job,
        StepCounts(3, 4),
        os.path.join(programs.ROOT, 'scripts'),
        args[3:6] + ['--eval_every=0'],
        '/tmp/cifar10_trace.json',
        ['--data_dir=' + job.dataset.directory],
    )
    assert requests == [('ours', expected), ('reference', expected)] * 2
    assert (status, stderr) == (
        0,
        'Round 1 of 2: ours\nRound 1 of 2: reference\nRound 2 of 2: ours\nRound 2 of 2: reference\n',
    )
    assert '\n| ms | 2 (1 to 3) | 3 (2 to 4) | 0.625 (0.5 to 0.75) |\n' in stdout
    assert stdout.splitlines()[-2].startswith('Limit: arithmetic for ours (67 % ')
    report = json.loads(path.read_text())
    assert set(report) == {'subcommand', 'time', 'host', 'flags', 'rounds', 'summary', 'ratios'}
    assert report['subcommand'] == 'train' and report['rounds']['reference']['ms'] == [2, 4]
    assert report['summary']['ours']['ms'] == {'median': 2, 'min': 1, 'max': 3}
    assert report['ratios']['ms'] == {'median': 0.625, 'min': 0.5, 'max': 0.75}
    assert report['host']['tensorflow'] == tf.__version__ and report['host']['cores'] > 0
    given = dict(arg[2:].split('=') for arg in args)
    assert {name: str(report['flags'][name]) for name in given} == given
    monkeypatch.setitem(subcommands.BENCHMARKS, 'profile', measure)
    programs.call('cifar10_benchmark', 'profile', '--rounds=1', f'--trace_file={tmp_path}/trace')
    assert requests[4][1].trace_path == f'{tmp_path}/trace'


@pytest.mark.slow
def test_profile(tmp_path):
    """In a new process, because TensorFlow must not write to stderr."""
    path, trace = tmp_path / 'report.json', tmp_path / 'trace.json'
    flags = '--num_gpus=2 --rounds=1 --batch_size=16 --warmup_steps=1 --steps=2'.split()
    status, stdout, stderr = programs.run(
        'cifar10_benchmark', 'profile', f'--json_file={path}', f'--trace_file={trace}', *flags
    )
    assert (status, stderr) == (0, 'Round 1 of 1: ours\n')
    report = json.loads(path.read_text())
    assert len(report['rounds']['ours']['sum of all operations']) == 1 and report['ratios'] == {}
    assert json.loads(trace.read_text())['traceEvents'] and str(trace) in stdout


@pytest.mark.slow
def test_signal_ends_all_that_it_started(tmp_path, data_dir):
    process = programs.start(
        'cifar10_benchmark',
        'train',
        '--data_dir=' + data_dir,
        '--batch_size=8',
        '--steps=1000000',
        TMPDIR=str(tmp_path),
    )
    assert process.stderr.readline() == 'Round 1 of 5: ours\n'
    while not list(tmp_path.glob('*/*')):  # the trainer has not written yet
        assert process.poll() is None
    process.terminate()
    _, stderr = process.communicate(timeout=60)  # waits for all writers
    expected = 143, 'cifar10_benchmark.py: interrupted (SIGTERM)\n'
    assert (process.returncode, stderr) == expected and not list(tmp_path.iterdir())
