"""Any number of classes, from the data directory to each module."""

import numpy as np
import pytest

from cifar10 import input as input_lib
from cifar10.data import dataset
from cifar10.runs import run_record
from tests.helpers import data_sets, messages, queues


@pytest.fixture
def many_dir(tmp_path):
    data_sets.write_cifar100(tmp_path / 'cifar-100-binary')
    return str(tmp_path)


def _labels_of(images, count, seed):
    """Return the fine labels of images [n, 3, 32, 32] of cifar100_rows(count, seed)."""
    rows = data_sets.cifar100_rows(count, seed)
    labels = {row[2:].tobytes(): row[1] for row in rows}
    return [labels[image.tobytes()] for image in images]


def test_labels_of_cifar100_out_of_the_queues(many_dir):
    found = dataset.read(many_dir)
    labels, images = input_lib.shuffled_records(found.train, 400, 50)
    for some_labels, some_images in queues.run([labels, images], 10):
        assert some_labels.tolist() == _labels_of(some_images, 400, 0)
    labels, images = input_lib.undistorted_records(found.test, 60, num_epochs=1)
    values = queues.run([labels, images], 4)
    assert np.concatenate([some_labels for some_labels, _ in values]).tolist() == [
        *range(100),
        *range(100),
    ]
    for some_labels, some_images in values:
        assert some_labels.tolist() == _labels_of(some_images, 200, 1)


def test_a_checkpoint_is_scored_on_its_own_classes(tmp_path):
    """Without names on one side, nothing is compared."""
    run_record.check_classes(str(tmp_path), ['a', 'b'])
    run_record.write(str(tmp_path), run_record.RunRecord(class_names=['a', 'b']))
    run_record.check_classes(str(tmp_path), None)
    with messages.raises(r'was trained on other classes \(a, b\) than .* \(b, a\): '):
        run_record.check_classes(str(tmp_path), ['b', 'a'])
