"""The table and the plot of runs, from event files whose every number is known."""
import os
import sys

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import summaries
from cifar10.errors import UserError
from cifar10.measure import results
from tests.helpers import programs


def write(directory, first_step=None, **scalars):
    """Writes {tag: {step: value}} as a trainer or an evaluation would that starts at `first_step`."""
    os.makedirs(str(directory), exist_ok=True)
    with tf.Graph().as_default(), summaries.writer(str(directory), first_step) as write_summary:
        for tag, values in scalars.items():
            for step, value in values.items():
                write_summary(tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)]), step)


@pytest.fixture
def runs(tmp_path):
    """slow: one run of 400 steps, stopped and resumed; quick: two runs of 200 steps."""
    train = tmp_path / 'slow'
    write(train, 0, epoch={100: 1, 200: 2, 300: 3}, sec_per_batch={100: 0.6, 200: 1.2, 300: 99})
    # The start drops what came after step 200; the run ends after its last summary.
    write(train, 200, epoch={300: 3, 400: 4}, sec_per_batch={300: 0.6, 400: 0.6})
    write(tmp_path / 'slow_eval', **{'Precision @ 1': {100: 0.25, 199: 0.5, 300: 0.625, 400: 0.625, 450: 0.84},
                                     'Precision @ 1, 10 views': {300: 0.8, 450: 0.9}})
    write(tmp_path / 'slow_eval', 450, **{'Precision @ 1': {450: 0.84}})  # the same step once more, by another start
    for name, last in (('quick1', 0.75), ('quick2', 0.875)):
        # The run is ahead of its evaluation.
        write(tmp_path / name, 0, epoch={100: 1, 200: 2, 300: 3}, sec_per_batch={100: 0.6, 200: 0.6, 300: 0.6})
        write(tmp_path / (name + '_eval'), **{'Precision @ 1': {150: 0.5, 200: last}, 'Precision @ 1, 10 views': {150: 0.8}})
    return ','.join('{0}:{1}/{2}:{1}/{2}_eval'.format(name, tmp_path, directory) for name, directory in (
        ('slow', 'slow'), ('quick', 'quick1'), ('quick', 'quick2')))


@pytest.mark.parametrize('run', [programs.call, pytest.param(programs.run, marks=pytest.mark.slow)])
def test_table(runs, run):
    """A process of its own shows whether TensorBoard's reader keeps quiet."""
    status, stdout, stderr = run('cifar10_results', '--runs=' + runs, '--at_epochs=1.995,4,4.5,1000', '--reach=0.5,0.84')
    assert (status, stderr) == (0, '')
    assert stdout.splitlines() == [
        '|  | runs | epochs | minutes | precision @ 1 | 10 views |', '| --- | --- | --- | --- | --- | --- |',
        '| slow | 1 | 2.0 | 3.0 | 0.5000 |  |',
        '| slow | 1 | 4.0 | 5.0 | 0.6250 |  |',
        '| slow | 1 | 4.5 | 5.5 | 0.8400 | 0.9000 |',
        '| quick | 2 | 2.0 (2.0 to 2.0) | 2.0 (2.0 to 2.0) | 0.8125 (0.7500 to 0.8750) |  |',
        '| slow, first at 0.5 | 1 | 2.0 | 3.0 | 0.5000 |  |',
        '| quick, first at 0.5 | 2 | 1.5 (1.5 to 1.5) | 1.5 (1.5 to 1.5) | 0.5000 (0.5000 to 0.5000) |  |',
        '| slow, first at 0.84 | 1 | 4.5 | 5.5 | 0.8400 |  |',
        '| quick, first at 0.84 | 1 of 2 |  |  |  |  |']


def test_plot(runs, tmp_path):
    """A picture with a curve for each run."""
    pytest.importorskip('matplotlib')
    path = tmp_path / 'plot.svg'
    status, _, stderr = programs.call('cifar10_results', '--runs=' + runs, '--plot=%s' % path)
    assert (status, stderr) == (0, '')
    picture = path.read_text()
    assert picture.count('stroke: #1f77b4') == 2 + 1 and picture.count('stroke: #ff7f0e') == 4 + 1  # and the legend
    status, _, stderr = programs.call('cifar10_results', '--runs=' + runs, '--plot=%s.never' % path)
    assert status == 1 and stderr.startswith('cifar10_results.py: error: Cannot draw %s.never (' % path)
    assert stderr.count('\n') == 1


def test_plot_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    with pytest.raises(UserError, match='^--plot needs matplotlib: pip install matplotlib$'):
        results.plot([], str(tmp_path / 'plot.svg'))
    assert not (tmp_path / 'plot.svg').exists()


@pytest.mark.parametrize('args, complaint', [
    (['--runs=a:b'], '--runs: a:b is not of the form NAME:TRAIN_DIR:EVAL_DIR'),
    (['--runs=a:{tmp}/nowhere:b'], '{tmp}/nowhere does not exist: name a directory that a run has written to'),
    (['--runs=a:{tmp}:b'], '{tmp} holds no event file with "epoch": name the directory of a run that has written summaries'),
    (['--runs=a:b:c', '--reach=high'], "--reach must be a list of numbers: could not convert string to float: 'high'"),
    (['--runs=a:b:c', '--at_epochs=1,x'], "--at_epochs must be a list of numbers: could not convert string to float: 'x'")])
def test_mistake_gets_one_clear_line(tmp_path, args, complaint):
    status, _, stderr = programs.call('cifar10_results', *[arg.format(tmp=tmp_path) for arg in args])
    assert stderr == 'cifar10_results.py: error: %s\n' % complaint.format(tmp=tmp_path)
    assert status == 1


def test_evaluations_count_in_the_order_of_steps(tmp_path):
    """Not in that of the evaluations: the first checkpoint may be evaluated last."""
    write(tmp_path / 'train', 0, epoch={100: 1, 200: 2}, sec_per_batch={100: 0.6, 200: 0.6})
    write(tmp_path / 'eval', **{'Precision @ 1': {200: 0.5, 100: 0.25}})
    curve = results.read_curve('name:%s:%s' % (tmp_path / 'train', tmp_path / 'eval'))
    assert curve.precision.tolist() == [0.25, 0.5] and curve.epochs.tolist() == [1, 2]
