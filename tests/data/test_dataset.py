"""Data directories: CIFAR-10, CIFAR-100, and data sets with a dataset.json."""

import json
import os
import shutil

import numpy as np
import pytest

import cifar10
from cifar10.data import catalog, copies, dataset, dataset_writer, synthetic, verification
from tests.helpers import data_sets, messages, queues

FINE = [f'fine_{i}' for i in range(100)]
ABOUT = {'examples': 5, 'sha256': '0' * 64}
WHOLE = {
    'classes': ['a', 'b c', '\u732b'],
    'train': {'x.bin': ABOUT, 'y.bin': ABOUT},
    'test': {'test_batch.bin': ABOUT},
    'origin': 'of versions before 1.9.0',
}


def test_the_files_of_cifar10():
    found = dataset.read('x')
    directory = 'x/cifar-10-batches-bin/'
    assert found.train.paths == [directory + f'data_batch_{i}.bin' for i in range(1, 6)]
    assert found.test.paths == [directory + 'test_batch.bin']
    assert dataset.read(found) is found


def test_another_name_of_the_directory(own_data_dir, tmp_path):
    os.rename(os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY), str(tmp_path / 'renamed'))
    assert dataset.is_present(str(tmp_path / 'renamed'))
    found = dataset.read(str(tmp_path / 'renamed'))
    assert verification.verify(found).test.num_examples == 50


def test_a_file_that_would_be_left_out(own_data_dir):
    """No trainer reads a sixth file of training images."""
    directory = os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY)
    shutil.copy(f'{directory}/data_batch_5.bin', f'{directory}/data_batch_6.bin')
    cause = f'^{directory}/data_batch_6.bin is not a file of .*: '
    with messages.raises(cause + 'move it away$'):
        dataset.is_present(own_data_dir)
    with messages.raises(cause + 'move it away$'):
        copies.write_binary_files(catalog.CIFAR10, directory, '/nowhere')


def _write_class_names(data_dir, names):
    path = os.path.join(data_dir, dataset.CIFAR10_DIRECTORY, dataset.CLASS_NAMES_FILE)
    with open(path, 'wb') as opened:
        opened.write('\r\n'.join(names).encode())
    return path


def test_class_names(own_data_dir):
    assert dataset.read(own_data_dir).class_names == synthetic.CLASS_NAMES
    names = [f'\u732b{i}' for i in range(10)]
    path = _write_class_names(own_data_dir, names)
    assert dataset.read(own_data_dir).class_names == names
    os.remove(path)
    assert dataset.read(own_data_dir).class_names is None


def test_class_names_of_other_data(own_data_dir):
    """Programs of the tutorial accept them."""
    _write_class_names(own_data_dir, FINE[:9])
    assert dataset.read(own_data_dir).class_names is None


def test_names_in_the_form_nfc(tmp_path):
    """As earlier versions did not write them."""
    _describe(tmp_path, classes=['cafe\u0301', 'b'])
    assert dataset.read(str(tmp_path)).class_names == ['caf\u00e9', 'b']


def _describe(directory, **changes):
    (directory / dataset.DATASET_INFO_FILE).write_text(json.dumps(dict(WHOLE, **changes)))


def test_dataset_json(tmp_path):
    _describe(tmp_path)
    found = dataset.read(str(tmp_path))
    assert found.directory == str(tmp_path) and found.class_names == WHOLE['classes']
    assert found.train.files == [
        dataset.DataFile(str(tmp_path / name), 5, '0' * 64) for name in ('x.bin', 'y.bin')
    ]
    assert found.test.paths == [str(tmp_path / 'test_batch.bin')]
    assert found.train.record_bytes == 3073
    _describe(tmp_path, label_bytes=1)  # as versions before 1.9.0 write it
    assert dataset.read(str(tmp_path)) == found


@pytest.mark.parametrize(
    'changes, fault',
    [
        ({'classes': None}, ''),
        ({'classes': ['a', 'a']}, 'two classes have the same name'),
        ({'classes': ['a', ' ']}, "' ' is not a class name"),
        ({'train': {'a': {'examples': 5}}}, 'sha256'),
        ({'test': {}}, 'test has no files'),
    ],
)
def test_a_damaged_dataset_json(tmp_path, changes, fault):
    _describe(tmp_path, **changes)
    with messages.raises(rf'dataset.json is damaged \(.*{fault}.*\): restore it, or make the '):
        dataset.read(str(tmp_path))


@pytest.fixture
def cifar100_dir(tmp_path):
    data_sets.write_cifar100(tmp_path / 'cifar-100-binary')
    return str(tmp_path / 'cifar-100-binary')


def test_cifar100(tmp_path, cifar100_dir):
    for data_dir in (cifar100_dir, os.path.dirname(cifar100_dir)):
        found = dataset.read(data_dir)
        assert (found.class_names, found.directory) == (FINE, cifar100_dir)
    _, labels = cifar10.inputs(eval_data=True, data_dir=found, batch_size=50)
    np.testing.assert_array_equal(
        np.concatenate(queues.run(labels, 4)), data_sets.cifar100_rows(200, 1)[:, 1]
    )
    assert verification.verify(found).test.counts == [2] * 100
    dataset_writer.hold_out(found, str(tmp_path / 'held'), 100, 0)
    held = dataset.read(str(tmp_path / 'held'))
    assert held.class_names == FINE and held.train.record_bytes == 3073
    assert verification.verify(held).test.counts == [1] * 100


def test_class_names_of_cifar100_that_are_missing(cifar100_dir):
    os.remove(os.path.join(cifar100_dir, 'fine_label_names.txt'))
    found = dataset.read(cifar100_dir)
    assert (found.class_names, found.num_classes) == (None, 100)


def test_cifar10_is_not_looked_for_in_a_directory_of_cifar100(cifar100_dir):
    """The parent may hold both."""
    parent = os.path.dirname(cifar100_dir)
    os.mkdir(os.path.join(parent, dataset.CIFAR10_DIRECTORY))
    assert dataset.read(parent).directory == os.path.join(parent, dataset.CIFAR10_DIRECTORY)
    assert dataset.read(dataset.files_dir(parent, catalog.CIFAR100)).num_classes == 100


@pytest.mark.parametrize(
    'names, text',
    [
        (None, 'unnamed classes'),
        (['a', 'b'], 'a, b'),
        (FINE[:20], ', '.join(FINE[:20])),
        (FINE[:21], '21 classes (fine_0, fine_1, fine_2 ... fine_20)'),
    ],
)
def test_class_names_as_text(names, text):
    assert dataset.format_class_names(names) == text


def test_a_damaged_table_of_image_files(tmp_path, capsys):
    """As after a spreadsheet program; the evaluation does not need it."""
    _describe(tmp_path)
    (tmp_path / 'test_images.csv').write_text('index;file;class\n0;a.png;a\n')
    assert dataset.read(str(tmp_path)).test.image_files() == {}
    line = (
        f'{tmp_path}/test_images.csv is damaged, so no image file is named: restore or delete it\n'
    )
    assert capsys.readouterr().err.endswith(line)
