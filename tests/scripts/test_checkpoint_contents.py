"""What checkpoints, their list and the record of a run hold, and what lies in the directory beside
them."""

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
        'cifar10_train', *faults.job(data_dir, directory, '--max_steps=2', '--checkpoint_steps=1')
    )
    assert (status, stderr) == (0, '')
    return directory


@pytest.fixture
def run(trained, tmp_path):
    """A copy of it for one test."""
    return faults.copy(trained, tmp_path / 'run')


def _train(data_dir, run, max_steps=1):
    """Resumes the run; it has nothing to do if it is at this step."""
    return programs.call('cifar10_train', *faults.job(data_dir, run, '--max_steps=%d' % max_steps))


def _evaluate(data_dir, run):
    return programs.call(
        'cifar10_eval',
        '--run_once',
        '--num_examples=1',
        *faults.evaluation(data_dir, run, run + '.eval'),
    )


SCRIPTS = pytest.mark.parametrize('script', [_train, _evaluate])


def _used(stdout, step):
    return 'model.ckpt-%d, step %d\n' % (step, step) in stdout or 'step %d), ' % step in stdout


def _break_the_last(trained, run, step):
    faults.save_with(str(trained / 'model.ckpt-2'), run + '/model.ckpt-2', global_step=step)


@pytest.mark.parametrize('step', [np.array([1, 2]), -5])
def test_a_bad_step_in_the_only_checkpoint(trained, run, data_dir, step):
    for name in os.listdir(run):
        if name.startswith('model.ckpt-1'):
            os.remove(os.path.join(run, name))
    with open(run + '/checkpoint', 'w') as listing:
        listing.write('model_checkpoint_path: "model.ckpt-2"\n')
    _break_the_last(trained, run, step)
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
@pytest.mark.parametrize('content', [None, b'\0\xff\x80' * 50])
def test_a_damaged_list(run, data_dir, content, script):
    os.remove(run + '/checkpoint')
    if content is not None:
        with open(run + '/checkpoint', 'wb') as listing:
            listing.write(content)
    _assert_newest_is_used(run, *script(data_dir, run))


def _assert_newest_is_used(run, status, stdout, stderr):
    assert status == 0 and _used(stdout, 2), stderr
    assert len(stderr.splitlines()) <= 1 and run + '/checkpoint' in stdout + stderr


@SCRIPTS
def test_a_list_that_is_no_file(run, data_dir, script):
    """The newest checkpoint is used, or one line says why not."""

    def check(kind):
        status, stdout, stderr = script(data_dir, run)
        if status == 1:
            faults.assert_one_line(stderr, run + '/checkpoint', kind)
        else:
            _assert_newest_is_used(run, status, stdout, stderr)

    with faults.fifo(run + '/checkpoint'):
        check('FIFO')
    os.mkdir(run + '/checkpoint')
    check('directory')


@SCRIPTS
def test_a_checkpoint_that_is_no_file(run, data_dir, script):
    with faults.fifo(run + '/model.ckpt-2.index'):
        status, stdout, stderr = script(data_dir, run)
        assert 'model.ckpt-2' in stdout + stderr and len(stderr.splitlines()) <= 1
        assert status == 1 or status == 0 and _used(stdout, 1)


@pytest.mark.parametrize('change', [{'contrast': 10**400}, {'contrast': -1}])
def test_a_damaged_record(run, data_dir, change):
    path = os.path.join(run, RECORD)
    with open(path) as opened:
        record = json.load(opened)
    with open(path, 'w') as opened:
        json.dump(dict(record, **change), opened)
    before = faults.snapshot(run)
    for script in (_train, _evaluate):
        status, stdout, stderr = script(data_dir, run)
        faults.assert_one_line(stderr, path, 'damaged')
        assert status == 1 and 'precision' not in stdout and len(stderr) < 1000
    assert faults.snapshot(run) == before


@SCRIPTS
def test_a_record_that_is_no_file(run, data_dir, script):
    path = os.path.join(run, RECORD)
    with faults.fifo(path):
        status, _, stderr = script(data_dir, run)
        faults.assert_one_line(stderr, path)
        assert status == 1
    os.mkdir(path)
    status, _, stderr = script(data_dir, run)
    faults.assert_one_line(stderr, path)
    assert status == 1
