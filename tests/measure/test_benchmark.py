"""The benchmark: its arithmetic, what its flags do, its complaints, and real runs."""

import glob
import json
import os
import re
import signal

import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import dataset
from cifar10.hparams import CLASSIC
from cifar10.measure import benchmark, measurements, processes
from cifar10.measure.measurements import Steps
from cifar10.training import Job
from tests.helpers import programs

CPU_JOB = Job(dataset.read('there'), 50000, CLASSIC._replace(batch_size=8), ['/cpu:0', '/cpu:1'])


def _request(job=CPU_JOB, steps=Steps(0, 0), scripts_dir='', trace_path=''):
    return benchmark.Request(
        job, steps, scripts_dir, ['--input_threads=3'], trace_path, ['--data_dir=there']
    )


def test_formulations_take_turns(capsys):
    figures = {'ours': iter([2, 30, 10]), 'classic': iter([1, 10, 20])}
    calls = []

    def measure(formulation):
        calls.append(formulation)
        return {'ms': next(figures[formulation])}

    rounds = benchmark.in_turn(measure, ['ours', 'classic'], 3)
    assert calls == ['ours', 'classic'] * 3
    assert capsys.readouterr() == (
        '',
        ''.join('Round %d of 3: ours\nRound %d of 3: classic\n' % (i, i) for i in (1, 2, 3)),
    )
    assert rounds == {'ours': {'ms': [2, 30, 10]}, 'classic': {'ms': [1, 10, 20]}}


def test_ratios_are_made_round_by_round():
    rounds = {
        'ours': {'ms': [2, 30, 10], 'only': [1], 'none': [1]},
        'classic': {'ms': [1, 10, 20], 'other': [1], 'none': [0]},
    }
    # whose median is not the ratio of the medians
    assert benchmark.ratios(rounds) == {'ms': [2, 3, 0.5]}
    assert benchmark.ratios({'ours': {'ms': [2]}}) == {}


def test_comparison():
    """Three digits, or all before the point; a column may lack a figure."""
    rounds = {'ours': {'ms': [2, 1234.5, 0.12345], 's': [99.96]}, 'classic': {'ms': [1, 10, 2]}}
    assert benchmark.comparison(rounds).splitlines() == [
        '|  | ours | classic | ours / classic |',
        '| --- | --- | --- | --- |',
        '| ms | 2 (0.123 to 1234) | 2 (1 to 10) | 2 (0.0617 to 123) |',
        '| s | 100 (100 to 100) |  |  |',
    ]
    assert benchmark.comparison({'ours': {'s': [1]}}).splitlines()[0] == '|  | ours |'


def test_report():
    rounds = {'ours': {'ms': [2, 30, 10]}, 'classic': {'ms': [1, 10, 20]}}
    report = json.loads(benchmark.report('step', rounds, {'batch_size': 16}))
    assert set(report) == {'subcommand', 'time', 'host', 'flags', 'rounds', 'summary', 'ratios'}
    assert (report['subcommand'], report['flags'], report['rounds']) == (
        'step',
        {'batch_size': 16},
        rounds,
    )
    assert report['host']['tensorflow'] == tf.__version__ and report['host']['cores'] > 0
    assert report['summary'] == {
        'ours': {'ms': {'median': 10, 'min': 2, 'max': 30}},
        'classic': {'ms': {'median': 10, 'min': 1, 'max': 20}},
    }
    assert report['ratios'] == {'ms': {'median': 2, 'min': 0.5, 'max': 3}}
    assert json.loads(benchmark.report('step', {'ours': {'ms': [2]}}, {}))['ratios'] == {}


@pytest.mark.parametrize(
    'args, status, complaint',
    [
        ([], 2, 'the arguments must be input|step|train|towers|profile|distributed|plan, not '),
        (['step', '--rounds=0'], 2, 'flag --rounds=0: '),
        (['step', '--json={tmp}/nowhere/x'], 1, 'Cannot write {tmp}/nowhere/x (No such '),
        (['profile', '--trace={tmp}/nowhere/x'], 1, 'Cannot write {tmp}/nowhere/x (No such '),
        (['towers', '--batch_size=3'], 1, '--batch_size must be a multiple of 4'),
        (['step', '--devices_per_tower=2'], 1, '--devices_per_tower and --variable_strategy are '),
        (['towers', '--variable_strategy=spread', '--baseline'], 1, '--devices_per_tower and '),
        (['towers', '--devices_per_tower=6'], 1, '--devices_per_tower=6 is more than the 5 layers'),
        (['distributed', '--baseline'], 1, 'distributed has no classic formulation: '),
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


def test_steps_have_defaults():
    assert _request(steps=Steps(0, 0)).steps_or(10, 100) == (10, 100)
    assert _request(steps=Steps(3, 4)).steps_or(10, 100) == (3, 4)


def test_input_verdict():
    rounds = {
        'ours': {'images/sec': [100, 400, 300], 'images/sec that the step takes': [1000, 50, 200]}
    }
    assert benchmark.input_verdict(rounds, CPU_JOB) == (
        'The input can feed the towers on /cpu:0, /cpu:1: with all cores for itself it makes 1.5 times the images that the '
        'step takes.'
    )
    rounds['ours']['images/sec'] = [99, 98, 100]
    assert benchmark.input_verdict(rounds, CPU_JOB).startswith(
        'The input CANNOT feed the towers on /cpu:0, /cpu:1: '
    )


def test_flops_verdict():
    share = 'share of the matrix product'
    rounds = {'ours': {share: [0.84, 0.2, 0.9]}, 'classic': {share: [0.4, 0.6, 0.44]}}
    lines = benchmark.flops_verdict(rounds, CPU_JOB).splitlines()
    assert lines[1] == '  conv1          2 products    0.0885 GFLOP' and len(lines) == 8
    assert lines[6] == '  sum                          0.8424 GFLOP'
    assert lines[7] == (
        'Limit: arithmetic for ours (84 % of the rate of a matrix product), overhead for classic '
        '(44 % of the rate of a matrix product)'
    )


def test_profile_tables():
    """The most expensive operations come first, at most 25 of them, with shares round by round."""
    figures = {'op%d (Add)' % i: [i / 10, i / 10, 0] for i in range(1, 31)}
    figures['conv (Conv2D)'] = [50, 5, 30]
    figures['sum of all operations'] = [100, 50, 40]
    rounds = {'ours': figures, 'classic': {'sum of all operations': [50, 50, 50]}}
    title, table, other, _, sums = benchmark.tables(
        'profile', rounds, _request(trace_path='trace.json')
    ).split('\n\n')
    assert title == 'ours, Chrome trace in trace.json (open it in ui.perfetto.dev)'
    assert other.startswith('classic, Chrome trace in trace.json.classic ')
    lines = table.splitlines()
    assert lines[0] == '|  | ms | share in % |'
    assert lines[2] == '| conv (Conv2D) | 30 (5 to 50) | 50 (10 to 75) |'
    assert [line.split(' ')[1] for line in lines[3:-1]] == ['op%d' % i for i in range(30, 6, -1)]
    assert lines[-1] == '| sum of all operations | 50 (40 to 100) | 100 (100 to 100) |'
    assert sums.splitlines()[2].endswith(' | 50 (40 to 100) | 50 (50 to 50) | 1 (0.8 to 2) |')


@pytest.mark.parametrize(
    'devices, times',
    [(['/cpu:0', '/cpu:1'], 1), (['/gpu:0', '/gpu:1', '/gpu:0'], 2)],
)
def test_limit_counts_each_gpu_and_all_cores_once(monkeypatch, devices, times):
    def without_process(function, *args):
        if function is measurements.matrix_product_rate:
            assert args == (devices[0],)
            return 3e9
        return {'ms per step': 50.0, 'images/sec': 1.0}

    monkeypatch.setattr(processes, 'fresh_process', without_process)
    figures = benchmark.measure_step('ours', _request(CPU_JOB._replace(devices=devices)))
    gflops = measurements.step_operations(8) * len(devices) / 0.05 / 1e9
    assert figures == {
        'ms per step': 50,
        'images/sec': 1,
        'GFLOP/s': pytest.approx(gflops),
        'matrix product, GFLOP/s': times * 3,
        'share of the matrix product': pytest.approx(gflops / (times * 3)),
    }


@pytest.mark.parametrize(
    'formulation, script, extra',
    [
        ('ours', 'cifar10_multi_gpu_train.py', ['--input_threads=3']),
        ('classic', 'cifar10_classic.py', []),
    ],
)
def test_trainer_gets_flags_and_is_timed(tmp_path, monkeypatch, formulation, script, extra):
    """With a trainer that only prints: 4 seconds from step 12 to step 28."""
    (tmp_path / script).write_text(
        'import json, sys\njson.dump(sys.argv, open(%r, "w"))\n'
        'for i in range(1, 8): print("2026-01-01 00:00:0%%d.000000: step %%d, " %% (i, 4 * i))'
        % str(tmp_path / 'argv')
    )
    monkeypatch.setattr(processes, 'fresh_process', lambda function, device: 1e9)
    figures = benchmark.measure_train(
        formulation,
        _request(steps=Steps(12, 16), scripts_dir=str(tmp_path)),
    )
    assert list(figures) == [
        'ms per step',
        'images/sec',
        'peak memory, MB',
        'GFLOP/s',
        'matrix product, GFLOP/s',
        'share of the matrix product',
    ]
    assert (figures['ms per step'], figures['images/sec']) == (250, 64) and figures[
        'peak memory, MB'
    ] > 0
    with open(str(tmp_path / 'argv')) as argv:
        path, data_dir, train_dir, *others = json.load(argv)
    assert (path, data_dir) == (str(tmp_path / script), '--data_dir=there')
    assert re.match('--train_dir=.', train_dir) and not os.path.exists(train_dir.split('=')[1])
    assert (
        others
        == [
            '--num_gpus=2',
            '--batch_size=8',
            '--max_steps=28',
            '--log_frequency=2',
            '--summary_steps=100',
            '--checkpoint_steps=16',
        ]
        + extra
    )


def test_towers_share_one_batch(monkeypatch):
    """Divided towers are measured beside the usual ones."""
    parts = []

    def without_process(unused_function, formulation, job, steps):
        placed = job.devices_per_tower, job.variable_strategy
        parts.append((formulation, job.devices) + placed + (job.hparams.batch_size, steps))
        return {'ms per step': 10.0 + len(parts)}

    monkeypatch.setattr(processes, 'fresh_process', without_process)
    cpus = ['/cpu:%d' % i for i in range(8)]
    job = CPU_JOB._replace(devices=cpus)
    figures = benchmark.measure_towers('classic', _request(job, Steps(3, 0)))
    usual = [('classic', cpus[:n], 1, 'cpu', 8 // n, (3, 100)) for n in (1, 2, 4)]
    assert parts == usual
    assert figures == {
        'ms per step, 1 x 8': 11,
        'ms per step, 2 x 4': 12,
        'ms per step, 4 x 2': 13,
        'ms per step, 2 x 4 / 1 x 8': 12 / 11,
        'ms per step, 4 x 2 / 1 x 8': 13 / 11,
    }
    del parts[:]
    job = job._replace(devices_per_tower=2, variable_strategy='spread')
    figures = benchmark.measure_towers('classic', _request(job, Steps(3, 0)))
    assert parts[::2] == usual
    assert parts[1::2] == [
        ('classic', cpus[: 2 * n], 2, 'spread', 8 // n, (3, 100)) for n in (1, 2, 4)
    ]
    placed = 'ms per step, 2 x 4, divided by 2, variables spread'
    assert len(figures) == 11 and figures[placed] == 14
    assert figures[placed + ' / without'] == 14 / 13
    assert figures['ms per step, 2 x 4 / 1 x 8'] == 13 / 11


def test_flags_reach_the_measure(tmp_path, data_dir, monkeypatch):
    """With a measure that only notes what it gets."""
    requests = []

    def measure(formulation, request):
        requests.append((formulation, request))
        return {'ms': len(requests), 'share of the matrix product': 1 / len(requests)}

    monkeypatch.setitem(benchmark.MEASURES, 'train', measure)
    args = [
        '--data_dir=' + data_dir,
        '--num_gpus=2',
        '--batch_size=16',
        '--intra_op_threads=5',
        '--inter_op_threads=6',
        '--input_threads=7',
        '--warmup_steps=3',
        '--steps=4',
        '--trace=trace',
    ]
    path = tmp_path / 'report.json'
    status, stdout, stderr = programs.call(
        'cifar10_benchmark', 'train', '--baseline', '--rounds=2', '--json=%s' % path, *args
    )
    job = Job(
        dataset.read(data_dir),
        50000,
        CLASSIC._replace(batch_size=16),
        ['/cpu:0', '/cpu:1'],
        (5, 6, 7),
    )
    expected = benchmark.Request(
        job,
        Steps(3, 4),
        os.path.join(programs.ROOT, 'scripts'),
        args[3:6] + ['--eval_steps=0'],
        'trace',
        ['--data_dir=' + job.data.directory],
    )
    assert requests == [('ours', expected), ('classic', expected)] * 2
    assert (status, stderr) == (
        0,
        'Round 1 of 2: ours\nRound 1 of 2: classic\nRound 2 of 2: ours\nRound 2 of 2: classic\n',
    )
    assert '\n| ms | 2 (1 to 3) | 3 (2 to 4) | 0.625 (0.5 to 0.75) |\n' in stdout
    assert stdout.splitlines()[-1].startswith('Limit: arithmetic for ours (67 % ')
    report = json.loads(path.read_text())
    assert report['subcommand'] == 'train' and report['rounds'] == {
        'ours': {'ms': [1, 3], 'share of the matrix product': [1, 1 / 3]},
        'classic': {'ms': [2, 4], 'share of the matrix product': [1 / 2, 1 / 4]},
    }
    given = dict(arg[2:].split('=') for arg in args)
    assert {name: str(report['flags'][name]) for name in given} == given and report['flags'][
        'baseline'
    ] is True


def _benchmark(run, tmp_path, command, *args):
    """Runs a subcommand briefly; returns stdout, and the figures of its one round by
    formulation."""
    path = str(tmp_path / 'report.json')
    formulations = ['ours', 'classic'] if '--baseline' in args else ['ours']
    status, stdout, stderr = run(
        'cifar10_benchmark',
        command,
        '--json=' + path,
        '--rounds=1',
        '--batch_size=16',
        '--warmup_steps=2',
        '--steps=4',
        *args,
    )
    assert stderr == ''.join('Round 1 of 1: %s\n' % formulation for formulation in formulations)
    assert status == 0
    with open(path) as opened:
        report = json.load(opened)
    figures = {
        formulation: {name: value for name, (value,) in measured.items()}
        for formulation, measured in report['rounds'].items()
    }
    assert list(figures) == formulations
    assert {name: ratio['median'] for name, ratio in report['ratios'].items()} == pytest.approx(
        {
            name: value / figures['classic'][name]
            for name, value in figures['ours'].items()
            if figures.get('classic', {}).get(name)
        }
    )
    return stdout, figures


@pytest.mark.slow
def test_step(tmp_path):
    """In a process of its own, for not a word of TensorFlow may reach stderr."""
    stdout, figures = _benchmark(programs.run, tmp_path, 'step', '--num_gpus=2')
    ours = figures['ours']
    assert ours['images/sec'] == pytest.approx(2 * 16 / ours['ms per step'] * 1e3)
    operations = 2 * measurements.step_operations(16)
    assert ours['GFLOP/s'] == pytest.approx(operations / ours['ms per step'] / 1e6)
    assert ours['share of the matrix product'] == pytest.approx(
        ours['GFLOP/s'] / ours['matrix product, GFLOP/s']
    )
    assert '%.4f GFLOP' % (operations / 2e9) in stdout


@pytest.mark.long
def test_train_runs_both_scripts(tmp_path, data_dir):
    _, figures = _benchmark(
        programs.call, tmp_path, 'train', '--data_dir=' + data_dir, '--baseline'
    )
    for measured in figures.values():
        assert measured['images/sec'] == pytest.approx(16 / measured['ms per step'] * 1e3)
        assert 100 < measured['peak memory, MB'] < 10000


@pytest.mark.slow
@pytest.mark.parametrize(
    'command, number, status, last_line',
    [
        ('step', signal.SIGINT, 130, 'cifar10_benchmark.py: interrupted (SIGINT)\n'),
        ('train', signal.SIGTERM, 143, 'cifar10_benchmark.py: interrupted (SIGTERM)\n'),
    ],
)
def test_signal_ends_all_that_it_started(tmp_path, data_dir, command, number, status, last_line):
    process = programs.start(
        'cifar10_benchmark',
        command,
        '--data_dir=' + data_dir,
        '--steps=1000000',
        TMPDIR=str(tmp_path),
    )
    assert process.stderr.readline() == 'Round 1 of 5: ours\n'
    # the trainer has not yet begun to write
    while command == 'train' and not glob.glob(str(tmp_path / '*' / '*')):
        assert process.poll() is None
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)  # which waits for all that can write there
    assert (process.returncode, stderr) == (status, last_line)
    assert os.listdir(str(tmp_path)) == []
