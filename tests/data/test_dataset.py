"""Files on disk: verification and the synthetic set."""
import os
import subprocess
import sys

import numpy as np
import pytest

from cifar10.data import dataset, synthetic
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
    (lambda content: content.__setitem__(3073 * 17, 10), 'has 1 labels that are not 0 to 9, the first one, 10, in record 17'),
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


def test_a_second_process_waits_and_finds_the_data_set_there(tmp_path):
    script = 'from cifar10 import synthetic; synthetic.maybe_write(%r, records_per_file=20)' % str(tmp_path)
    with dataset.preparing(str(tmp_path)) as missing:
        assert missing
        process = subprocess.Popen([sys.executable, '-u', '-c', script], stdout=subprocess.PIPE, universal_newlines=True)
        assert process.stdout.readline() == 'Waiting for another process that works in %s\n' % tmp_path
        with dataset.new_directory(str(tmp_path)) as batches:
            for index, name in enumerate(dataset.TRAIN_FILES + dataset.TEST_FILES):
                synthetic.records(30, np.random.default_rng(index)).tofile(os.path.join(batches, name))
            with open(os.path.join(batches, dataset.CLASS_NAMES_FILE), 'w') as names:
                names.write(' '.join(synthetic.CLASS_NAMES))
    assert process.communicate(timeout=60) == ('', None) and process.returncode == 0
    assert dataset.verify(dataset.test_files(str(tmp_path))) == 30


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    (tmp_path / '.cifar10-incomplete-xyz' / dataset.DIRECTORY).mkdir(parents=True)
    (tmp_path / 'incomplete').mkdir()  # the user's own
    synthetic.maybe_write(str(tmp_path), records_per_file=10)
    assert sorted(os.listdir(str(tmp_path))) == [dataset.DIRECTORY, 'incomplete']


def test_the_directory_of_the_files_is_not_taken_for_its_parent(own_data_dir):
    with pytest.raises(UserError, match='holds data_batch_1.bin itself: give the directory above it'):
        synthetic.maybe_write(os.path.join(own_data_dir, dataset.DIRECTORY))


@pytest.mark.parametrize('content, count', [(b'\xff\xfe garbage', 2), (b'', 0)])
def test_a_list_of_class_names_that_is_none(own_data_dir, content, count):
    with open(os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE), 'wb') as names:
        names.write(content)
    with pytest.raises(UserError, match='batches.meta.txt lists %d class names, not 10' % count):
        dataset.class_names(own_data_dir)


def test_synthetic_set_is_balanced_and_written_once(tmp_path):
    synthetic.maybe_write(str(tmp_path), records_per_file=30)
    for path in dataset.train_files(str(tmp_path)) + dataset.test_files(str(tmp_path)):
        labels = np.fromfile(path, np.uint8).reshape(-1, 3073)[:, 0]
        assert np.bincount(labels).tolist() == [3] * 10
        assert labels.tolist() != sorted(labels)
    before = os.stat(path).st_mtime_ns
    synthetic.maybe_write(str(tmp_path), records_per_file=20)
    assert os.stat(path).st_mtime_ns == before
    assert dataset.class_names(str(tmp_path)) == synthetic.CLASS_NAMES


def test_synthetic_images_are_all_different(tmp_path):
    synthetic.maybe_write(str(tmp_path), records_per_file=30)
    paths = dataset.train_files(str(tmp_path)) + dataset.test_files(str(tmp_path))
    images = np.concatenate([np.fromfile(path, np.uint8) for path in paths]).reshape(-1, 3073)[:, 1:]
    assert len({image.tobytes() for image in images}) == 180
    assert min(len(np.unique(image)) for image in images.reshape(-1, 1024)) > 10  # two colours, but for the noise


def test_synthetic_does_not_replace_another_set(own_data_dir):
    names = os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE)
    with open(names, 'w') as other:
        other.write('\n'.join(dataset.CLASS_NAMES))
    with pytest.raises(UserError, match='holds another data set'):
        synthetic.maybe_write(own_data_dir)
