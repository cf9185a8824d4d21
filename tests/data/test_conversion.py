"""Folders of images made into a data set: what is in the files, and that they are written whole or
not at all."""

import hashlib
import json
import os

import numpy as np
from PIL import Image
import pytest

from cifar10.data import conversion, dataset, description, verification
from cifar10.data.conversion import Options, convert
from cifar10.errors import UserError
from tests.helpers import oracle, pictures


def _keyed(labels, images):
    return sorted((int(label), image.tobytes()) for label, image in zip(labels, images))


def test_every_image_is_there_once_with_its_label(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['b', 'a', 'c d'], 20, size=(40, 50))
    out = str(tmp_path / 'out')
    convert(top, out, Options(test_fraction=0.25, seed=3), 2)
    found = dataset.read(out)
    assert (found.class_names, found.num_classes, found.directory) == (['a', 'b', 'c d'], 3, out)
    assert found.train.paths == [os.path.join(out, name) for name in dataset.TRAIN_FILES]
    parts = [oracle.read_records(records.paths) for records in (found.train, found.test)]
    assert [np.bincount(labels).tolist() for labels, _ in parts] == [[15] * 3, [5] * 3]
    wanted = {}
    for label, name in enumerate(['a', 'b', 'c d']):
        for i in range(20):
            with open(os.path.join(top, name, '%d.png' % i), 'rb') as content:
                wanted[label, i] = pictures.expected(content.read()).transpose(1, 2, 0)
    labels, images = [np.concatenate(arrays) for arrays in zip(*parts)]
    distances = [
        min((np.abs(image - picture.astype(int)).max(), key) for key, picture in wanted.items())
        for image in images
    ]
    assert max(distances)[0] <= 1 and sorted(key for _, key in distances) == sorted(wanted)
    assert [key[0] for _, key in distances] == labels.tolist()
    assert labels[:45].tolist() != sorted(labels[:45])  # in random order


def test_the_files_say_what_is_in_them(tmp_path, capsys):
    out = str(tmp_path / 'out')
    top = pictures.write(tmp_path / 'photos', ['no', 'yes'], 37)
    convert(top, out, Options(), 2)
    with open(os.path.join(out, 'dataset.json')) as opened:
        said = json.load(opened)
    assert said['classes'] == ['no', 'yes'] and said['label_bytes'] == 1
    assert said['origin'] == '%s, converted with --seed=0' % top
    assert {name: about['examples'] for name, about in said['train'].items()} == dict(
        zip(dataset.TRAIN_FILES, [14, 14, 14, 14, 10])
    )
    assert {name: about['examples'] for name, about in said['test'].items()} == {
        'test_batch.bin': 8
    }
    for name, about in dict(said['train'], **said['test']).items():
        with open(os.path.join(out, name), 'rb') as opened:
            content = opened.read()
        assert (
            len(content) == 3073 * about['examples']
            and hashlib.sha256(content).hexdigest() == about['sha256']
        )
    with open(os.path.join(out, 'batches.meta.txt')) as names:
        assert names.read() == 'no\nyes\n'
    assert sorted(os.listdir(out)) == sorted(
        list(said['train']) + ['test_batch.bin', 'dataset.json', 'batches.meta.txt']
    )
    assert capsys.readouterr().out.splitlines()[-1].startswith('Converting 100%: 74 of 74 images, ')


def test_a_repetition_gives_the_same_bytes(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 30)
    for name, seed, threads in [('first', 1, 1), ('second', 1, 3), ('third', 2, 2)]:
        convert(top, str(tmp_path / name), Options(seed=seed), threads)
    first, second, third = (
        [(tmp_path / name / data).read_bytes() for data in dataset.TRAIN_FILES]
        for name in ('first', 'second', 'third')
    )
    assert first == second != third


@pytest.mark.parametrize('num_classes, label_bytes', [(256, 1), (257, 2)])
def test_two_label_bytes_for_many_classes(tmp_path, num_classes, label_bytes):
    names = ['%03d' % i for i in range(num_classes)]
    for i, name in enumerate(names):
        (tmp_path / 'photos' / name).mkdir(parents=True)
        for j in range(2):
            Image.new('RGB', (32, 32), (i % 256, i // 256, j)).save(
                str(tmp_path / 'photos' / name / ('%d.bmp' % j))
            )
    convert(str(tmp_path / 'photos'), str(tmp_path / 'out'), Options(), 2)
    found = dataset.read(str(tmp_path / 'out'))
    assert (
        found.num_classes == num_classes
        and verification.verify(found.train) == verification.verify(found.test) == num_classes
    )
    for records in (found.train, found.test):
        rows = np.concatenate([np.fromfile(path, np.uint8) for path in records.paths]).reshape(
            -1, label_bytes + 3072
        )
        labels = rows[:, 0] if label_bytes == 1 else rows[:, 0].astype(int) * 256 + rows[:, 1]
        colors = rows[:, label_bytes:].reshape(-1, 3, 1024)[:, :, 0]
        np.testing.assert_array_equal(labels, colors[:, 0] + 256 * colors[:, 1].astype(int))
        np.testing.assert_array_equal(np.bincount(labels), [1] * num_classes)


@pytest.mark.parametrize('num_classes, counts', [(2, [1, 1]), (3, [1, 1, 1])])
def test_fewer_images_than_files(tmp_path, num_classes, counts):
    """No file is empty."""
    convert(
        pictures.write(tmp_path / 'photos', 'abc'[:num_classes], 2),
        str(tmp_path / 'out'),
        Options(),
        2,
    )
    found = dataset.read(str(tmp_path / 'out'))
    assert [file.num_examples for file in found.train.files] == counts
    assert verification.verify(found.train) == num_classes


def _damage(top, *paths):
    for path in paths:
        with open(os.path.join(top, path), 'w') as damaged:
            damaged.write('text')


def test_damaged_files_are_left_out(tmp_path, capsys):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 10)
    _damage(top, 'a/3.png', 'b/7.png')
    assert convert(top, str(tmp_path / 'out'), Options(), 2) == 2
    told = sorted(line.split(': ', 1)[1] for line in capsys.readouterr().err.splitlines())
    assert told == [
        '%s is left out: it is no JPEG, PNG, GIF or BMP file' % os.path.join(top, name)
        for name in ('a/3.png', 'b/7.png')
    ]
    found = dataset.read(str(tmp_path / 'out'))
    assert verification.verify(found.train) + verification.verify(found.test) == 18


def test_strict(tmp_path, capsys):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 10)
    _damage(top, 'a/3.png')
    with pytest.raises(
        UserError,
        match=r'^Nothing was written because of damaged files \(1\): repair or remove them, or ',
    ):
        convert(top, str(tmp_path / 'out'), Options(strict=True), 2)
    assert (
        os.listdir(str(tmp_path)) == ['photos']
        and 'a/3.png is left out: ' in capsys.readouterr().err
    )
    convert(
        pictures.write(tmp_path / 'whole', ['a', 'b'], 10),
        str(tmp_path / 'out'),
        Options(strict=True),
        2,
    )


@pytest.mark.parametrize(
    'damaged, complaint',
    [
        (
            ['train/b/0.png', 'train/b/1.png'],
            '^The class b has no image for training that can be used: add images, or remove its folder$',
        ),
        (
            ['test/a/0.png', 'test/a/1.png', 'test/b/0.png', 'test/b/1.png'],
            '^No image for the test can be used: add images$',
        ),
    ],
)
def test_too_many_damaged_files(tmp_path, damaged, complaint):
    for part in ('train', 'test'):
        pictures.write(tmp_path / 'photos' / part, ['a', 'b'], 2)
    _damage(str(tmp_path / 'photos'), *damaged)
    with pytest.raises(UserError, match=complaint):
        convert(str(tmp_path / 'photos'), str(tmp_path / 'out'), Options(), 2)
    assert os.listdir(str(tmp_path)) == ['photos']


@pytest.mark.parametrize(
    'out', ['photos/out', 'photos/a/new/out', 'link/out', 'photos/../photos/out']
)
def test_not_among_the_images(tmp_path, out):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 2)
    (tmp_path / 'link').symlink_to('photos')
    for images_dir in (top, str(tmp_path / 'link')):
        with pytest.raises(
            UserError,
            match='^%s is in %s, and would be one of its folders: ' % (tmp_path / out, images_dir),
        ):
            convert(images_dir, str(tmp_path / out), Options(), 2)
    assert sorted(os.listdir(top)) == ['a', 'b'] and sorted(os.listdir(top + '/a')) == [
        '0.png',
        '1.png',
    ]
    convert(top, str(tmp_path / 'photos_out'), Options(), 2)


def test_parents_that_were_made_for_nothing_are_removed(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 2)
    _damage(top, 'a/0.png')
    (tmp_path / 'empty').mkdir()
    with pytest.raises(UserError, match='^Nothing was written because of damaged files'):
        convert(top, str(tmp_path / 'empty' / 'new' / 'newer' / 'out'), Options(strict=True), 2)
    assert (
        sorted(os.listdir(str(tmp_path))) == ['empty', 'photos']
        and os.listdir(str(tmp_path / 'empty')) == []
    )
    convert(
        pictures.write(tmp_path / 'whole', ['a', 'b'], 2),
        str(tmp_path / 'empty' / 'new' / 'out'),
        Options(strict=True),
        2,
    )
    assert os.listdir(str(tmp_path / 'empty' / 'new')) == ['out']


def test_what_exists_is_not_replaced(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 3)
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'precious').write_text('precious')
    (tmp_path / 'file').write_text('precious')
    (tmp_path / 'link').symlink_to('nowhere')
    for name in ('full', 'file', 'link'):
        with pytest.raises(
            UserError, match='^%s exists: give the name of a new directory$' % (tmp_path / name)
        ):
            convert(top, str(tmp_path / name), Options(), 2)
    assert (
        (tmp_path / 'full' / 'precious').read_text()
        == (tmp_path / 'file').read_text()
        == 'precious'
    )
    assert sorted(os.listdir(str(tmp_path))) == ['file', 'full', 'link', 'photos']
    (tmp_path / 'empty').mkdir()
    convert(top, str(tmp_path / 'empty') + os.sep, Options(), 2)
    assert verification.verify(dataset.read(str(tmp_path / 'empty')).train) == 4


def test_an_error_leaves_nothing_behind(tmp_path, monkeypatch):
    """As an interruption does."""
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 3)

    def interrupted(*unused_args, **unused_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(description, 'write', interrupted)
    with pytest.raises(KeyboardInterrupt):
        conversion.convert(top, str(tmp_path / 'out'), Options(), 2)
    assert os.listdir(str(tmp_path)) == ['photos']
