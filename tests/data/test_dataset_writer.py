"""Atomic writing of data sets, locks, and hold-out."""

import os
import subprocess
import sys

import numpy as np
import pytest

import cifar10
from cifar10.data import dataset, dataset_writer, synthetic, verification
from tests.helpers import data_sets, listing, messages, oracle, programs, queues


def _num_examples(directory):
    found = verification.verify(dataset.read(str(directory)))
    return found.train.num_examples, found.test.num_examples


@pytest.mark.parametrize('name', ['[12]', "it's a back\\slash?", '-gr\u00fcn %s {x}'])
def test_every_name_of_a_directory(tmp_path, name):
    """TensorFlow reads from it too, and nothing is written elsewhere. A leftover goes."""
    (tmp_path / name / f'.cifar10-incomplete-{dataset.CIFAR10_DIRECTORY}' / 'x').mkdir(parents=True)
    (tmp_path / name / 'incomplete').mkdir()  # a user's directory
    data_dir = str(tmp_path / name)
    synthetic.maybe_write(data_dir, records_per_file=10)
    assert dataset.is_present(data_dir) and _num_examples(data_dir) == (50, 10)
    _, labels = cifar10.inputs(eval_data=True, data_dir=data_dir, batch_size=10)
    assert sorted(queues.run(labels, 1)[0]) == list(range(10))
    assert listing.names(tmp_path) == [name]
    assert listing.names(data_dir) == [dataset.CIFAR10_DIRECTORY, 'incomplete']


@pytest.mark.parametrize('kind', ['a file', 'a link'])
def test_no_directory_in_place_of_the_data_set(tmp_path, kind):
    """The error comes before the download."""
    path = tmp_path / dataset.CIFAR10_DIRECTORY
    if kind == 'a file':
        path.write_text('precious')
    else:
        path.symlink_to('nowhere')
    before = os.lstat(str(path))
    with messages.raises(f'^{path} is not a directory: give another one'):
        synthetic.maybe_write(str(tmp_path))
    assert os.path.samestat(os.lstat(str(path)), before)
    assert listing.names(tmp_path) == [dataset.CIFAR10_DIRECTORY]


def test_half_a_data_set_is_left_alone(own_data_dir):
    os.remove(dataset.read(own_data_dir).train.paths[3])
    directory = os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY)
    before = listing.names(directory)
    with messages.raises('data_batch_4.bin is missing: restore it, or move'):
        synthetic.maybe_write(own_data_dir)
    assert listing.names(directory) == before


def test_an_error_leaves_nothing(tmp_path):
    """Invalid files, or an exception in the block."""
    path = str(tmp_path / dataset.CIFAR10_DIRECTORY)
    complaint = 'data_batch_1.bin is empty'
    with messages.raises(complaint), dataset_writer.verified_directory(path) as made:
        open(os.path.join(made, 'data_batch_1.bin'), 'w').close()
    with pytest.raises(ZeroDivisionError), dataset_writer.verified_directory(path):
        1 / 0  # noqa: B018
    assert listing.names(tmp_path) == []


def test_a_second_process_finds_the_data_set(tmp_path):
    script = 'from cifar10.data import synthetic; synthetic.maybe_write(%r, records_per_file=20)'
    with dataset_writer.lock_files_dir(str(tmp_path)) as missing:
        assert missing
        process = subprocess.Popen(
            [sys.executable, '-c', script % str(tmp_path)],
            env={'PATH': os.environ['PATH'], 'PYTHONPATH': programs.ROOT},  # its output is buffered
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        line = process.stdout.readline()
        data_sets.write(tmp_path)
    assert process.communicate(timeout=60) == ('', None) and process.returncode == 0
    assert line == f'Waiting for another process in {tmp_path}\n'
    assert _num_examples(tmp_path) == (300, 50)


def _bytes(split):
    return [row.tobytes() for path in split.paths for row in np.fromfile(path, 'V3073')]


def test_training_images_are_divided_by_class(tmp_path, data_dir):
    """The source has 300 training images, 30 per class, and 50 test images, which are not used."""
    source = dataset.read(data_dir)
    dataset_writer.hold_out(source, str(tmp_path / 'out'), 50, seed=0)
    found = dataset.read(str(tmp_path / 'out'))
    assert found.class_names == source.class_names
    assert np.bincount(oracle.read_records(found.test.paths)[0]).tolist() == [5] * 10
    train, test, before = map(_bytes, (found.train, found.test, source.train))
    assert sorted(train + test) == sorted(before)
    assert train == [row for row in before if row in set(train)]  # in the same order
    assert [file.num_examples for file in found.train.files] == [50] * 5


def _make(directory, counts):
    """Write a data set with these numbers of images of the first classes."""
    labels = np.repeat(np.arange(len(counts)), counts)
    images = np.zeros([len(labels), 3, 32, 32], np.uint8)
    with dataset_writer.new_dataset(str(directory)) as new:
        names = [f'class {i}' for i in range(len(counts))]
        for split_name in ('train', 'test'):
            chunk = labels, images, ()
            dataset_writer.write_split(new, split_name, [chunk], len(labels), names)
        dataset_writer.write_dataset_info(new, names)
    return dataset.read(str(directory))


@pytest.mark.parametrize(
    'counts, total, quotas',
    [
        ([30, 10, 20], 6, [3, 1, 2]),
        ([9, 1], 1, [1, 0]),
        ([1, 1, 9], 5, [0, 0, 5]),
        ([0, 5], 4, [0, 4]),
    ],
)
def test_the_part_of_each_class(tmp_path, counts, total, quotas):
    """Each class keeps one training image."""
    source = _make(tmp_path / 'source', counts)
    dataset_writer.hold_out(source, str(tmp_path / 'out'), total, 0)
    found = verification.verify(dataset.read(str(tmp_path / 'out')))
    assert list(found.test.counts) == quotas
    assert list(found.train.counts) == list(np.subtract(counts, quotas))
    most = sum(max(count - 1, 0) for count in counts)
    with messages.raises(f'^--num_examples={most + 1} leaves .*: give at most {most}$'):
        dataset_writer.hold_out(source, str(tmp_path / 'more'), most + 1, 0)
    assert listing.names(tmp_path) == ['out', 'source']


def test_classes_without_names(tmp_path, own_data_dir):
    os.remove(os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY, dataset.CLASS_NAMES_FILE))
    dataset_writer.hold_out(dataset.read(own_data_dir), str(tmp_path / 'out'), 10, 0)
    assert dataset.read(str(tmp_path / 'out')).class_names == list('0123456789')
