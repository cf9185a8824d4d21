"""The output of `info`, against NumPy."""

import re

import numpy as np

from cifar10.data import conversion, dataset, dataset_info
from tests.helpers import oracle, pictures, programs


def test_counts(data_dir):
    status, stdout, stderr = programs.call('cifar10_dataset', 'info', '--data_dir=' + data_dir)
    assert (status, stderr) == (0, '')
    rows = re.findall(r'^(\S+) +(\d+) +(\d+)$', stdout, re.M)
    found = dataset.read(data_dir)
    (train, _), (test, _) = (oracle.read_records(split.paths) for split in found.splits)
    expected = [
        (name, str((train == label).sum()), str((test == label).sum()))
        for label, name in enumerate(found.class_names)
    ]
    assert rows == [*expected, ('all', '300', '50')]
    assert stdout.splitlines()[-1].startswith('300 training and 50 test examples of disc, ')


def test_images_in_both_parts(own_data_dir, monkeypatch):
    """In FIPS mode, as elsewhere."""
    monkeypatch.delattr('hashlib.md5')
    found = dataset.read(own_data_dir)
    rows = [np.fromfile(path, np.uint8).reshape(-1, 3073) for path in found.train.paths]
    tested = np.fromfile(found.test.paths[0], np.uint8).reshape(-1, 3073)
    tested[7, 1:], tested[9, 1:], tested[30] = rows[1][5, 1:], rows[1][5, 1:], rows[4][59]
    rows[2][8] = rows[1][5]  # the output names the first one
    tested.tofile(found.test.paths[0])
    rows[2].tofile(found.train.paths[2])
    assert dataset_info.find_duplicates(found) == [
        ('test_batch.bin:7', tested[7, 0], 'data_batch_2.bin:5', rows[1][5, 0]),
        ('test_batch.bin:9', tested[9, 0], 'data_batch_2.bin:5', rows[1][5, 0]),
        ('test_batch.bin:30', tested[30, 0], 'data_batch_5.bin:59', rows[4][59, 0]),
    ]
    report = dataset_info.describe(found)
    assert 'Test images that are also training images: 3\n' in report
    names = found.class_names
    assert (
        f'  test_batch.bin:7 ({names[tested[7, 0]]}) is data_batch_2.bin:5 ({names[rows[1][5, 0]]})'
        in report
    )


def test_the_image_files_of_images_in_both_parts(tmp_path):
    """The names are those of `convert`, with the folder of the split."""
    for split_name, seed in [('train', 0), ('test', 1)]:
        for i, class_name in enumerate(['a', 'b']):
            folder = tmp_path / 'photos' / split_name / class_name
            folder.mkdir(parents=True)
            pictures.noise(32, 32, seed=10 * i).save(str(folder / 'same.png'))
            pictures.noise(32, 32, seed=10 * i + seed + 1).save(str(folder / 'other.png'))
    conversion.convert(str(tmp_path / 'photos'), str(tmp_path / 'out'), print)
    lines = dataset_info.describe(dataset.read(str(tmp_path / 'out'))).splitlines()
    assert 'Test images that are also training images: 2' in lines
    assert sorted(lines[-2:]) == [
        '  test/a/same.png (a) is train/a/same.png (a)',
        '  test/b/same.png (b) is train/b/same.png (b)',
    ]
