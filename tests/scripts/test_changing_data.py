"""Data files that change while a script reads them."""

import os

import pytest

from cifar10.data import dataset
from tests.helpers import checkpoints, faults, programs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    'script, change, told, saved',
    [
        ('cifar10_multi_gpu_train', os.remove, '{path}', ''),
        ('cifar10_train', lambda path: faults.relabel(path, 255), 'a label is outside 0 to 9', ''),
        (
            'cifar10_train',
            lambda path: os.truncate(path, 7 * 3073 + 100),
            '{path}',
            '/model.ckpt-60\n',
        ),
        ('cifar10_train', os.utime, '', '/model.ckpt-60\n'),
    ],
)
def test_under_a_trainer(tmp_path, data_dir, script, change, told, saved):
    """A cut file is told after the last step; `touch` ends nothing."""
    own = faults.copy(data_dir, tmp_path / 'data')
    path = dataset.read(own).train.paths[2]
    more = [] if saved else ['--max_steps=100000']
    process = programs.start(script, *faults.job(own, tmp_path / 'run', '--max_steps=60', *more))
    faults.read_until(process, ': step 5,')
    change(path)
    status, stdout, stderr = faults.end(process)
    if told:
        faults.assert_one_line(stderr, told.format(path=path))
    assert status == bool(told), stderr
    assert saved in stdout


def test_between_two_evaluations(tmp_path, data_dir):
    """No precision of other examples is printed."""
    checkpoints.save(tmp_path, 1)
    changed = []
    for change in (os.remove, lambda path: os.truncate(path, 30 * 3073)):
        own = faults.copy(data_dir, tmp_path / f'data{len(changed)}')
        process = programs.start(
            'cifar10_eval',
            '--eval_interval_secs=1',
            *faults.evaluation(own, tmp_path, own + '_eval'),
        )
        changed.append((process, change, dataset.read(own).test.paths[0]))
    for process, change, path in changed:
        faults.read_until(process, 'of 50, step 1)')
        change(path)
    checkpoints.save(tmp_path, 2)
    for process, _, path in changed:
        status, stdout, stderr = faults.end(process)
        faults.assert_one_line(stderr, path)
        assert status == 1 and 'precision' not in stdout
