"""What the benchmark makes of its figures, and its complaints."""

import contextlib
import json
import os
import sys

import pytest
import tensorflow.compat.v1 as tf

from cifar10.measure import benchmark
from tests.helpers import programs


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


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='this system has no full device')
def test_rounds_are_measured_though_they_cannot_be_told(monkeypatch):
    with open('/dev/full', 'w') as full:
        monkeypatch.setattr(sys, 'stderr', full)
        assert benchmark.in_turn(lambda formulation: {'ms': 1}, ['ours'], 2) == {
            'ours': {'ms': [1, 1]}
        }
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()


def test_ratios_are_made_round_by_round():
    rounds = {
        'ours': {'ms': [2, 30, 10], 'only': [1]},
        'classic': {'ms': [1, 10, 20], 'other': [1]},
    }
    # whose median is not the ratio of the medians
    assert benchmark.ratios(rounds) == {'ms': [2, 3, 0.5]}
    assert benchmark.ratios({'ours': {'ms': [2]}}) == {}
    assert benchmark.ratios({'ours': {'ms': [2, 1]}, 'classic': {'ms': [1, 0]}}) == {}


def test_comparison():
    assert benchmark.comparison({'ours': {'ms': [2, 30, 10]}, 'classic': {'ms': [1, 10, 20]}}) == (
        '|  | ours | classic | ours / classic |\n| --- | --- | --- | --- |\n| ms | 10 (2 to 30) | 10 (1 to 20) | 2 (0.5 to 3) |'
    )
    assert (
        benchmark.comparison({'ours': {'ms': [1234.5, 0.12345]}})
        == '|  | ours |\n| --- | --- |\n| ms | 617 (0.123 to 1234) |'
    )


def test_table_has_the_named_figures():
    """In their order; a column may lack some, and others are left out."""
    assert benchmark.figures_table(
        {'a': {'x': [1], 'y': [99.96], 'z': [0]}, 'b': {'y': [2.346, 2.344, 2.35]}}, ['y', 'x']
    ) == (
        '|  | a | b |\n| --- | --- | --- |\n| y | 100 (100 to 100) | 2.35 (2.34 to 2.35) |\n| x | 1 (1 to 1) |  |'
    )


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
        (
            [],
            2,
            'a command is missing: input, step, train, towers, profile, distributed or plan; --help explains them',
        ),
        (
            ['speed'],
            2,
            'unknown command speed: give input, step, train, towers, profile, distributed or plan; --help ',
        ),
        (['step', 'train'], 2, 'unexpected argument train; --help explains the usage'),
        (['step', '--rounds=0'], 2, 'flag --rounds=0: '),
        (['step', '--json='], 2, 'flag --json=: the name of a file is missing'),
        (
            ['step', '--json={tmp}/nowhere/x'],
            1,
            'Cannot write {tmp}/nowhere/x (No such file or directory): name a file in an ',
        ),
        (
            ['profile', '--trace={tmp}/nowhere/x'],
            1,
            'Cannot write {tmp}/nowhere/x (No such file or directory): name a file in an ',
        ),
        (
            ['plan', '--json={tmp}/x.json'],
            1,
            'plan measures no figures for a file: leave out --json',
        ),
        (
            ['towers', '--batch_size=3'],
            1,
            '--batch_size=3 cannot be divided among four towers: give a multiple of 4',
        ),
        (
            ['train', '--data_dir={tmp}', '--dataset=cifar10', '--data_url=nowhere'],
            1,
            'Cannot download nowhere ',
        ),
        (
            ['input', '--data_dir={data}', '--batch_size=1048576'],
            1,
            '--batch_size=1048576 is too large for the 300 training examples',
        ),
    ],
)
def test_mistake_gets_one_clear_line(tmp_path, data_dir, args, status, complaint):
    found, stdout, stderr = programs.call(
        'cifar10_benchmark', *[arg.format(tmp=tmp_path, data=data_dir) for arg in args]
    )
    assert (
        stderr.startswith('cifar10_benchmark.py: error: ' + complaint.format(tmp=tmp_path))
        and stderr.count('\n') == 1
    )
    assert found == status
