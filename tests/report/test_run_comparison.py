"""Table and plot of runs, from event files with known values."""

import os
import sys

import pytest

from cifar10.report import run_comparison
from tests.helpers import measured_runs, messages, programs


@pytest.fixture
def runs(tmp_path):
    """slow: one run of 400 steps, stopped and resumed; quick: two runs of 200 steps.

    An early version, with another name of a tag, began the run slow.
    """
    train = tmp_path / 'slow'
    measured_runs.write(
        train, 0, epoch={100: 1, 200: 2, 300: 3}, sec_per_batch={100: 0.6, 200: 1.2, 300: 99}
    )
    # The start drops the events after step 200. The run ends after its last summary.
    measured_runs.write(train, 200, epoch={300: 3, 400: 4}, sec_per_step={300: 0.6, 400: 0.6})
    measured_runs.write(
        tmp_path / 'slow_eval',
        **{
            # The first checkpoint was evaluated last.
            'Precision @ 1': {199: 0.5, 300: 0.625, 400: 0.625, 450: 0.84, 100: 0.25},
            'Precision @ 1, 10 views': {300: 0.8, 450: 0.9},
        },
    )
    # another start evaluates the same step again
    measured_runs.write(tmp_path / 'slow_eval', 450, **{'Precision @ 1': {450: 0.84}})
    for name, last in (('quick1', 0.75), ('quick2', 0.875)):
        # The run is ahead of its evaluation.
        measured_runs.write(
            tmp_path / name,
            0,
            epoch={100: 1, 200: 2, 300: 3},
            sec_per_step=dict.fromkeys((100, 200, 300), 0.6),
        )
        measured_runs.write(
            tmp_path / (name + '_eval'),
            **{'Precision @ 1': {150: 0.5, 200: last}, 'Precision @ 1, 10 views': {150: 0.8}},
        )
    return ','.join(
        f'{name}:{tmp_path}/{directory}:{tmp_path}/{directory}_eval'
        for name, directory in (('slow', 'slow'), ('quick', 'quick1'), ('quick', 'quick2'))
    )


@pytest.mark.parametrize('run', [programs.call, pytest.param(programs.run, marks=pytest.mark.slow)])
def test_table(runs, run):
    """The separate process shows that TensorBoard's reader prints nothing."""
    status, stdout, stderr = run(
        'cifar10_results',
        '--runs=' + runs,
        '--target_precision=0.5,0.84',
    )
    assert (status, stderr) == (0, '')
    assert stdout.splitlines() == [
        '|  | runs | epochs | minutes | precision @ 1 | 10 views |',
        '| --- | --- | --- | --- | --- | --- |',
        '| slow | 1 | 4.5 | 5.5 | 0.8400 | 0.9000 |',
        '| quick | 2 | 2.0 (2.0 to 2.0) | 2.0 (2.0 to 2.0) | 0.8125 (0.7500 to 0.8750) |  |',
        '| slow, first at 0.5 | 1 | 2.0 | 3.0 | 0.5000 |  |',
        '| quick, first at 0.5 | 2 | 1.5 (1.5 to 1.5) | 1.5 (1.5 to 1.5) | 0.5000 (0.5000 to 0.5000) | 0.8000 (0.8000 to 0.8000) |',
        '| slow, first at 0.84 | 1 | 4.5 | 5.5 | 0.8400 | 0.9000 |',
        '| quick, first at 0.84 | 1 of 2 |  |  |  |  |',
    ]


def test_plot(runs, tmp_path):
    """An image with a curve per run."""
    pytest.importorskip('matplotlib')
    path = tmp_path / 'plot.svg'
    status, _, stderr = programs.call('cifar10_results', '--runs=' + runs, f'--plot_file={path}')
    assert (status, stderr) == (0, '')
    image = path.read_text()
    # 1 for the legend
    assert image.count('stroke: #1f77b4') == 2 + 1 and image.count('stroke: #ff7f0e') == 4 + 1
    path = f'{path}.never'
    status, _, stderr = programs.call('cifar10_results', '--runs=' + runs, '--plot_file=' + path)
    assert status == 1 and not os.path.exists(path)
    assert stderr.startswith(f'cifar10_results.py: error: Cannot draw {path} (')
    assert stderr.count('\n') == 1


def test_plot_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    with messages.raises('^The plot needs matplotlib: pip install matplotlib$'):
        run_comparison.plot({}, 'plot.svg')


RUNS = '--runs=a:{tmp}/train:{tmp}/eval'
FORM = ' is not of the form NAME:TRAIN_DIR:EVAL_DIR, each without a colon'


@pytest.mark.parametrize(
    'args, expected, complaint',
    [
        (['--runs=a:{tmp}/nowhere:b'], 1, '{tmp}/nowhere does not exist: name the train_dir '),
        (['--runs=a:{tmp}:b'], 1, '{tmp} holds no event file with "epoch": name the train_dir '),
        (
            ['--runs=a:{tmp}/train:{tmp}/train'],
            1,
            '{tmp}/train holds no event file with "Precision @ 1": ',
        ),
        (
            [RUNS, '--plot_file={tmp}/nowhere/x.svg'],
            1,
            'Cannot write {tmp}/nowhere/x.svg (No such file or directory): name a file in an ',
        ),
        ([], 1, '--runs is missing: give NAME:TRAIN_DIR:EVAL_DIR'),
        ([RUNS + ','], 2, "flag --runs=['a:{tmp}/train:{tmp}/eval', '']: an empty name" + FORM),
        (['--runs=a:b'], 2, "flag --runs=['a:b']: a:b" + FORM),
        (['--runs=a::c'], 2, "flag --runs=['a::c']: a::c" + FORM),
        (
            [RUNS, '--target_precision=high'],
            2,
            "flag --target_precision=['high']: it must be a list of numbers: ",
        ),
    ],
)
def test_mistake_gets_one_clear_line(tmp_path, args, expected, complaint):
    measured_runs.write_run(tmp_path)
    status, stdout, stderr = programs.call(
        'cifar10_results', *[arg.format(tmp=tmp_path) for arg in args]
    )
    assert stderr.startswith('cifar10_results.py: error: ' + complaint.format(tmp=tmp_path))
    assert (status, stdout, stderr.count('\n')) == (expected, '', 1)


def test_a_run_without_a_step(tmp_path):
    _, eval_dir = measured_runs.write_run(tmp_path)
    measured_runs.write(tmp_path / 'new', epoch={0: 0, 100: 1}, sec_per_step={0: 0, 200: 1})
    with messages.raises('/new holds no step with both "epoch" and "sec_per_step": train further'):
        run_comparison.read_curve(str(tmp_path / 'new'), eval_dir)
