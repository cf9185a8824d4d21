"""cifar10_dataset.py."""

import pytest

from cifar10.data import dataset, synthetic
from tests.helpers import programs


def _summary(data_dir):
    return f'50000 training and 10000 test examples of {", ".join(synthetic.CLASS_NAMES)} in {data_dir / dataset.CIFAR10_DIRECTORY}\n'


@pytest.mark.slow
def test_commands(tmp_path):
    args = ['--data_dir=' + str(tmp_path)]
    assert (
        programs.succeed('cifar10_dataset', 'synthetic', *args)
        == f'Writing the synthetic data set to {tmp_path / dataset.CIFAR10_DIRECTORY}\n{_summary(tmp_path)}'
    )
    for command in ('synthetic', 'download'):  # the files exist
        assert programs.call('cifar10_dataset', command, *args) == (0, _summary(tmp_path), '')


def test_info_takes_the_directory_of_the_data_set(tmp_path, monkeypatch):
    monkeypatch.setitem(dataset.DATA_DIRS, 'synthetic', str(tmp_path / 'drawn'))
    status, _, stderr = programs.call('cifar10_dataset', 'info', '--dataset=synthetic')
    assert status == 1 and stderr.startswith(
        f'cifar10_dataset.py: error: There is no such data set in {tmp_path}/drawn: '
    )
