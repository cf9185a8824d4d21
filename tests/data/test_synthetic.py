"""The synthetic data set."""

import os

import numpy as np
import pytest

from cifar10.data import dataset, synthetic
from cifar10.errors import UserError


def test_balanced_and_written_once(tmp_path, capsys):
    synthetic.maybe_write(str(tmp_path), records_per_file=30)
    assert (
        capsys.readouterr().out
        == f'Writing the synthetic data set to {tmp_path / dataset.CIFAR10_DIRECTORY}\n'
    )
    for path in dataset.read(str(tmp_path)).train.paths + dataset.read(str(tmp_path)).test.paths:
        labels = np.fromfile(path, np.uint8).reshape(-1, 3073)[:, 0]
        assert np.bincount(labels).tolist() == [3] * 10
        assert labels.tolist() != sorted(labels)
    before = os.stat(path).st_mtime_ns
    synthetic.maybe_write(str(tmp_path), records_per_file=20)
    assert os.stat(path).st_mtime_ns == before and 'Writing' not in capsys.readouterr().out
    assert dataset.read(str(tmp_path)).class_names == synthetic.CLASS_NAMES


def test_another_set_is_not_replaced(own_data_dir):
    names = os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY, dataset.CLASS_NAMES_FILE)
    with open(names, 'w') as other:
        other.write('\n'.join(dataset.CLASS_NAMES))
    with pytest.raises(
        UserError, match=f'{os.path.dirname(names)} holds a data set that is not synthetic'
    ):
        synthetic.maybe_write(own_data_dir)


def test_the_seed_gives_the_images(tmp_path):
    for name, seed in [('first', 1), ('again', 1), ('other', 2)]:
        synthetic.maybe_write(str(tmp_path / name), records_per_file=10, seed=seed)
    contents = {}
    for name in ('first', 'again', 'other'):
        paths = (
            dataset.read(str(tmp_path / name)).train.paths
            + dataset.read(str(tmp_path / name)).test.paths
        )
        contents[name] = [np.fromfile(path, np.uint8).tobytes() for path in paths]
    assert contents['first'] == contents['again']
    assert len(set(contents['first'] + contents['other'])) == 12
