"""Data files that change while a script reads them."""

import os
import re

import pytest

from cifar10.data import dataset
from tests.helpers import checkpoints, faults, programs

pytestmark = pytest.mark.slow


def _cut(path):
    os.truncate(path, 7 * 3073 + 100)


@pytest.mark.parametrize(
    'script, last_step, change, told',
    [
        ('cifar10_multi_gpu_train', 10**6, os.remove, '{}'),
        ('cifar10_train', 10**6, lambda path: faults.relabel(path, 255), 'a label is outside'),
        ('cifar10_train', 60, _cut, '{}'),
        ('cifar10_train', 60, os.utime, None),
    ],
)
def test_under_a_trainer(tmp_path, data_dir, script, last_step, change, told):
    """A cut file is told after the last step; `touch` ends nothing."""
    own = faults.copy(data_dir, tmp_path / 'data')
    path = dataset.read(own).train.paths[2]
    process = programs.start(script, *faults.job(own, tmp_path / 'run', f'--max_steps={last_step}'))
    faults.read_until(process, ': step 5,')
    change(path)
    status, stdout, stderr = faults.end(process)
    assert status == (1 if told else 0), stderr
    if told:
        faults.assert_one_line(stderr, told.format(path))
    saved_step = int(re.findall(r'^Saved .*/model\.ckpt-(\d+)$', stdout, re.MULTILINE)[-1])
    assert saved_step == last_step if last_step == 60 else saved_step < last_step


def test_between_two_evaluations(tmp_path, data_dir):
    """No precision of other examples is printed."""
    checkpoints.save(tmp_path, 1)
    changed = []
    for change in (os.remove, _cut):
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
