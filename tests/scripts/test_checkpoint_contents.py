"""Damaged checkpoints and records."""

import json
import os

import numpy as np
import pytest

from tests.helpers import faults, programs

RECORD = 'run.json'


@pytest.fixture(scope='module')
def trained(tmp_path_factory, data_dir):
    """A run with the checkpoints of steps 1 and 2."""
    directory = tmp_path_factory.mktemp('trained') / 'run'
    status, _, stderr = programs.call(
        'cifar10_train',
        *faults.job(data_dir, directory, '--max_steps=2', '--save_checkpoint_steps=1'),
    )
    assert (status, stderr) == (0, '')
    return directory


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the run for one test."""
    return faults.copy(trained, tmp_path / 'run')


def _train(data_dir, run, max_steps=1):
    """Resume the run; at this step it is complete."""
    return programs.call('cifar10_train', *faults.job(data_dir, run, f'--max_steps={max_steps}'))


def _evaluate(data_dir, run):
    return programs.call(
        'cifar10_eval',
        '--run_once',
        '--num_examples=1',
        *faults.evaluation(data_dir, run, run + '.eval'),
    )


SCRIPTS = pytest.mark.parametrize('script', [_train, _evaluate])


def _used(stdout, step):
    return f'model.ckpt-{step}, step {step}\n' in stdout or f'step {step}), ' in stdout


def _break_the_last(trained, run, step):
    faults.save_with(str(trained / 'model.ckpt-2'), run + '/model.ckpt-2', global_step=step)


def test_a_bad_step_in_the_only_checkpoint(trained, run, data_dir):
    for name in os.listdir(run):
        if name.startswith('model.ckpt-1'):
            os.remove(os.path.join(run, name))
    with open(run + '/checkpoint', 'w') as listing:
        listing.write('model_checkpoint_path: "model.ckpt-2"\n')
    _break_the_last(trained, run, -5)
    before = faults.snapshot(run)
    for script in (_train, _evaluate):
        status, stdout, stderr = script(data_dir, run)
        faults.assert_one_line(stderr, 'damaged', run + '/model.ckpt-2')
        assert status == 1 and 'precision' not in stdout
    assert faults.snapshot(run) == before


@SCRIPTS
def test_an_older_checkpoint_is_used_instead(trained, run, data_dir, script):
    _break_the_last(trained, run, np.float32('nan'))
    status, stdout, stderr = script(data_dir, run)
    assert status == 0 and _used(stdout, 1)
    assert len(stderr.splitlines()) <= 1
    (said,) = [line for line in (stdout + stderr).splitlines() if 'damaged' in line]
    assert run + '/model.ckpt-2' in said and 'model.ckpt-1' in stdout + stderr


@SCRIPTS
def test_a_checkpoint_that_is_no_file(run, data_dir, script):
    with faults.fifo(run + '/model.ckpt-2.index'):
        status, stdout, stderr = script(data_dir, run)
        assert 'model.ckpt-2' in stdout + stderr and len(stderr.splitlines()) <= 1
        assert status == 1 or status == 0 and _used(stdout, 1)


def test_a_damaged_record(run, data_dir):
    path = os.path.join(run, RECORD)
    with open(path) as opened:
        record = json.load(opened)
    with open(path, 'w') as opened:
        json.dump(dict(record, contrast=10**400), opened)
    before = faults.snapshot(run)
    for script in (_train, _evaluate):
        status, stdout, stderr = script(data_dir, run)
        faults.assert_one_line(stderr, path, 'damaged')
        assert status == 1 and 'precision' not in stdout and len(stderr) < 1000
    assert faults.snapshot(run) == before
