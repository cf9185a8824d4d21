"""The data set script."""
import pytest

from cifar10.data import dataset, synthetic
from tests.helpers import programs


def _summary(data_dir):
    return '50000 training and 10000 test examples of %s in %s\n' % (', '.join(synthetic.CLASS_NAMES), data_dir)


@pytest.mark.slow
def test_commands(tmp_path):
    args = ['--data_dir=' + str(tmp_path)]
    assert programs.succeed('cifar10_dataset', 'synthetic', *args) == 'Writing the synthetic data set to %s\n%s' % (
        tmp_path / dataset.DIRECTORY, _summary(tmp_path))
    for command in ('verify', 'synthetic', 'download'):  # the files exist: nothing is written
        assert programs.call('cifar10_dataset', command, *args) == (0, _summary(tmp_path), '')


def test_download_is_of_cifar10(tmp_path):
    status, _, stderr = programs.call('cifar10_dataset', 'download', '--data_dir=%s' % tmp_path, '--data_url=nowhere')
    assert status == 1 and stderr.startswith('cifar10_dataset.py: error: Cannot download nowhere (')


def test_verify_takes_the_directory_of_the_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, 'DATA_DIR', str(tmp_path / 'drawn'))
    status, _, stderr = programs.call('cifar10_dataset', 'verify', '--dataset=synthetic')
    assert status == 1 and stderr.startswith('cifar10_dataset.py: error: %s/drawn/' % tmp_path)
