"""Data files that change while a script reads them."""

import os

import pytest

from cifar10.data import dataset
from tests.helpers import checkpoints, faults, programs

pytestmark = pytest.mark.slow


def _cut(path):
    os.truncate(path, 7 * 3073 + 100)


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
