"""Verification of data files, labels and checksums."""

import hashlib
import os

import numpy as np
import pytest

from cifar10.data import dataset, verification
from cifar10.data.dataset import DataFile, Split
from tests.helpers import faults, messages


def _records(path, labels, label_bytes=1):
    """Write records with these labels in the last label byte, and random bytes."""
    rows = np.random.RandomState(0).randint(0, 256, [len(labels), label_bytes + 3072])
    rows[:, label_bytes - 1] = labels
    rows.astype(np.uint8).tofile(str(path))
    return Split([DataFile(str(path))], 10, None, label_bytes)


def test_counts(data_dir, tmp_path):
    found = verification.verify(dataset.read(data_dir))
    assert (found.train.num_examples, found.test.num_examples) == (300, 50)
    assert verification.verify_split(found.train) is found.train  # verified once
    first, second = _records(tmp_path / 'a', [0, 0, 3]), _records(tmp_path / 'b', [9, 3])
    both = first._replace(files=first.files + second.files)
    assert verification.verify_split(both).counts == [2, 0, 0, 2, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    'change, fault',
    [
        (
            lambda content: content + b'x',
            'its 184381 bytes are 60 records of 3073 bytes and 1 more',
        ),
        (lambda content: b'', 'is empty'),
        (
            lambda content: content[:3073] + b'\x0a' + content[3074:],
            r'has labels that are not 0 to 9 \(count: 1, for example 10\)',
        ),
    ],
)
def test_the_file_and_its_fault_are_named(own_data_dir, change, fault):
    path = dataset.read(own_data_dir).train.paths[2]
    content = _content(path)
    verification.verify(dataset.read(own_data_dir))
    with open(path, 'wb') as damaged:
        damaged.write(change(content))
    with messages.raises(f'^{path} .*{fault}: replace it with a good copy$'):
        verification.verify(dataset.read(own_data_dir))


def test_a_missing_file(tmp_path):
    (tmp_path / 'file').write_text('')
    for data_dir in (tmp_path, tmp_path / 'file'):
        with messages.raises(f'{data_dir}/.*data_batch_1.bin is missing: '):
            verification.verify(dataset.read(str(data_dir)))


def test_a_file_of_several_pieces(tmp_path):
    """2,500 records are three chunks; the bad label is in the last one."""
    split = _records(tmp_path / 'file', [0] * 2500)
    assert verification.verify_split(split).num_examples == 2500
    assert sum(len(labels) for labels, _ in verification.read_examples(split)) == 2500
    _records(tmp_path / 'file', [0] * 2400 + [10] + [0] * 99)
    with messages.raises(r'\(count: 1, for example 10\):'):
        verification.verify_split(split)
    os.truncate(split.paths[0], 2450 * 3073 - 1)
    with messages.raises('are 2449 records of 3073 bytes and 3072 more:'):
        verification.verify_split(split)


def test_two_label_bytes(tmp_path):
    """As in CIFAR-100. The first byte is the superclass, and no part of the label."""
    labels = [0, 1, 9, 9, 5, 9, 1]
    split = _records(tmp_path / 'x', labels, 2)
    assert split.record_bytes == 3074 and verification.verify_split(split).num_examples == 7
    assert verification.verify_split(split).counts == [1, 2, 0, 0, 0, 1, 0, 0, 0, 3]
    ((found, images),) = verification.read_examples(split)
    assert found.tolist() == labels and images.shape == (7, 3, 32, 32)
    rows = np.fromfile(str(tmp_path / 'x'), np.uint8).reshape(7, -1)
    np.testing.assert_array_equal(images.reshape(7, -1), rows[:, 2:])
    with messages.raises(r'not 0 to 9 \(count: 2, for example 10\):'):
        verification.verify_split(_records(tmp_path / 'x', [5] * 1200 + [10, 255], 2))


def test_dataset_json(tmp_path):
    digest = hashlib.sha256(_content(_records(tmp_path / 'x', range(5)).paths[0])).hexdigest()
    split = Split([DataFile(str(tmp_path / 'x'), 5, digest)])
    assert verification.verify_split(split).num_examples == 5
    verification.verify_checksums(split)
    with messages.raises('x has 5 examples, not 4 as in dataset.json: '):
        verification.verify_split(Split([DataFile(str(tmp_path / 'x'), 4, digest)]))
    _records(tmp_path / 'x', range(1, 6))
    verification.verify_checksums(Split([DataFile(str(tmp_path / 'x'))]))  # without a dataset.json
    with messages.raises('x has been changed: its SHA-256 differs from '):
        verification.verify_checksums(split)


def test_the_checksum_of_all_files(tmp_path):
    first, second = (_records(tmp_path / name, [i]) for i, name in enumerate('ab'))
    both, turned = (
        first._replace(files=files)
        for files in (first.files + second.files, second.files + first.files)
    )
    total = verification.verify_split(both).checksum
    assert len(total) == 8 and total != verification.verify_split(turned).checksum
    faults.relabel(both.paths[1], 3)
    relabelled = verification.verify_split(both).checksum
    with open(both.paths[1], 'r+b') as file:
        file.seek(2000)
        file.write(b'pixels')
    assert len({total, relabelled, verification.verify_split(both).checksum}) == 3


def _content(path):
    with open(path, 'rb') as opened:
        return opened.read()
