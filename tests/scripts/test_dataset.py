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
