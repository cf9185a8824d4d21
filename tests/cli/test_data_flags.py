"""The data set of the flags against that of a run, before a download."""

import pytest

from cifar10.cli import data_flags
from cifar10.data import dataset, preparation, synthetic
from cifar10.errors import UserError
from cifar10.runs import run_record
from tests.helpers import checkpoints, data_sets, programs

OWN = 'own images'


@pytest.fixture(autouse=True)
def default_dirs(tmp_path, monkeypatch):
    """Default directories without data; a download or a generation is an error."""

    def fail(*unused, **unused_too):
        raise UserError('it would be made')

    names = 'cifar10', 'cifar100', 'synthetic'
    monkeypatch.setattr(
        data_flags, '_DEFAULT_DATA_DIRS', {name: str(tmp_path / name) for name in names}
    )
    monkeypatch.setattr(preparation, 'prepare', fail)
    monkeypatch.setattr(synthetic, 'maybe_write', fail)


def _write_run(directory, data):
    """Write the record and a checkpoint of a run on a data set."""
    path, _ = checkpoints.save(directory, 1)
    names = {
        'cifar10': dataset.CLASS_NAMES,
        'cifar100': [f'fine_{i}' for i in range(100)],
        'synthetic': synthetic.CLASS_NAMES,
        OWN: ['cat', 'dog'],
    }[data]
    recorded = 'cifar10' if data == OWN else data
    record = run_record.RunRecord(class_names=names, dataset=recorded, last_step=2)
    run_record.write(str(directory), record)
    return path


# data of the run, --dataset, flag that the message names; None if the data are made
@pytest.mark.parametrize(
    'data, given, remedy',
    [
        ('synthetic', None, '--dataset=synthetic'),
        ('synthetic', 'cifar10', '--dataset=synthetic'),
        ('synthetic', 'cifar100', '--dataset=synthetic'),
        ('synthetic', 'synthetic', None),
        ('cifar100', None, '--dataset=cifar100'),
        ('cifar100', 'cifar100', None),
        ('cifar10', None, None),
        ('cifar10', 'cifar10', None),
        ('cifar10', 'cifar100', 'give --data_dir of its data, or '),
        (OWN, None, 'give --data_dir of its data, or '),
        (OWN, 'cifar100', 'give --data_dir of its data, or '),
    ],
)
def test_the_data_of_a_run(tmp_path, data, given, remedy):
    run = tmp_path / 'run'
    path = _write_run(run, data)
    flag = [f'--dataset={given}'] if given else []
    for script, *args in [
        ('cifar10_eval', f'--checkpoint_dir={run}'),
        ('cifar10_eval', f'--checkpoint={path}.index'),
        ('cifar10_train', f'--train_dir={run}'),
        ('cifar10_multi_gpu_train', f'--train_dir={run}'),
    ]:
        status, _, stderr = programs.call(script, *args, *flag)
        expected = f'error: The run in {run} was trained ' if remedy else 'error: it would be made'
        assert status == 1 and expected in stderr and (remedy or '') in stderr
    status, _, stderr = programs.call('cifar10_train', '--fresh', f'--train_dir={run}', *flag)
    assert (status, stderr) == (1, 'cifar10_train.py: error: it would be made\n')


@pytest.mark.parametrize('place', ['--data_dir', 'default'])
def test_present_data_of_the_run(tmp_path, place):
    """Without --dataset, the content of the directory counts."""
    _write_run(tmp_path / 'run', 'synthetic')
    directory = data_sets.write(tmp_path / ('cifar10' if place == 'default' else 'data'))
    status, stdout, stderr = programs.call(
        'cifar10_eval',
        '--run_once',
        f'--checkpoint_dir={tmp_path}/run',
        f'--eval_dir={tmp_path}/eval',
        *([] if place == 'default' else [f'--data_dir={directory}']),
    )
    assert (status, stderr) == (0, '') and ' of 50, step 1)' in stdout
