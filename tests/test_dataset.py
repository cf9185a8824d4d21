"""Files on disk: verification and the synthetic set."""
import os

import numpy as np
import pytest

from cifar10 import dataset, synthetic
from cifar10.errors import UserError


def _damage(path, change):
    content = bytearray(open(path, 'rb').read())
    content = change(content) or content
    with open(path, 'wb') as damaged:
        damaged.write(content)


def test_verify_counts_examples(data_dir):
    assert dataset.verify(dataset.train_files(data_dir)) == 300
    assert dataset.verify(dataset.test_files(data_dir)) == 50


@pytest.mark.parametrize('change, complaint', [
    (lambda content: content + b'x', 'not a whole number of records: its 184381 bytes are 60 records of 3073 bytes and 1 more'),
    (lambda content: b'\0' * 100, 'its 100 bytes are 0 records'),
    (lambda content: content.clear() or b'', 'is empty'),
    (lambda content: content.__setitem__(3073 * 17, 10), r'has label 10 in record 17 \(of 1 bad ones\)'),
])
def test_verify_names_the_file_and_its_fault(own_data_dir, change, complaint):
    path = dataset.train_files(own_data_dir)[2]
    _damage(path, change)
    with pytest.raises(UserError, match=complaint) as error:
        dataset.verify(dataset.train_files(own_data_dir))
    assert path in str(error.value) and '\n' not in str(error.value)


def test_verify_names_a_missing_file(tmp_path):
    with pytest.raises(UserError, match='data_batch_1.bin is missing'):
        dataset.verify(dataset.train_files(str(tmp_path)))


def test_half_a_data_set_is_left_alone(own_data_dir):
    os.remove(dataset.train_files(own_data_dir)[3])
    with pytest.raises(UserError, match='data_batch_4.bin is missing'):
        synthetic.maybe_write(own_data_dir)


def test_new_directory_leaves_nothing_after_an_error(tmp_path):
    with pytest.raises(UserError, match='data_batch_1.bin is empty'):
        with dataset.new_directory(str(tmp_path)) as directory:
            open(os.path.join(directory, 'data_batch_1.bin'), 'w').close()
    assert os.listdir(str(tmp_path)) == []


def test_new_directory_gives_way_to_a_faster_process(tmp_path, data_dir):
    with dataset.new_directory(str(tmp_path)) as directory:
        for path in dataset.train_files(data_dir) + dataset.test_files(data_dir):
            os.link(path, os.path.join(directory, os.path.basename(path)))
        synthetic.maybe_write(str(tmp_path), records_per_file=10)
    assert os.listdir(str(tmp_path)) == [dataset.DIRECTORY]
    assert dataset.verify(dataset.test_files(str(tmp_path))) == 10


def test_synthetic_set_is_balanced_and_written_once(tmp_path):
    synthetic.maybe_write(str(tmp_path), records_per_file=30)
    for path in dataset.train_files(str(tmp_path)) + dataset.test_files(str(tmp_path)):
        labels = np.fromfile(path, np.uint8).reshape(-1, 3073)[:, 0]
        assert np.bincount(labels).tolist() == [3] * 10
        assert labels.tolist() != sorted(labels)
    before = os.stat(path)
    synthetic.maybe_write(str(tmp_path), records_per_file=20)
    assert os.stat(path) == before
    assert dataset.class_names(str(tmp_path)) == synthetic.CLASS_NAMES


def test_synthetic_images_are_all_different(tmp_path):
    synthetic.maybe_write(str(tmp_path), records_per_file=30)
    paths = dataset.train_files(str(tmp_path)) + dataset.test_files(str(tmp_path))
    images = np.concatenate([np.fromfile(path, np.uint8) for path in paths]).reshape(-1, 3073)[:, 1:]
    assert len({image.tobytes() for image in images}) == 180


def test_synthetic_does_not_replace_another_set(own_data_dir):
    names = os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE)
    with open(names, 'w') as other:
        other.write('\n'.join(dataset.CLASS_NAMES))
    with pytest.raises(UserError, match='holds another data set'):
        synthetic.maybe_write(own_data_dir)
