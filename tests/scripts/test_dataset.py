"""The data set script."""

import os

import pytest

from cifar10.data import dataset, synthetic
from tests.helpers import programs, special_files
from tests.helpers.special_files import deadline  # noqa: F401


def _summary(data_dir):
    return '50000 training and 10000 test examples of %s in %s\n' % (
        ', '.join(synthetic.CLASS_NAMES),
        data_dir / dataset.DIRECTORY,
    )


@pytest.mark.slow
def test_commands(tmp_path):
    args = ['--data_dir=' + str(tmp_path)]
    assert programs.succeed(
        'cifar10_dataset', 'synthetic', *args
    ) == 'Writing the synthetic data set to %s\n%s' % (
        tmp_path / dataset.DIRECTORY,
        _summary(tmp_path),
    )
    for command in ('verify', 'synthetic', 'download'):  # the files exist: nothing is written
        assert programs.call('cifar10_dataset', command, *args) == (0, _summary(tmp_path), '')


def test_download_is_of_cifar10(tmp_path):
    status, _, stderr = programs.call(
        'cifar10_dataset', 'download', '--data_dir=%s' % tmp_path, '--data_url=nowhere'
    )
    assert status == 1 and stderr.startswith('cifar10_dataset.py: error: Cannot download nowhere (')


def test_verify_takes_the_directory_of_the_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, 'DATA_DIR', str(tmp_path / 'drawn'))
    status, _, stderr = programs.call('cifar10_dataset', 'verify', '--dataset=synthetic')
    assert status == 1 and stderr.startswith(
        'cifar10_dataset.py: error: %s/drawn does not exist: ' % tmp_path
    )


def _assert_one_line(run, complaint, *args):
    status, stdout, stderr = run('cifar10_dataset', *args)
    assert (status, stdout) == (1, '') and stderr == 'cifar10_dataset.py: error: %s\n' % complaint


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_what_is_no_file_is_named(own_data_dir, kind):
    path = dataset.read(own_data_dir).train.paths[1]
    os.remove(path)
    special_files.make(path, kind)
    for command in ('verify', 'download'):
        _assert_one_line(
            programs.call,
            '%s is %s, not a file: replace it with a good copy' % (path, kind),
            command,
            '--data_dir=' + own_data_dir,
        )


@pytest.mark.parametrize(
    'run, kind',
    [(programs.call, kind) for kind in special_files.KINDS]
    + [pytest.param(programs.run, 'a FIFO', marks=pytest.mark.slow)],
)
def test_class_names_that_are_no_file(own_data_dir, run, kind):
    """They are not waited for."""
    names = os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE)
    os.remove(names)
    special_files.make(names, kind)
    _assert_one_line(
        run,
        '%s is %s, not a file: correct it, or delete it' % (names, kind),
        'verify',
        '--data_dir=' + own_data_dir,
    )
