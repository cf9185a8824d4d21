"""The table and the plot of runs, from event files whose every number is known."""

import os
import re
import sys

import pytest

from cifar10.errors import UserError
from cifar10.measure import results
from tests.helpers import measured_runs, programs


@pytest.fixture
def runs(tmp_path):
    """slow: one run of 400 steps, stopped and resumed; quick: two runs of 200 steps."""
    train = tmp_path / 'slow'
    measured_runs.write(
        train, 0, epoch={100: 1, 200: 2, 300: 3}, sec_per_batch={100: 0.6, 200: 1.2, 300: 99}
    )
    # The start drops what came after step 200; the run ends after its last summary.
    measured_runs.write(train, 200, epoch={300: 3, 400: 4}, sec_per_batch={300: 0.6, 400: 0.6})
    measured_runs.write(
        tmp_path / 'slow_eval',
        **{
            'Precision @ 1': {100: 0.25, 199: 0.5, 300: 0.625, 400: 0.625, 450: 0.84},
            'Precision @ 1, 10 views': {300: 0.8, 450: 0.9},
        },
    )
    # the same step once more, by another start
    measured_runs.write(tmp_path / 'slow_eval', 450, **{'Precision @ 1': {450: 0.84}})
    for name, last in (('quick1', 0.75), ('quick2', 0.875)):
        # The run is ahead of its evaluation.
        measured_runs.write(
            tmp_path / name,
            0,
            epoch={100: 1, 200: 2, 300: 3},
            sec_per_batch=dict.fromkeys((100, 200, 300), 0.6),
        )
        measured_runs.write(
            tmp_path / (name + '_eval'),
            **{'Precision @ 1': {150: 0.5, 200: last}, 'Precision @ 1, 10 views': {150: 0.8}},
        )
    return ','.join(
        '{0}:{1}/{2}:{1}/{2}_eval'.format(name, tmp_path, directory)
        for name, directory in (('slow', 'slow'), ('quick', 'quick1'), ('quick', 'quick2'))
    )


@pytest.mark.parametrize('run', [programs.call, pytest.param(programs.run, marks=pytest.mark.slow)])
def test_table(runs, run):
    """A process of its own shows whether TensorBoard's reader keeps quiet."""
    status, stdout, stderr = run(
        'cifar10_results', '--runs=' + runs, '--at_epochs=1.995,4,4.5,1000', '--reach=0.5,0.84'
    )
    assert (status, stderr) == (0, '')
    assert stdout.splitlines() == [
        '|  | runs | epochs | minutes | precision @ 1 | 10 views |',
        '| --- | --- | --- | --- | --- | --- |',
        '| slow | 1 | 2.0 | 3.0 | 0.5000 |  |',
        '| slow | 1 | 4.0 | 5.0 | 0.6250 |  |',
        '| slow | 1 | 4.5 | 5.5 | 0.8400 | 0.9000 |',
        '| quick | 2 | 2.0 (2.0 to 2.0) | 2.0 (2.0 to 2.0) | 0.8125 (0.7500 to 0.8750) |  |',
        '| slow, first at 0.5 | 1 | 2.0 | 3.0 | 0.5000 |  |',
        '| quick, first at 0.5 | 2 | 1.5 (1.5 to 1.5) | 1.5 (1.5 to 1.5) | 0.5000 (0.5000 to 0.5000) |  |',
        '| slow, first at 0.84 | 1 | 4.5 | 5.5 | 0.8400 |  |',
        '| quick, first at 0.84 | 1 of 2 |  |  |  |  |',
    ]


def test_plot(runs, tmp_path):
    """A picture with a curve for each run."""
    pytest.importorskip('matplotlib')
    path = tmp_path / 'plot.svg'
    status, _, stderr = programs.call('cifar10_results', '--runs=' + runs, '--plot=%s' % path)
    assert (status, stderr) == (0, '')
    picture = path.read_text()
    # and the legend
    assert picture.count('stroke: #1f77b4') == 2 + 1 and picture.count('stroke: #ff7f0e') == 4 + 1
    status, stdout, stderr = programs.call(
        'cifar10_results', '--runs=' + runs, '--plot=%s.never' % path
    )
    assert (status, stdout) == (1, '') and stderr.startswith(
        'cifar10_results.py: error: Cannot draw %s.never: ' % path
    )
    assert stderr.count('\n') == 1


def test_plot_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    with pytest.raises(UserError, match='^--plot needs matplotlib: pip install matplotlib$'):
        results.check_plot(str(tmp_path / 'plot.svg'))


RUNS = '--runs=a:{tmp}/train:{tmp}/eval'
FORM = ' is not of the form NAME:TRAIN_DIR:EVAL_DIR, each without a colon'


@pytest.mark.parametrize(
    'args, complaint',
    [
        (
            ['--runs=a:{tmp}/nowhere:b'],
            '{tmp}/nowhere does not exist: name a directory that a run has written to',
        ),
        (
            ['--runs=a:{tmp}/file:b'],
            '{tmp}/file is not a directory: name a directory that a run has written to',
        ),
        (
            ['--runs=a:{tmp}:b'],
            '{tmp} holds no event file with "epoch": name the directory of a run that has written summaries',
        ),
        (
            ['--runs=a:{tmp}/train:{tmp}/train'],
            '{tmp}/train holds no event file with "Precision @ 1": name the directory of a run that has written summaries',
        ),
        (
            [RUNS, '--plot={tmp}/nowhere/x.svg'],
            'Cannot write {tmp}/nowhere/x.svg (No such file or directory): name a file in an existing directory that can be written to',
        ),
    ],
)
def test_mistake_gets_one_clear_line(tmp_path, args, complaint):
    (tmp_path / 'file').write_text('')
    measured_runs.write_run(tmp_path)
    status, stdout, stderr = programs.call(
        'cifar10_results', *[arg.format(tmp=tmp_path) for arg in args]
    )
    assert stderr == 'cifar10_results.py: error: %s\n' % complaint.format(tmp=tmp_path)
    assert (status, stdout) == (1, '')


@pytest.mark.parametrize(
    'args, complaint',
    [
        ([], '--runs is missing: give NAME:TRAIN_DIR:EVAL_DIR'),
        (['--runs='], r'flag --runs=\[\]: --runs is missing: give .*'),
        ([RUNS, '--plot='], 'flag --plot=: the name of a file is missing'),
        (['--runs=,'], r"flag --runs=\['', ''\]: an empty name" + FORM),
        ([RUNS + ','], r'flag --runs=\[.*\]: an empty name' + FORM),
        (['--runs=a:b'], r"flag --runs=\['a:b'\]: a:b" + FORM),
        (['--runs=:b:c'], 'flag --runs=.*: :b:c' + FORM),
        (['--runs=a::c'], 'flag --runs=.*: a::c' + FORM),
        (['--runs=a:b:'], 'flag --runs=.*: a:b:' + FORM),
        (['--runs=a:with:colon:c'], 'flag --runs=.*: a:with:colon:c' + FORM),
        (['--runs=a:gs://b/c:d'], 'flag --runs=.*: a:gs://b/c:d' + FORM),
        (['--runs=a:b\udcff:c'], r'flag --runs=.*: b\\udcff is not UTF-8, .*'),
        (['--runs=a:b:c\x07'], 'flag --runs=.* has control characters: give another name'),
        (['--runs="a:b:c'], 'flag --runs=.*'),
        (
            [RUNS, '--reach=high'],
            "flag --reach=.*: it must be a list of numbers: could not convert string to float: 'high'",
        ),
        (
            [RUNS, '--at_epochs=1,,2'],
            'flag --at_epochs=.*: it must be a list of numbers: could not convert string to float:.*',
        ),
        (
            [RUNS, '--at_epochs=inf'],
            'flag --at_epochs=.*: it must be a list of numbers from 0 to 1000000000',
        ),
        (
            [RUNS, '--at_epochs=1e400'],
            'flag --at_epochs=.*: it must be a list of numbers from 0 to 1000000000',
        ),
        (
            [RUNS, '--at_epochs=-1'],
            'flag --at_epochs=.*: it must be a list of numbers from 0 to 1000000000',
        ),
        (
            [RUNS, '--at_epochs=nan'],
            'flag --at_epochs=.*: it must be a list of numbers from 0 to 1000000000',
        ),
        ([RUNS, '--reach=0.5,nan'], 'flag --reach=.*: it must be a list of numbers from 0 to 1'),
        ([RUNS, '--reach=1.01'], 'flag --reach=.*: it must be a list of numbers from 0 to 1'),
        (
            [RUNS, '--plot={tmp}'],
            'flag --plot={tmp}: {tmp} is a directory, not a file: name a file',
        ),
        (
            [RUNS, '--plot=gs://bucket/x.svg'],
            'flag --plot=.*: gs://bucket/x.svg is not a place on this machine: give a local path',
        ),
    ],
)
def test_mistake_in_the_command_line(tmp_path, args, complaint):
    measured_runs.write_run(tmp_path)
    status, stdout, stderr = programs.call(
        'cifar10_results', *[arg.format(tmp=tmp_path) for arg in args]
    )
    assert re.fullmatch(
        'cifar10_results.py: error: %s; --help lists the flags\n' % complaint.format(tmp=tmp_path),
        stderr,
    ), stderr
    assert (status, stdout) == (2, '')


@pytest.mark.parametrize('suffix', ['', '.never', '.'])
def test_a_picture_in_an_unknown_format(tmp_path, suffix):
    pytest.importorskip('matplotlib')
    for known in ('.svg', '.PNG'):
        results.check_plot('plot' + known)
    with pytest.raises(
        UserError, match=r'^Cannot draw plot%s: give one of the suffixes (\.\w+, )*\.svg, ' % suffix
    ):
        results.check_plot('plot' + suffix)


@pytest.mark.parametrize('name', ['_a', '\x1b[31mred', 'a\nb', '\u202ea'])
def test_a_name_that_cannot_be_shown(name):
    with pytest.raises(UserError, match=' cannot be the name of a run: ') as error:
        results.parse_run(name + ':a:b')
    assert str(error.value).isprintable()


def test_a_name_in_a_table(tmp_path):
    curve = results.read_curve(measured_runs.write_run(tmp_path))._replace(name='a|b')
    assert results.comparison([curve], [], []).splitlines()[2].startswith(r'| a\|b | 1 |')


def test_a_format_whose_program_is_missing(tmp_path, monkeypatch):
    figure = pytest.importorskip('matplotlib.figure')

    def savefig(*unused, **unused_too):
        raise RuntimeError('xelatex not found; install it\nand so on')

    monkeypatch.setattr(figure.Figure, 'savefig', savefig)
    path = str(tmp_path / 'x.pgf')
    with pytest.raises(
        UserError,
        match=r'^Cannot draw %s \(xelatex not found; install it\): give another suffix' % path,
    ):
        results.plot([results.read_curve(measured_runs.write_run(tmp_path))], path)
    assert not os.path.exists(path)


def test_a_name_in_characters_that_the_font_lacks(tmp_path, capsys):
    pytest.importorskip('matplotlib')
    results.plot(
        [results.read_curve(measured_runs.write_run(tmp_path))._replace(name='\u4e2d')],
        str(tmp_path / 'x.svg'),
    )
    told = capsys.readouterr().err
    assert (
        all(re.fullmatch('[^/ ]+: Glyph .* missing from .*', line) for line in told.splitlines())
        and told.count('\n') > 0
    )


def test_a_name_that_is_not_a_formula(tmp_path):
    """matplotlib takes what is between dollars for one."""
    pytest.importorskip('matplotlib')
    curve = results.read_curve(measured_runs.write_run(tmp_path))._replace(name=r'$\wrong{$')
    results.plot([curve], str(tmp_path / 'plot.svg'))
    assert (tmp_path / 'plot.svg').stat().st_size > 1000


def test_a_run_without_a_step(tmp_path):
    run = measured_runs.write_run(tmp_path)
    measured_runs.write(tmp_path / 'new', epoch={0: 0, 100: 1}, sec_per_batch={0: 0, 200: 1})
    with pytest.raises(
        UserError, match='^%s/new holds no step with both "epoch" and "sec_per_batch": ' % tmp_path
    ):
        results.read_curve(run._replace(train_dir=str(tmp_path / 'new')))


def test_evaluations_count_in_the_order_of_steps(tmp_path):
    """Not in that of the evaluations: the first checkpoint may be evaluated last."""
    measured_runs.write(
        tmp_path / 'train', 0, epoch={100: 1, 200: 2}, sec_per_batch={100: 0.6, 200: 0.6}
    )
    measured_runs.write(tmp_path / 'eval', **{'Precision @ 1': {200: 0.5, 100: 0.25}})
    curve = results.read_curve(
        results.parse_run('name:%s:%s' % (tmp_path / 'train', tmp_path / 'eval'))
    )
    assert curve.precision.tolist() == [0.25, 0.5] and curve.epochs.tolist() == [1, 2]
