"""The output of `info`, against NumPy and Pillow."""

import os
import re

import numpy as np
from PIL import Image
import pytest

from cifar10.data import conversion, dataset, dataset_info
from tests.helpers import oracle, pictures, programs


def _figures(text):
    """Return the rows of two numbers by name."""
    return {
        name.strip(): (float(first), float(second))
        for name, first, second in re.findall(r'^(\S.*?) +([\d.]+) +([\d.]+)$', text, re.M)
    }


def test_counts_and_colours(data_dir):
    found = dataset.read(data_dir)
    figures = _figures(dataset_info.describe(found))
    for column, split in enumerate((found.train, found.test)):
        labels, images = oracle.read_records(split.paths)
        for label, name in enumerate(found.class_names):
            assert figures[name][column] == (labels == label).sum()
        assert figures['all'][column] == len(labels)
        for channel, color in enumerate(['red', 'green', 'blue']):
            values = images[..., channel].astype(np.float64)
            np.testing.assert_allclose(
                figures['mean of ' + color][column], values.mean(), atol=0.006
            )
            np.testing.assert_allclose(
                figures['deviation of ' + color][column], values.std(), atol=0.006
            )
    assert len(figures) == 17


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
    conversion.convert(str(tmp_path / 'photos'), str(tmp_path / 'out'), 2, print)
    lines = dataset_info.describe(dataset.read(str(tmp_path / 'out'))).splitlines()
    assert 'Test images that are also training images: 2' in lines
    assert sorted(lines[-2:]) == [
        '  test/a/same.png (a) is train/a/same.png (a)',
        '  test/b/same.png (b) is train/b/same.png (b)',
    ]


def test_many_images_in_both_parts(own_data_dir):
    found = dataset.read(own_data_dir)
    os.remove(found.test.paths[0])
    os.link(found.train.paths[0], found.test.paths[0])
    lines = dataset_info.describe(dataset.read(own_data_dir)).splitlines()
    assert (
        'Test images that are also training images: 60' in lines
        and lines[-1] == '  and 50 more'
        and len(lines) == 30
    )


def test_the_contact_sheet(own_data_dir, tmp_path):
    """A row per class: first training images, gap, first test images."""
    path = tmp_path / 'sheet.png'
    status, stdout, stderr = programs.call(
        'cifar10_dataset', 'info', '--data_dir=' + own_data_dir, f'--contact_sheet_file={path}'
    )
    assert (status, stderr) == (0, '') and str(path) in stdout
    assert stdout.splitlines()[-1].startswith('300 training and 50 test examples of disc, ')
    sheet = np.asarray(Image.open(str(path)))
    assert sheet.shape == (10 * 68, 17 * 68, 3)
    found = dataset.read(own_data_dir)
    for split, first, count in [(found.train, 0, 12), (found.test, 13, 4)]:
        labels, images = oracle.read_records(split.paths)
        for label in range(10):
            for i, image in enumerate(images[labels == label][:count]):
                top, left = label * 68 + 2, (first + i) * 68 + 2
                enlarged = image.repeat(2, 0).repeat(2, 1)
                np.testing.assert_array_equal(sheet[top : top + 64, left : left + 64], enlarged)
    assert (sheet[:, 12 * 68 : 13 * 68] == 255).all()


@pytest.mark.parametrize('name, kind', [('sheet.JPEG', 'JPEG'), ('sheet.Png', 'PNG')])
def test_the_ending_chooses_the_format(data_dir, tmp_path, name, kind):
    dataset_info.write_contact_sheet(dataset.read(data_dir), str(tmp_path / name))
    assert Image.open(str(tmp_path / name)).format == kind
