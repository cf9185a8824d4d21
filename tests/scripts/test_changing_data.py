"""Data files that change while a script reads them, and special files in their place."""

import os
import shutil

import pytest

from cifar10.data import dataset
from cifar10.runs import checkpoint
from tests.helpers import checkpoints, faults, programs


def _empty(path):
    os.truncate(path, 0)


def _cut_a_record(path):
    os.truncate(path, 7 * 3073 + 100)


def _drop_records(path):
    os.truncate(path, 30 * 3073)


def _label(value):
    return lambda path: faults.relabel(path, value)


def _put_directory(path):
    os.remove(path)
    os.mkdir(path)


def _put_fifos(path):
    for other in dataset.read(os.path.dirname(path)).train.paths:
        faults.put_fifo(other)


@pytest.mark.slow
@pytest.mark.parametrize(
    'script, changes',
    [
        ('cifar10_train', [_empty, _label(255)]),
        ('cifar10_multi_gpu_train', [_put_fifos, os.remove]),
        pytest.param('cifar10_train', [_cut_a_record, _drop_records], marks=pytest.mark.long),
        pytest.param(
            'cifar10_multi_gpu_train', [faults.put_fifo, _put_directory], marks=pytest.mark.long
        ),
    ],
)
def test_under_a_trainer(tmp_path, data_dir, script, changes):
    """The trainer names the file, saves, and ends."""
    runs = []
    for index, change in enumerate(changes):
        own = faults.copy(data_dir, tmp_path / (f'data{index}'))
        process = programs.start(script, *faults.job(own, tmp_path / str(index)))
        runs.append((process, change, dataset.read(own).train.paths[2], tmp_path / str(index)))
    for process, change, path, _ in runs:
        faults.read_until(process, ': step 5,')
        change(path)
    for process, change, path, train_dir in runs:
        status, stdout, stderr = faults.end(process)
        faults.assert_one_line(stderr, os.path.dirname(path) if change is _put_fifos else path)
        assert status == 1, change
        saved = checkpoint.read_latest(str(train_dir))
        assert saved.step >= 5 and f'Saved {saved.path}\n' in stdout, change


@pytest.mark.slow
def test_between_two_evaluations(tmp_path, own_data_dir):
    """No precision of other examples is printed; test_evaluation has other changes."""
    checkpoints.save(tmp_path, 1)
    process = programs.start(
        'cifar10_eval',
        '--eval_interval_secs=1',
        *faults.evaluation(own_data_dir, tmp_path, tmp_path / 'eval'),
    )
    faults.read_until(process, 'of 50, step 1)')
    (path,) = dataset.read(own_data_dir).test.paths
    faults.put_fifo(path)
    checkpoints.save(tmp_path, 2)
    status, stdout, stderr = faults.end(process)
    faults.assert_one_line(stderr, path)
    assert status == 1 and 'precision' not in stdout


@pytest.mark.parametrize('script', ['cifar10_train', 'cifar10_eval'])
def test_special_files_at_the_start(tmp_path, data_dir, own_data_dir, script):
    """The script names the kind of file at once."""
    checkpoints.save(tmp_path, 1)
    args, paths = (
        faults.evaluation(own_data_dir, tmp_path, tmp_path / 'eval', '--run_once'),
        dataset.read(own_data_dir).test.paths,
    )
    if script == 'cifar10_train':
        args, paths = (
            faults.job(own_data_dir, tmp_path / 'run', '--max_steps=1'),
            dataset.read(own_data_dir).train.paths,
        )
    for path in [paths[-1], os.path.join(os.path.dirname(paths[-1]), dataset.CLASS_NAMES_FILE)]:
        os.remove(path)
        with faults.fifo(path):
            status, _, stderr = programs.call(script, *args)
            faults.assert_one_line(stderr, path, 'FIFO')
            assert status == 1
        shutil.copy(os.path.join(dataset.files_dir(data_dir), os.path.basename(path)), path)
