"""Own files in the layout of CIFAR-10 or CIFAR-100: other classes, files, numbers of examples."""

import csv
import pickle
import re
import sys

import numpy as np
import pytest

from cifar10.data import dataset, verification
from tests.helpers import faults, oracle, programs

BINARY_NAMES = dataset.TRAIN_FILES + dataset.TEST_FILES


def rows(count, num_classes, seed=0):
    """Return records with the labels 0, 1, ..., num_classes - 1, 0, 1, ..."""
    records = np.random.RandomState(seed).randint(0, 256, [count, 3073]).astype(np.uint8)
    records[:, 0] = np.arange(count) % num_classes
    return records


def write(directory, counts, num_classes):
    """Write binary files, a dict from name to number of records; return all training records."""
    directory.mkdir()
    written = {name: rows(count, num_classes, i) for i, (name, count) in enumerate(counts.items())}
    for name, records in written.items():
        records.tofile(str(directory / name))
    return np.concatenate([records for name, records in written.items() if name[0] == 'd'])


def convert(directory, out, *flags):
    """Run the command; return its output."""
    status, stdout, stderr = programs.call(
        'cifar10_dataset', 'convert', str(directory), str(out), *flags
    )
    assert (status, stderr) == (0, '')
    assert stdout.startswith(f'{directory} is not CIFAR-10 (')
    assert programs.call('cifar10_dataset', 'verify', f'--data_dir={out}')[0] == 0
    return stdout


def assert_examples(paths, records):
    labels, images = oracle.read_records(paths)
    np.testing.assert_array_equal(labels, records[:, 0])
    expected = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(images, expected)


@pytest.mark.parametrize('num_classes', [3, 13, 256])
@pytest.mark.parametrize('num_files', [1, 5, 11])
def test_binary_files(tmp_path, num_classes, num_files):
    """All training files are used, in the order of their numbers, and the books' five are made."""
    counts = {f'data_batch_{i}.bin': 300 + i for i in range(1, num_files + 1)}
    own, out = tmp_path / 'own', tmp_path / 'out'
    expected = write(own, dict(counts, **{'test_batch.bin': 256}), num_classes)
    stdout = convert(own, out)
    assert f'{len(expected)} training and 256 test examples of' in stdout
    found = dataset.read(str(out))
    assert found.num_classes == num_classes
    assert found.class_names == [str(i) for i in range(num_classes)]
    assert sorted(path.name for path in out.glob('*.bin')) == BINARY_NAMES
    assert_examples(found.train.paths, expected)


@pytest.mark.parametrize(
    'text, names',
    [
        ('\ufeffpolar bear\n\n猫\r\ndog\n', ['polar bear', '猫', 'dog']),
        ('cat dog bird', ['cat', 'dog', 'bird']),
        ('cat, dog,bird\n', ['cat', 'dog', 'bird']),
        ('a\nb\nc\nunused\n', ['a', 'b', 'c', 'unused']),
    ],
)
def test_the_class_names(tmp_path, text, names):
    own = tmp_path / 'own'
    write(own, dict.fromkeys(BINARY_NAMES, 12), 3)
    (own / 'batches.meta.txt').write_text(text, encoding='utf-8')
    convert(own, tmp_path / 'out')
    assert dataset.read(str(tmp_path / 'out')).class_names == names


def test_missing_test_images_are_held_out(tmp_path):
    own = tmp_path / 'own'
    records = write(own, {'data_batch_1.bin': 80}, 4)
    assert '72 training and 8 test examples of' in convert(own, tmp_path / 'out')
    convert(own, tmp_path / 'quarter', '--test_fraction=0.25', '--seed=1')
    found = dataset.read(str(tmp_path / 'quarter'))
    assert verification.count_labels(found.test).tolist() == [5] * 4
    contents = [
        row.tobytes() for split in found.splits for path in split.paths for row in _read(path)
    ]
    assert sorted(contents) == sorted(row.tobytes() for row in records)
    (own / 'test_batch.bin').write_bytes(records[:4].tobytes())
    found = programs.call(
        'cifar10_dataset', 'convert', str(own), str(tmp_path / 'more'), '--test_fraction=0.25'
    )
    faults.assert_one_line(found[2], f'--test_fraction has no effect, because {own} has test')


def _read(path):
    return np.fromfile(path, np.uint8).reshape(-1, 3073)


PROTOCOLS = [2, 4] + [5] * (sys.version_info >= (3, 8))


@pytest.mark.parametrize('protocol', PROTOCOLS)
@pytest.mark.parametrize('as_labels', [np.ndarray.tolist, list, np.array])
def test_pickles(tmp_path, protocol, as_labels):
    """Labels can be numbers of NumPy, or an array; `filenames` become the image files."""
    own, out = tmp_path / 'cifar-10-batches-py', tmp_path / 'out'
    own.mkdir()
    batches = {'data_batch_1': rows(30, 3), 'data_batch_2': rows(20, 3), 'test_batch': rows(9, 3)}
    for name, records in batches.items():
        content = {'data': records[:, 1:], 'labels': as_labels(records[:, 0])}
        content['filenames'] = [f'{name}/{i}.png' for i in range(len(records))]
        with open(str(own / name), 'wb') as file:
            pickle.dump(content, file, protocol)
    with open(str(own / 'batches.meta'), 'wb') as file:
        pickle.dump({'label_names': ['a', 'b', 'c']}, file, protocol)
    convert(own, out)
    found = dataset.read(str(out))
    assert found.class_names == ['a', 'b', 'c']
    assert_examples(
        found.train.paths, np.concatenate([batches['data_batch_1'], batches['data_batch_2']])
    )
    with open(str(out / 'train_images.csv'), newline='') as file:
        named = list(csv.reader(file))
    assert named[0] == ['index', 'file', 'class'] and len(named) == 51
    assert named[32] == ['31', 'data_batch_2/1.png', 'b']


@pytest.mark.parametrize('filenames', [None, 7, ['a'], [b'\xe4.png'] * 30])
def test_odd_names_of_image_files(tmp_path, filenames):
    """They are a convenience, so they refuse no data. Bytes that are no UTF-8 are escaped."""
    own = tmp_path / 'own'
    own.mkdir()
    for name in ('data_batch_1', 'test_batch'):
        content = {'data': rows(30, 3)[:, 1:], 'labels': [0, 1, 2] * 10, 'filenames': filenames}
        with open(str(own / name), 'wb') as file:
            pickle.dump(content, file, 2)
    convert(own, tmp_path / 'out')
    names = dataset.read(str(tmp_path / 'out')).train.image_files()
    expected = dict.fromkeys(range(30), r'\xe4.png') if np.shape(filenames) == (30,) else {}
    assert names == expected


def test_a_hostile_number(tmp_path):
    """A number of the type object is an address, which crashes old versions of NumPy."""
    own = tmp_path / 'own'
    own.mkdir()

    class Hostile:
        def __reduce__(self):
            return np.int64(0).__reduce__()[0], (np.dtype([('a', 'O')]), b'12345678')

    with open(str(own / 'data_batch_1'), 'wb') as file:
        pickle.dump({'data': rows(3, 3)[:, 1:], 'labels': [0, 1, Hostile()]}, file)
    status, _, stderr = programs.run('cifar10_dataset', 'convert', str(own), str(tmp_path / 'out'))
    assert status == 1
    faults.assert_one_line(stderr, 'data_batch_1: it has a number of the type ')


def test_the_parent_directory(tmp_path):
    (tmp_path / 'parent').mkdir()
    own = tmp_path / 'parent' / 'cifar-10-batches-bin'
    write(own, {'data_batch_1.bin': 30, 'test_batch.bin': 10}, 3)
    status, stdout, _ = programs.call(
        'cifar10_dataset', 'convert', str(tmp_path / 'parent'), str(tmp_path / 'out')
    )
    assert status == 0 and stdout.startswith(f'{own} is not CIFAR-10 (')
    assert '30 training and 10 test examples of 0, 1, 2 in' in stdout


def test_one_image_per_class_cannot_be_divided(tmp_path):
    own = tmp_path / 'own'
    write(own, {'data_batch_1.bin': 3}, 3)
    status, _, stderr = programs.call('cifar10_dataset', 'convert', str(own), str(tmp_path / 'out'))
    assert status == 1
    faults.assert_one_line(stderr, f'{own} has one image per class: add images')


def test_the_layout_of_cifar100(tmp_path):
    own = tmp_path / 'own'
    own.mkdir()
    records = np.zeros([40, 3074], np.uint8)
    records[:, 0], records[:, 1] = 9, np.arange(40) % 7
    for name in ('train.bin', 'test.bin'):
        records.tofile(str(own / name))
    status, stdout, _ = programs.call('cifar10_dataset', 'convert', str(own), str(tmp_path / 'out'))
    assert status == 0 and '40 training and 40 test examples of 0, 1, 2, 3, 4, 5, 6 in' in stdout


@pytest.mark.parametrize(
    'num_files, num_classes, names, complaint',
    [
        (
            5,
            3,
            'a\nb\nc\n',
            '/batches.meta.txt is damaged (the number of class names is 3, not 10)',
        ),
        (1, 10, '', '/data_batch_2.bin is missing: restore it, or move'),
        (5, 13, '', '/data_batch_1.bin has labels that are not 0 to 9'),
        (6, 10, '', '/data_batch_6.bin is not a file of the published data set: move it away'),
    ],
)
def test_a_trainer_names_the_command(tmp_path, num_files, num_classes, names, complaint):
    own, run = tmp_path / 'my own', f'--train_dir={tmp_path / "run"}'
    counts = {f'data_batch_{i}.bin': 30 for i in range(1, num_files + 1)}
    write(own, dict(counts, **{'test_batch.bin': 30}), num_classes)
    if names:
        (own / 'batches.meta.txt').write_text(names)
    status, _, stderr = programs.call('cifar10_train', f'--data_dir={own}', run)
    faults.assert_one_line(stderr, complaint, f"`cifar10_dataset.py convert '{own}' OUT`")
    assert status == 1


@pytest.mark.parametrize(
    'change, complaint',
    [
        (
            lambda own: (own / 'data_batch_1.bin').write_bytes(b'x' * 3074),
            'data_batch_1.bin has an incomplete record: its 3074 bytes .* 3073: a record has 3072 bytes',
        ),
        (
            lambda own: (own / 'batches.meta.txt').write_text('a\nb\n'),
            r'has 2 class names, but labels that are not 0 to 1 \(count: 24, for example 2\): correct ',
        ),
        (
            lambda own: (own / 'batches.meta.txt').write_text('ä\nö\nü\n', encoding='latin-1'),
            "/batches.meta.txt is not UTF-8 .'utf-8' codec .*: save it as UTF-8",
        ),
        (
            lambda own: [(own / name).unlink() for name in BINARY_NAMES[:5]],
            'has no training images: write them to data_batch_1.bin',
        ),
        (
            lambda own: (own / 'batches.meta.txt').write_text('a\nb\nb\n'),
            'cannot be used .two classes have the same name.: correct the class names',
        ),
        (
            lambda own: [(own / name).write_bytes(b'') for name in BINARY_NAMES[:5]],
            'has no training images: write them to data_batch_1.bin',
        ),
    ],
)
def test_damaged_files(tmp_path, change, complaint):
    own = tmp_path / 'own'
    write(own, dict.fromkeys(BINARY_NAMES, 12), 3)
    change(own)
    status, _, stderr = programs.call('cifar10_dataset', 'convert', str(own), str(tmp_path / 'out'))
    assert status == 1 and not (tmp_path / 'out').exists()
    faults.assert_one_line(stderr, own)
    assert re.search(complaint, stderr), stderr
