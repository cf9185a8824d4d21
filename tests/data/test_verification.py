"""Labels of one byte or two, numbers of examples and checksums."""

import hashlib

import numpy as np
import pytest

from cifar10.data import dataset, verification
from cifar10.data.dataset import File, Records
from cifar10.errors import UserError


def _records(path, labels, label_bytes=1, **about):
    """Writes records with these labels, the high byte first, and images of random bytes."""
    rows = (
        np.random.RandomState(0).randint(0, 256, [len(labels), label_bytes + 3072]).astype(np.uint8)
    )
    for i in range(label_bytes):
        rows[:, i] = np.array(labels) >> 8 * (label_bytes - 1 - i) & 255
    rows.tofile(str(path))
    return Records(
        [File(str(path), **about)],
        300 if label_bytes == 2 else 10,
        None,
        (1,) if label_bytes == 1 else (256, 1),
    )


def test_labels_of_two_bytes(tmp_path):
    labels = [0, 1, 255, 256, 257, 299, 299]
    records = _records(tmp_path / 'x', labels, 2)
    assert records.record_bytes == 3074 and verification.verify(records) == 7
    counts = verification.count_labels(records)
    assert (
        counts.shape == (300,)
        and counts[[0, 1, 255, 256, 257, 299]].tolist() == [1, 1, 1, 1, 1, 2]
        and counts.sum() == 7
    )
    ((found, images),) = verification.examples(records)
    assert found.tolist() == labels and images.shape == (7, 3, 32, 32)
    np.testing.assert_array_equal(
        images.reshape(7, -1), np.fromfile(str(tmp_path / 'x'), np.uint8).reshape(7, -1)[:, 2:]
    )


def test_a_label_of_two_bytes_that_is_too_great(tmp_path):
    records = _records(tmp_path / 'x', [5] * 1200 + [300, 65535], 2)
    with pytest.raises(
        UserError,
        match=r'has labels that are not 0 to 299: 2 of them, the first \(300\) in record 1200;',
    ):
        verification.verify(records)


def test_counts_over_several_files(tmp_path):
    first, second = _records(tmp_path / 'a', [0, 0, 3]), _records(tmp_path / 'b', [9, 3])
    both = first._replace(files=list(first.files) + list(second.files))
    assert verification.count_labels(both).tolist() == [2, 0, 0, 2, 0, 0, 0, 0, 0, 1]
    assert verification.verify(both) == 5


def test_the_coarse_and_the_fine_label_of_the_same_bytes(tmp_path):
    _records(tmp_path / 'x', [3 * 256 + 17, 19 * 256 + 99], 2)
    for weights, num_classes, labels in [((0, 1), 100, [17, 99]), ((1, 0), 20, [3, 19])]:
        records = Records([File(str(tmp_path / 'x'))], num_classes, None, weights)
        ((found, _),) = verification.examples(records)
        assert found.tolist() == labels and verification.verify(records) == 2


@pytest.mark.parametrize('said', [4, 6])
def test_another_number_of_examples_than_dataset_json_says(tmp_path, said):
    records = _records(tmp_path / 'x', range(5), num_examples=said)
    with pytest.raises(
        UserError,
        match='^%s has 5 examples, not the %d that dataset.json says; replace it with a good copy$'
        % (tmp_path / 'x', said),
    ):
        verification.verify(records)


def test_checksums(tmp_path):
    _records(tmp_path / 'x', range(5))
    digest = hashlib.sha256((tmp_path / 'x').read_bytes()).hexdigest()
    verification.check_sums(Records([File(str(tmp_path / 'x'), 5, digest)]))
    verification.check_sums(Records([File(str(tmp_path / 'x'))]))  # which nothing describes
    content = bytearray((tmp_path / 'x').read_bytes())
    content[-1] ^= 1
    (tmp_path / 'x').write_bytes(content)
    with pytest.raises(
        UserError,
        match='^%s has been changed: its SHA-256 is not the one in dataset.json' % (tmp_path / 'x'),
    ):
        verification.check_sums(Records([File(str(tmp_path / 'x'), 5, digest)]))


def test_a_file_that_does_not_fit_in_memory(tmp_path):
    """30 GB without a block on the disk would take a minute: the first 3 GB of it, which are whole
    records."""
    with open(str(tmp_path / 'x'), 'wb') as sparse:
        sparse.truncate(100000 * 3073)
    assert (
        verification.count_labels(dataset.Records([File(str(tmp_path / 'x'))])).tolist()
        == [100000] + [0] * 9
    )
