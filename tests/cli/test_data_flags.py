"""The data set of the flags against that of a run, before a download."""

import pytest

from cifar10.data import catalog, dataset, preparation, synthetic
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
    monkeypatch.setattr(dataset, 'DATA_DIRS', {name: str(tmp_path / name) for name in names})
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


# data of the run, --dataset; whether the data are made
@pytest.mark.parametrize(
    'data, given, is_made',
    [
        ('synthetic', None, False),
        ('synthetic', 'synthetic', True),
        ('cifar100', None, False),
        ('cifar100', 'cifar100', True),
        ('cifar10', None, True),
        (OWN, None, False),
    ],
)
def test_the_data_of_a_run(tmp_path, data, given, is_made):
    """CIFAR-10 is not downloaded for a run on other classes."""
    run = tmp_path / 'run'
    path = _write_run(run, data)
    flag = [f'--dataset={given}'] if given else []
    for script, *args in [
        ('cifar10_eval', f'--checkpoint_dir={run}'),
        ('cifar10_eval', f'--checkpoint={path}.index'),
        ('cifar10_train', f'--train_dir={run}'),
    ]:
        status, _, stderr = programs.call(script, *args, *flag)
        other = f'error: The run in {run} was trained on other classes '
        assert status == 1 and ('error: it would be made' if is_made else other) in stderr
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


@pytest.mark.parametrize('name', ['cifar10', 'cifar100'])
def test_an_archive_as_the_data_dir(tmp_path, name):
    """Both data sets may be beside it."""
    data_sets.write_cifar100(tmp_path / 'cifar-100-binary')
    data_sets.write(tmp_path)
    published = catalog.PUBLISHED[name]
    for archive in published.archives:
        status, stdout, stderr = programs.call(
            'cifar10_dataset', 'info', f'--data_dir={tmp_path}/{archive.name}'
        )
        assert (status, stderr) == (0, '')
        assert stdout.endswith(f' in {tmp_path}/{published.directory}\n')


def test_a_run_whose_data_are_still_in_their_archive(tmp_path):
    """A given --data_dir decides, not its binary files."""
    _write_run(tmp_path / 'run', 'cifar100')
    args = [f'--train_dir={tmp_path}/run', f'--data_dir={tmp_path}/new']
    status, _, stderr = programs.call('cifar10_train', *args)
    assert (status, stderr) == (1, 'cifar10_train.py: error: it would be made\n')
