"""Mistakes in the command line, errors and Ctrl-C: one line and the exit status."""

import glob
import io
import os
import platform
import re
import shlex
import shutil
import signal
import sys

import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10.cli import program
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import machine
from tests.helpers import programs

# command line, exit status, line
MISTAKES = [
    ('cifar10_train --batch_size=many', 2, 'flag --batch_size=many: .*; --help lists the flags'),
    ('cifar10_train --contrast=1.1', 2, 'flag --contrast=1.1: .* in the range .*; --help .*'),
    ('cifar10_eval --flagfile={data}/cifar-10-batches-bin/test_batch.bin', 2, "'utf-8' codec .*"),
    # arguments
    ('cifar10_train --max_steps 2 3', 2, "the arguments must be flags only, not '3'; --help .*"),
    ('cifar10_dataset info x', 2, "the arguments must be info, not 'info' 'x'; .*"),
    ("cifar10_dataset convert '' x", 2, "the arguments .* SRC OUT, not 'convert' '' 'x'; .*"),
    ('cifar10_predict', 2, 'the arguments must be IMAGE..., not none; .*'),
    ('cifar10_run', 2, r'the arguments must be PROGRAM \[ITS FLAGS...\], not none; .*'),
    # unknown flags
    ('cifar10_multi_gpu_train --num_gpuss=2', 2, '.* Did you mean: num_gpus .*; --help .*'),
    ('cifar10_launch --mode=async', 2, '.*; the flags of cifar10_distributed_train.py come .*'),
    ('cifar10_run --max_steps=1', 2, '.*; the flags of the program come after its name; .*'),
    # directories and files
    ('cifar10_train --data_dir={tmp}/damaged', 1, '.*_batch_2.bin has an incomplete record: .*'),
    ('cifar10_train --data_dir={tmp}/file', 2, 'flag .*: {tmp}/file is not a directory: .*'),
    ('cifar10_dataset download --data_dir=', 2, 'flag --data_dir=: the name is missing; .*'),
    (
        'cifar10_distributed_train --worker_hosts=a:1 --job_name=worker --task_index=1',
        1,
        'There is no worker 1: the number of worker addresses is 1, .*',
    ),
    ('cifar10_eval --data_dir={data} --checkpoint_dir={tmp} --run_once', 1, 'There is no ch.*'),
    ('cifar10_train --train_dir={tmp}/file', 2, '.*; --init_checkpoint takes a checkpoint; .*'),
    ('cifar10_predict x --checkpoint_dir={tmp}/file', 2, '.*; --checkpoint takes a checkpoint; .*'),
    (
        'cifar10_dataset info --data_dir={tmp}/no',
        1,
        'There is no such data set in {tmp}/no: make it .*',
    ),
    ('cifar10_export --checkpoint_dir={tmp}/no', 1, '{tmp}/no does not exist: train first, .*'),
    (
        'cifar10_dataset info --data_dir={data} --dataset=cifar100',
        1,
        'There is no such data set in .*',
    ),
    ('cifar10_train --data_dir={tmp}/link --train_dir={tmp}/damaged', 1, '.* also --data_dir, .*'),
    ('cifar10_train --data_dir={tmp}/no/data', 1, '{tmp}/no does not exist: make it, or give .*'),
]


@pytest.fixture
def places(tmp_path, data_dir):
    """A file, a damaged data set and a link to it."""
    (tmp_path / 'link').symlink_to('damaged')
    (tmp_path / 'file').write_text('')
    shutil.copytree(data_dir, str(tmp_path / 'damaged'))
    with open(dataset.read(str(tmp_path / 'damaged')).train.paths[1], 'ab') as damaged:
        damaged.write(b'x')
    return {'tmp': str(tmp_path), 'data': data_dir}


@pytest.mark.parametrize('mistake', MISTAKES, ids=lambda mistake: mistake[0][:60])
def test_a_mistake_gives_one_line(places, mistake):
    line, status, complaint = mistake
    script, *args = shlex.split(line.format(**places))
    before = sorted(glob.glob(places['tmp'] + '/**', recursive=True))
    found, _, stderr = programs.call(script, *args)
    told = rf'{script}.py: error: {complaint.format(**places)}\n'
    assert re.fullmatch(told, stderr) and found == status, stderr
    assert sorted(glob.glob(places['tmp'] + '/**', recursive=True)) == before


def test_help_has_a_short_name():
    assert programs.call('cifar10_train', '-h') == programs.call('cifar10_train', '--help')


@pytest.fixture
def ends(monkeypatch):
    """Calls a main function; returns the exit status."""
    monkeypatch.setattr('sys.argv', ['/somewhere/program.py'])
    monkeypatch.setattr('os._exit', sys.exit)

    def ends(main):
        with pytest.raises(SystemExit) as end:
            program._call(main, [])
        return end.value.code

    return ends


def _raise(error):
    raise error


NO_MEMORY = 'error: full: not enough memory or disk space: choose a smaller --batch_size, or free some space'


@pytest.mark.parametrize(
    'error, status, line',
    [
        (UserError('bad'), 1, 'error: bad'),
        (UserError('/{a}: set --seed=1'), 1, 'error: /{a}: set --seed=1'),
        (PermissionError(13, 'denied', '/x'), 1, "error: [Errno 13] denied: '/x'"),
        (tf.errors.ResourceExhaustedError(None, None, 'full'), 1, NO_MEMORY),
        (tf.errors.NotFoundError(None, None, 'gone'), 1, 'error: gone'),
        (tf.errors.PermissionDeniedError(None, None, 'denied'), 1, 'error: denied'),
        (tf.errors.DataLossError(None, None, 'damaged'), 1, 'error: damaged'),
        (KeyboardInterrupt(signal.SIGINT), 130, 'interrupted (SIGINT)'),
        (KeyboardInterrupt(signal.SIGTERM), 143, 'interrupted (SIGTERM)'),
    ],
)
def test_errors_that_give_one_line(capsys, ends, error, status, line):
    assert ends(lambda: _raise(error)) == status
    assert capsys.readouterr() == ('', f'program.py: {line}\n')


@pytest.mark.parametrize(
    'error', [ZeroDivisionError(), tf.errors.InvalidArgumentError(None, None, 'shapes')]
)
def test_a_bug_keeps_its_traceback(error):
    with pytest.raises(type(error)):
        program._call(lambda: _raise(error), [])


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='this system has no full device')
def test_a_full_disk_of_the_standard_output(monkeypatch, capsys, ends):
    with open('/dev/full', 'wb', buffering=0) as full:
        monkeypatch.setattr(sys, 'stdout', io.TextIOWrapper(full, write_through=True))
        assert ends(lambda: print('lost')) == 1
    assert capsys.readouterr().err == 'program.py: error: [Errno 28] No space left on device\n'


def test_ctrl_c_under_another_error(ends):
    """TensorFlow's context managers may raise another error after an interrupt."""

    def interrupted():
        try:
            raise KeyboardInterrupt(signal.SIGINT)
        finally:
            raise ValueError

    assert ends(interrupted) == 130


def test_the_versions(monkeypatch):
    monkeypatch.setattr(machine, 'num_cores', lambda: 3)
    monkeypatch.setattr(machine, 'cpu_name', lambda: 'Some Processor')
    monkeypatch.setattr(
        machine, 'gpu_names', lambda config: ['Some GPU'] if config == 'config' else []
    )
    told = f'cifar10 {cifar10.__version__}, Python {platform.python_version()}, TensorFlow {tf.__version__}; Some Processor (cores: 3)'
    assert program.versions('config') == told + ', Some GPU'
    assert programs.call('cifar10_train', '--version') == (0, told + '\n', '')


@pytest.mark.parametrize(
    'command, gpus',
    [
        ('cifar10_dataset info', '-1'),
        ('cifar10_dataset convert images out', '-1'),
        ('cifar10_predict --checkpoint_dir={runs}/classic x.png', '-1'),
        ('cifar10_export --checkpoint_dir={runs}/classic', '-1'),
        ('cifar10_eval --dataset=synthetic --checkpoint_dir={runs}/classic --run_once', '-1'),
        (
            'cifar10_eval --dataset=synthetic --checkpoint_dir={runs}/classic --run_once --use_gpu',
            '0,1',
        ),
        ('cifar10_train', '0,1'),
        ('cifar10_benchmark step', '0,1'),
    ],
)
def test_only_scripts_that_compute_on_gpus_see_them(monkeypatch, runs, command, gpus):
    """TensorFlow reads the variable when it first looks for GPUs, after the start of `main`."""
    seen = []
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0,1')
    monkeypatch.setattr(
        program, '_call', lambda *unused: seen.append(os.environ['CUDA_VISIBLE_DEVICES'])
    )
    programs.call(*command.format(runs=runs).split())
    assert seen == [gpus]
