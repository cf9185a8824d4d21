"""Output directories and files that vanish during a run."""

import glob
import os
import shutil

import pytest

from cifar10.runs import checkpoint
from tests.helpers import faults, observed, programs

pytestmark = pytest.mark.slow


def _move(path):
    os.rename(path, path + '.moved')


def _remove(path):
    _move(path)  # atomically: the script may be writing
    shutil.rmtree(path + '.moved')


def test_the_train_dir_vanishes(tmp_path, data_dir):
    faults_of = [('cifar10_train', _move), ('cifar10_multi_gpu_train', _remove)]
    directories = [str(tmp_path / script) for script, _ in faults_of]
    gate = str(tmp_path / 'gate')  # TensorFlow can recreate the directory during a save.
    observed.write(gate, 6)
    processes = [
        programs.start(
            script,
            *faults.job(
                data_dir, directory, '--save_checkpoint_steps=5', '--save_summaries_steps=5'
            ),
            observation=dict(gate=gate),
        )
        for (script, _), directory in zip(faults_of, directories)
    ]
    for (_, vanish), directory, process in zip(faults_of, directories, processes):
        faults.read_until(process, 'Blocked at step 6')
        vanish(directory)
    observed.write(gate, 10**9)
    for directory, process in zip(directories, processes):
        status, stdout, stderr = faults.end(process)
        faults.assert_one_line(stderr, directory)
        assert status == 1 and 'Saved' not in stdout
        assert not os.path.exists(directory)
    moved = checkpoint.read_latest(directories[0] + '.moved')
    assert moved.step == 5
    assert glob.glob(directories[0] + '.moved/*temp*') == []
