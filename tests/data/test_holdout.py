"""Training images held out for the test."""

import json
import os

import numpy as np
import pytest

from cifar10.data import dataset, holdout, verification, writing
from cifar10.errors import UserError
from tests.helpers import oracle


def _multiset(paths, record_bytes=3073):
    rows = np.concatenate([np.fromfile(path, np.uint8) for path in paths]).reshape(-1, record_bytes)
    return [row.tobytes() for row in rows]


def test_training_images_are_divided_by_class(tmp_path, data_dir):
    """The source has 300 training images, 30 of each class, and 50 test images, which are not
    looked at."""
    source = dataset.read(data_dir)
    holdout.hold_out(source, str(tmp_path / 'out'), 50, seed=0)
    found = dataset.read(str(tmp_path / 'out'))
    assert found.class_names == source.class_names
    assert np.bincount(oracle.read_records(found.test.paths)[0]).tolist() == [5] * 10
    assert np.bincount(oracle.read_records(found.train.paths)[0]).tolist() == [25] * 10
    train, test, before = (
        _multiset(records.paths) for records in (found.train, found.test, source.train)
    )
    assert sorted(train + test) == sorted(before)
    assert train == [row for row in before if row in set(train)]  # their order stays
    assert [
        verification.verify(found.train._replace(files=[file])) for file in found.train.files
    ] == [50] * 5
    with open(str(tmp_path / 'out' / 'dataset.json')) as opened:
        assert (
            json.load(opened)['origin']
            == 'the training images of %s, held out with --examples=50 --seed=0' % source.directory
        )


def test_the_seed_chooses(tmp_path, data_dir):
    chosen = []
    for name, seed in [('a', 1), ('b', 1), ('c', 2)]:
        holdout.hold_out(dataset.read(data_dir), str(tmp_path / name), 20, seed)
        chosen.append(_multiset(dataset.read(str(tmp_path / name)).test.paths))
    assert chosen[0] == chosen[1] and set(chosen[0]) != set(chosen[2])


@pytest.mark.parametrize(
    'counts, total, quotas',
    [
        ([10, 10], 4, [2, 2]),
        ([10, 10], 5, [3, 2]),
        ([30, 10, 20], 6, [3, 1, 2]),
        ([7, 5, 3], 4, [2, 1, 1]),
        ([9, 1], 1, [1, 0]),
        ([1, 1, 9], 5, [0, 0, 5]),
        ([2, 2, 4], 5, [1, 1, 3]),
        ([0, 5], 4, [0, 4]),
        ([10**9, 10**9 + 1], 10**9, [500000000, 500000000]),
    ],
)
def test_the_quotas(counts, total, quotas):
    assert holdout.divide(np.array(counts), total).tolist() == quotas


@pytest.mark.parametrize(
    'num_examples, complaint',
    [
        (5000, '^--examples=5000 leaves a class without an image for training: give at most 290$'),
        (291, '^--examples=291 leaves a class without an image for training: give at most 290$'),
    ],
)
def test_too_many(tmp_path, data_dir, num_examples, complaint):
    with pytest.raises(UserError, match=complaint):
        holdout.hold_out(dataset.read(data_dir), str(tmp_path / 'out'), num_examples, 0)
    assert os.listdir(str(tmp_path)) == []
    holdout.hold_out(dataset.read(data_dir), str(tmp_path / 'out'), 290, 0)
    assert verification.count_labels(dataset.read(str(tmp_path / 'out')).train).tolist() == [1] * 10


def _two_byte_set(directory, num_classes=300):
    """A data set with two images of each class, the second one with its label in its first two
    pixels."""
    names = ['class %d' % i for i in range(num_classes)]
    labels = np.arange(num_classes).repeat(2)
    images = np.zeros([len(labels), 3, 32, 32], np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1], images[1::2, 1] = labels // 256, labels % 256, 9
    written = []
    with writing.new_data_set(directory) as new:
        for files in (dataset.TRAIN_FILES, dataset.TEST_FILES):
            writer = writing.Writer(new, files, len(labels), 2)
            writer.add(labels, images)
            written.append(writer.close())
        writing.describe(new, names, *written, origin='a test')
    return dataset.read(directory)


def test_two_label_bytes(tmp_path):
    holdout.hold_out(_two_byte_set(str(tmp_path / 'source')), str(tmp_path / 'out'), 300, 0)
    found = dataset.read(str(tmp_path / 'out'))
    for records in (found.train, found.test):
        rows = np.concatenate([np.fromfile(path, np.uint8) for path in records.paths]).reshape(
            -1, 3074
        )
        np.testing.assert_array_equal(rows[:, :2], rows[:, 2:4])
        assert verification.count_labels(records).tolist() == [1] * 300


def test_one_kind_of_the_labels_of_cifar100(tmp_path):
    """Coarse and fine are divided as what they are; the new set has only these."""
    directory = tmp_path / 'cifar-100-binary'
    directory.mkdir()
    for name, count in [('train.bin', 400), ('test.bin', 100)]:
        rows = np.random.RandomState(0).randint(0, 256, [count, 3074]).astype(np.uint8)
        rows[:, 1] = np.arange(count) % 100
        rows[:, 0] = rows[:, 1] // 5
        rows.tofile(str(directory / name))
    (directory / 'fine_label_names.txt').write_text('\n'.join('f%d' % i for i in range(100)))
    (directory / 'coarse_label_names.txt').write_text('\n'.join('c%d' % i for i in range(20)))
    for label, num_classes in [('fine', 100), ('coarse', 20)]:
        holdout.hold_out(dataset.read(str(directory), label), str(tmp_path / label), 100, 0)
        found = dataset.read(str(tmp_path / label))
        assert (
            found.class_names == [label[0] + str(i) for i in range(num_classes)]
            and found.train.record_bytes == 3073
        )
        assert verification.count_labels(found.test).tolist() == [100 // num_classes] * num_classes
        assert verification.count_labels(found.train).tolist() == [300 // num_classes] * num_classes


def test_classes_without_names(tmp_path, own_data_dir):
    os.remove(os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE))
    holdout.hold_out(dataset.read(own_data_dir), str(tmp_path / 'out'), 10, 0)
    assert dataset.read(str(tmp_path / 'out')).class_names == list('0123456789')
