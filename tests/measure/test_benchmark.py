"""What the benchmark makes of its figures, and its subcommands in short."""
import glob
import json
import os
import re
import signal
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from cifar10.measure import benchmark, flops
from cifar10.errors import UserError
from tests.scripts.test_scripts import run, start


def test_formulations_take_turns_and_ratios_are_made_round_by_round(capsys):
    figures = {'ours': iter([2, 30, 10]), 'classic': iter([1, 10, 20])}
    calls = []

    def measure(formulation):
        calls.append(formulation)
        return {'ms': next(figures[formulation])}
    results = benchmark.in_turn(measure, ['ours', 'classic'], 3)
    assert calls == ['ours', 'classic'] * 3
    assert capsys.readouterr().err.startswith('Round 1 of 3: ours\nRound 1 of 3: classic\nRound 2 of 3: ours\n')
    assert results == {'ours': {'ms': [2, 30, 10]}, 'classic': {'ms': [1, 10, 20]}}
    assert benchmark.ratios(results) == {'ms': [2, 3, 0.5]}  # whose median is not the ratio of the medians
    assert benchmark.table(results) == ('|  | ours | classic | ours / classic |\n| --- | --- | --- | --- |\n'
                                        '| ms | 10 (2 to 30) | 10 (1 to 20) | 2 (0.5 to 3) |')
    assert benchmark.table({'ours': {'ms': [1234.5, 0.12345]}}) == '|  | ours |\n| --- | --- |\n| ms | 617 (0.123 to 1234) |'


def test_operations_of_a_step_are_those_of_its_convolutions_and_products(graph):
    """Counted in the graph: each convolution or product, forward or gradient, takes 2 operations a weight and place."""
    batch = (tf.zeros([6, 24, 24, 3]), tf.zeros([6], tf.int32))
    with tf.device('/gpu:0'):  # where no product belongs to the normalisation
        loss = multi_gpu.tower_loss('', *batch)
        gradients = tf.gradients(loss, tf.trainable_variables())
    needed = tf.graph_util.extract_sub_graph(graph.as_graph_def(), [gradient.op.name for gradient in gradients])
    counted = 0
    for op in [graph.get_operation_by_name(node.name) for node in needed.node]:
        if op.type == 'Conv2D':
            counted += 2 * np.prod(op.inputs[1].shape.as_list()) * np.prod(op.outputs[0].shape.as_list()[:3])
        elif op.type == 'Conv2DBackpropInput':
            counted += 2 * np.prod(op.inputs[1].shape.as_list()) * np.prod(op.inputs[2].shape.as_list()[:3])
        elif op.type == 'Conv2DBackpropFilter':
            counted += 2 * np.prod(op.outputs[0].shape.as_list()) * np.prod(op.inputs[2].shape.as_list()[:3])
        elif op.type == 'MatMul':
            rows, inner = op.inputs[0].shape.as_list()
            counted += 2 * rows * inner * np.prod(op.outputs[0].shape.as_list()) // (inner if op.get_attr('transpose_a') else rows)
    assert sum(operations for _, _, operations in flops.step_flops(6)) == counted
    for _, terms, operations in flops.step_flops(128):
        assert np.prod([int(factor) for factor in terms.split(' x ')]) == operations


def test_a_matrix_product_has_a_rate():
    assert 1e7 < flops.matrix_product_rate('/cpu:0', size=64, runs=3) < 1e14


def _fail(message):
    raise UserError(message)


def test_a_fresh_process_returns_raises_and_dies():
    assert benchmark.fresh_process(os.getpid) != os.getpid()
    with pytest.raises(UserError, match='no such thing'):
        benchmark.fresh_process(_fail, 'no such thing')
    with pytest.raises(UserError, match='ended before its time'):
        benchmark.fresh_process(os._exit, 1)


def _use(system_calls, megabytes):
    """Returns what usage() and os.times() say of some system calls and of memory that is touched."""
    np.ones(megabytes << 20, np.uint8)  # above any peak of the imports
    (cpu, peak), times = benchmark.usage(), os.times()
    with open(os.devnull, 'wb', buffering=0) as null:
        for _ in range(system_calls):
            null.write(b'x')
    np.ones(megabytes << 21, np.uint8)
    (cpu_after, peak_after), times_after = benchmark.usage(), os.times()
    return cpu_after - cpu, sum(times_after[:2]) - sum(times[:2]), times_after.system - times.system, peak_after - peak


def test_usage_counts_user_and_system_time_and_the_peak_of_memory():
    cpu, expected, system, memory = benchmark.fresh_process(_use, 500000, 300)
    assert system > 0.04  # four ticks of the clock of os.times()
    assert abs(cpu - expected) < 0.03
    assert 290 < memory < 310


def test_a_trainer_is_timed_from_line_to_line():
    lines = ['2026-01-01 00:00:0%d.500000: step %d, loss = 1.00 (1.0 examples/sec; 1.000 sec/batch)' % (i * i, 10 * i) for i in (1, 2, 3)]
    command = [sys.executable, '-c', 'print(%r)' % '\n'.join(lines)]
    assert benchmark.run_trainer(command, 10, 20)[0] == 3
    assert benchmark.run_trainer(command, 20, 30)[0] == 5
    with pytest.raises(UserError, match='failed'):
        benchmark.run_trainer([sys.executable, '-c', 'exit(1)'], 10, 20)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / 'report.json'
    benchmark.write(str(path), 'old')
    with pytest.raises(TypeError):
        benchmark.write(str(path), None)
    assert path.read_text() == 'old' and os.listdir(str(tmp_path)) == ['report.json']
    with pytest.raises(UserError, match='Cannot write .*Is a directory'):
        benchmark.write(str(tmp_path), 'new')


SHORT = ['--rounds=1', '--batch_size=16', '--warmup_steps=2', '--steps=4']


def _benchmark(tmp_path, command, *args):
    path = str(tmp_path / 'report.json')
    status, stdout, stderr = run('cifar10_benchmark', command, '--json=' + path, *SHORT + list(args))
    assert status == 0, stderr
    with open(path) as report:
        return stdout, json.load(report), stderr


def test_input(tmp_path, data_dir):
    stdout, report, _ = _benchmark(tmp_path, 'input', '--data_dir=' + data_dir, '--baseline')
    names = ['images/sec', 'CPU microseconds an image', 'seconds to build the graph',
             'seconds from the start of the queues to the first batch', 'peak memory, MB', 'images/sec that the step takes']
    assert list(report['rounds']['ours']) == list(report['rounds']['classic']) == names
    assert all(value > 0 for figures in report['rounds'].values() for values in figures.values() for value in values)
    assert re.search('^The input (can|CANNOT) feed 1 tower on /cpu:0: ', stdout, re.M)
    assert set(report) == {'subcommand', 'time', 'host', 'flags', 'rounds', 'summary', 'ratios'}
    assert report['host']['tensorflow'] == tf.__version__ and report['flags']['batch_size'] == 16
    ours, classic = (report['rounds'][formulation]['images/sec'][0] for formulation in ('ours', 'classic'))
    assert report['ratios']['images/sec']['median'] == pytest.approx(ours / classic)


def test_step(tmp_path):
    stdout, report, stderr = _benchmark(tmp_path, 'step', '--num_gpus=2', '--rounds=2')
    assert stderr == 'Round 1 of 2: ours\nRound 2 of 2: ours\n'
    figures = {name: values[0] for name, values in report['rounds']['ours'].items()}
    assert figures['images/sec'] == pytest.approx(2 * 16 / figures['ms a step'] * 1e3)
    operations = 2 * sum(count for _, _, count in flops.step_flops(16))
    assert figures['GFLOP/s'] == pytest.approx(operations / figures['ms a step'] / 1e6)
    assert figures['share of the matrix product'] == pytest.approx(figures['GFLOP/s'] / figures['matrix product, GFLOP/s'])
    assert '%.4f GFLOP' % (operations / 2e9) in stdout and report['ratios'] == {}


def test_train_runs_both_scripts(tmp_path, data_dir):
    _, report, _ = _benchmark(tmp_path, 'train', '--data_dir=' + data_dir, '--baseline')
    for formulation in ('ours', 'classic'):
        figures = {name: values[0] for name, values in report['rounds'][formulation].items()}
        assert figures['images/sec'] == pytest.approx(16 / figures['ms a step'] * 1e3)
        assert 100 < figures['peak memory, MB'] < 10000


def test_towers(tmp_path):
    _, report, _ = _benchmark(tmp_path, 'towers')
    figures = {name: values[0] for name, values in report['rounds']['ours'].items()}
    assert list(figures) == ['ms a step, 1 x 16', 'ms a step, 2 x 8', 'ms a step, 4 x 4',
                             'ms a step, 2 x 8 / 1 x 16', 'ms a step, 4 x 4 / 1 x 16']
    assert figures['ms a step, 4 x 4 / 1 x 16'] == pytest.approx(figures['ms a step, 4 x 4'] / figures['ms a step, 1 x 16'])


def test_profile(tmp_path):
    trace = str(tmp_path / 'trace.json')
    stdout, report, _ = _benchmark(tmp_path, 'profile', '--trace=' + trace, '--baseline')
    for path, kind in ((trace, 'BackpropFilter'), (trace + '.classic', 'LRNGrad')):
        with open(path) as opened:
            events = json.load(opened)['traceEvents']
        assert any(kind in event['name'] for event in events if event['ph'] == 'X')
        assert path + ' ' in stdout
    assert any('(LRNGrad)' in name for name in report['rounds']['classic'])
    assert not any('(LRNGrad)' in name for name in report['rounds']['ours'])
    for formulation, figures in report['rounds'].items():
        (total,), *others = [figures.pop('sum of all operations')] + list(figures.values())
        assert total == pytest.approx(sum(ms for ms, in others)), formulation
        assert re.search(r'^\| .*conv2.*Conv2DBackpropFilter\) \| [\d.]+ \([\d.]+ to [\d.]+\) \| [\d.]+ \([\d.]+ to [\d.]+\) \|$', stdout, re.M)
    ratio = report['ratios']['sum of all operations']['median']
    assert '| %.3g (' % ratio in stdout.splitlines()[-2]


@pytest.mark.parametrize('args, status, complaint', [
    ([], 2, 'a command is missing: input, step, train, towers or profile; --help tells more'),
    (['speed'], 2, 'unexpected argument speed; --help tells more'),
    (['step', '--rounds=0'], 2, 'flag --rounds=0: '),
    (['step', '--json='], 1, 'Cannot write : name a file in a directory'),
    (['step', '--json=/nowhere/x.json'], 1, 'Cannot write /nowhere/x.json: name a file in a directory'),
    (['towers', '--batch_size=3'], 1, '--batch_size=3 does not divide by 4'),
    (['train', '--data_dir={tmp}', '--dataset=cifar10', '--data_url=http://127.0.0.1:1/x'], 1, 'Cannot download http://127.0.0.1:1/x ')])
def test_a_mistake_gets_one_clear_line(tmp_path, args, status, complaint):
    found, stdout, stderr = run('cifar10_benchmark', *[arg.format(tmp=tmp_path) for arg in args])
    assert stderr.startswith('cifar10_benchmark.py: error: ' + complaint) and stderr.count('\n') == 1
    assert found == status


@pytest.mark.parametrize('command', ['step', 'train'])
@pytest.mark.parametrize('number, status, last_line', [
    (signal.SIGINT, 130, 'cifar10_benchmark.py: interrupted\n'), (signal.SIGTERM, 143, '')])
def test_a_signal_ends_it_with_all_that_it_started(tmp_path, data_dir, monkeypatch, command, number, status, last_line):
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    process = start('cifar10_benchmark', command, '--dataset=synthetic', '--data_dir=' + data_dir, '--steps=1000000')
    assert process.stderr.readline() == 'Round 1 of 5: ours\n'
    while command == 'train' and not glob.glob(str(tmp_path / '*' / '*')):  # the trainer has not yet begun to write
        assert process.poll() is None
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)  # which waits for all that can write there
    assert (process.returncode, stderr) == (status, last_line)
    assert os.listdir(str(tmp_path)) == []
