"""Conversion of folders of images: splits, labels, files."""

import csv
import hashlib
import json
import os

import numpy as np
from PIL import Image
import pytest

from cifar10.data import conversion, dataset, dataset_writer, verification
from cifar10.data.conversion import convert
from tests.helpers import listing, messages, oracle, pictures


def _touch(top, *paths):
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text('')
    return str(top)


def _numbered(folder, count):
    return [f'{folder}/{i:02}.jpg' for i in range(count)]


def _names(top, part):
    return sorted((os.path.relpath(path, top), label) for path, label in part)


def test_classes_are_the_folders_in_sorted_order(tmp_path, capsys):
    counts = [('Ape', 10), ('zebra', 20), ('\u732b with space', 30)]
    top = _touch(tmp_path, *(path for folder in reversed(counts) for path in _numbered(*folder)))
    class_names, train, test = conversion.find_images(top, None, 0)
    assert class_names == [name for name, _ in counts]
    assert [sum(label == wanted for _, label in test) for wanted in range(3)] == [1, 2, 3]
    wanted = [(path, label) for label, folder in enumerate(counts) for path in _numbered(*folder)]
    assert _names(top, train + test) == sorted(wanted)
    labels = [label for _, label in train]
    assert labels != sorted(labels)  # in random order
    assert capsys.readouterr().err == ''


@pytest.mark.parametrize(
    'count, fraction, num_test', [(1, 0.5, 0), (2, 0.1, 1), (2, 0.9, 1), (10, 0.36, 4)]
)
def test_the_test_fraction_of_a_class(tmp_path, count, fraction, num_test):
    """The class folders may be in a folder `train`."""
    top = _touch(tmp_path, *(_numbered('train/a', count) + _numbered('train/b', 10)))
    _, train, test = conversion.find_images(top, fraction, 0)
    assert sum(label == 0 for _, label in test) == num_test
    assert len(train) + len(test) == count + 10


def test_train_and_test_folders(tmp_path):
    train = _numbered('Train/a', 3) + _numbered('Train/b', 4)
    test = _numbered('test/b', 5)
    top = _touch(tmp_path, *(train + test))
    class_names, *parts = conversion.find_images(top, None, 0)
    assert class_names == ['a', 'b']
    assert _names(top, parts[0]) == [(path, int('/b/' in path)) for path in train]
    assert _names(top, parts[1]) == [(path, 1) for path in test]
    with messages.raises(f'^--test_fraction has no effect, because {top}/test'):
        conversion.find_images(top, 0.1, 0)


def test_links_and_folders_below(tmp_path, capsys):
    """A link can lead to a class, to images in a class, or in a circle."""
    top = tmp_path / 'top'
    _touch(top, 'a/1.jpg', 'a/below/deep/2.jpg', '.cache/3.jpg')
    _touch(tmp_path / 'elsewhere', *_numbered('phone', 12), 'cats/6.jpg')
    (top / 'a' / 'from_phone').symlink_to(tmp_path / 'elsewhere' / 'phone')
    (top / 'a' / 'link').symlink_to('1.jpg')
    (top / 'c').symlink_to(tmp_path / 'elsewhere' / 'cats')
    class_names, train, test = conversion.find_images(str(top), 0.5, 0)
    assert class_names == ['a', 'c'] and capsys.readouterr().err == ''
    paths = ['a/1.jpg', 'a/below/deep/2.jpg', *_numbered('a/from_phone', 12), 'a/link']
    assert _names(str(top), train + test) == [(path, 0) for path in paths] + [('c/6.jpg', 1)]
    for target in ('..', '../below'):  # a circle; the same images again
        (top / 'a' / 'below' / 'again').symlink_to(target)
        with messages.raises(
            f' and {top}/a.* are one directory, because of a link: remove the link$'
        ):
            conversion.find_images(str(top), 0.5, 0)
        (top / 'a' / 'below' / 'again').unlink()


def test_hidden_entries_are_counted(tmp_path, capsys):
    """Not those that a file server or a file manager has added."""
    added = ['a/.DS_Store', 'a/._1.jpg', 'a/Thumbs.db', 'a/@eaDir/1.jpg', 'b/.Trash-1000/3.jpg']
    added += ['@eaDir/a/1.jpg', 'Thumbs.db', 'b/.cifar10.lock']
    hidden = ['a/.mine.jpg', 'b/.more/2.jpg', 'b/.more/3.jpg']
    top = _touch(tmp_path, 'a/1.jpg', 'a/2.jpg', 'b/1.jpg', 'b/2.jpg', *added)
    _, train, test = conversion.find_images(top, 0.5, 0)
    assert len(train + test) == 4 and capsys.readouterr().err == ''
    _touch(tmp_path, *hidden)
    _, train, test = conversion.find_images(top, 0.5, 0)
    line = f'{top}/a/.mine.jpg is left out, because it is hidden (left out: 2)\n'
    assert len(train + test) == 4 and capsys.readouterr().err.endswith(line)


def test_class_names_that_look_equal(tmp_path):
    """In the forms NFC and NFD of Unicode, as of Linux and of a Mac. The files keep their names."""
    nfc, nfd = 'caf\u00e9', 'cafe\u0301'
    top = _touch(tmp_path / 'split', f'train/{nfc}/1', 'train/b/1', f'test/{nfd}/2', 'test/b/2')
    class_names, train, test = conversion.find_images(top, None, 0)
    assert class_names == ['b', nfc]
    assert _names(top, test) == [('test/b/2', 0), (f'test/{nfd}/2', 1)]
    top = _touch(tmp_path / 'both', f'{nfc}/1', f'{nfd}/2', f'{nfd}/3', 'b/1', 'b/2')
    class_names, train, test = conversion.find_images(top, 0.5, 0)
    assert class_names == ['b', nfc]
    assert len([label for _, label in train + test if label == 1]) == 3


def test_class_names_of_another_encoding(tmp_path):
    """As a ZIP file of Windows has them; the remedy unpacks it."""
    top = os.fsencode(str(tmp_path))
    for name in ('\u72d7'.encode('gbk'), b'dog'):
        os.mkdir(os.path.join(top, name))
    _touch(tmp_path, 'dog/1.jpg')
    with messages.raises('^The folders of .* cannot be classes .*encoding=gbk -e FILE.zip OUT`$'):
        conversion.find_images(str(tmp_path), None, 0)


def test_files_beside_the_folders_are_named(tmp_path, capsys):
    top = _touch(tmp_path, 'labels.csv', 'x.jpg', 'y.jpg', 'a/1', 'a/2', 'b/1', 'b/2')
    conversion.find_images(top, 0.5, 0)
    (warnings,) = capsys.readouterr().err.splitlines()
    assert 'labels.csv is ignored, because it is in no class folder (ignored files: 3)' in warnings


@pytest.mark.parametrize(
    'paths, complaint',
    [
        ([], '^{top} does not exist: give a directory with one folder of images per class'),
        (['a/1'], '^The folders of {top} cannot be classes \\(the number of classes is 1, not'),
        (['a/1', 'b/.hidden'], '^{top}/b has no files: add images, or remove it$'),
        (['a/1', 'TEST/a/1'], "^{top} has the folders 'TEST', 'a': it must have only train"),
        (['train/a/1', 'test/a/1', 'val/a/1'], "has the folders 'test', 'train', 'val': "),
        (['carsTrain/1', 'carsTest/1'], "has the folders 'carsTest', 'carsTrain': "),
        (['train/a/1', 'validate/a/1'], "has the folders 'train', 'validate': "),
        (['Training Data/a/1', 'val2017/a/1'], "has the folders 'Training Data', 'val2017': "),
        (['cars_trainset/a/1', 'cars_test/a/1', 'x/1'], "has the folders 'cars_test', 'cars_tr"),
        (['cat/1', 'dog/1', 'test/1'], "has the folders 'cat', 'dog', 'test': "),
        (['train/a/1', 'train/b/1', 'test/c/1'], '^{top}/test/c is not a class of the train'),
        (['a/1', 'b/1'], '^There is no test image: .* to {top}, at least two per class$'),
        (['train/a/1', 'train/b/1', 'test/.x'], '^There is no test image: .* to {top}/test$'),
    ],
)
def test_invalid_folders(tmp_path, paths, complaint):
    top = _touch(tmp_path / 'top', *paths) if paths else str(tmp_path / 'nothing')
    with messages.raises(complaint.format(top=top)):
        conversion.find_images(top, None, 0)


def test_every_image_is_there_once_with_its_label(tmp_path, capsys):
    top = pictures.write(tmp_path / 'photos', ['b', 'a', 'c d'], 20, size=(40, 50))
    out = str(tmp_path / 'out')
    assert convert(top, out, print, 0.25, 3) == 0
    found = dataset.read(out)
    assert (found.class_names, found.directory) == (['a', 'b', 'c d'], out)
    parts = [oracle.read_records(split.paths) for split in (found.train, found.test)]
    assert [np.bincount(labels).tolist() for labels, _ in parts] == [[15] * 3, [5] * 3]
    wanted = {}
    for label, name in enumerate(['a', 'b', 'c d']):
        for i in range(20):
            with Image.open(os.path.join(top, name, f'{i}.png')) as image:
                wanted[label, i] = pictures.scaled(np.asarray(image))
    labels, images = [np.concatenate(arrays) for arrays in zip(*parts)]
    distances = [
        min((np.abs(image - picture).max(), key) for key, picture in wanted.items())
        for image in images
    ]
    assert max(distances)[0] <= 1.01 and sorted(key for _, key in distances) == sorted(wanted)
    assert [key[0] for _, key in distances] == labels.tolist()
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith('Converting 100%: 60 of 60 images, ')


def test_dataset_json(tmp_path):
    out = tmp_path / 'out'
    top = pictures.write(tmp_path / 'photos', ['no', 'yes'], 37)
    assert convert(top, str(out), print) == 0
    said = json.loads((out / 'dataset.json').read_text())
    assert said['classes'] == ['no', 'yes']
    counts = dict(zip(dataset.TRAIN_FILES + dataset.TEST_FILES, [14, 14, 14, 14, 10, 8]))
    files = dict(said['train'], **said['test'])
    assert {name: about['examples'] for name, about in files.items()} == counts
    for name, about in files.items():
        content = (out / name).read_bytes()
        assert len(content) == 3073 * about['examples']
        assert hashlib.sha256(content).hexdigest() == about['sha256']
    assert (out / 'batches.meta.txt').read_text() == 'no\nyes\n'


def test_a_repetition_gives_the_same_bytes(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 10)
    for name, seed in [('first', 1), ('second', 1), ('third', 2)]:
        convert(top, str(tmp_path / name), print, seed=seed)
    first, second, third = (
        [(tmp_path / name / data).read_bytes() for data in dataset.TRAIN_FILES]
        for name in ('first', 'second', 'third')
    )
    assert first == second != third


def test_no_more_classes_than_a_byte_has_values(tmp_path):
    for i in range(256):
        folder = tmp_path / 'photos' / (f'{i:03}')
        folder.mkdir(parents=True)
        for j in range(2):
            Image.new('RGB', (32, 32), (i, 0, j)).save(str(folder / (f'{j}.bmp')))
    convert(str(tmp_path / 'photos'), str(tmp_path / 'out'), print)
    found = dataset.read(str(tmp_path / 'out'))
    for split in (found.train, found.test):
        labels, images = oracle.read_records(split.paths)
        np.testing.assert_array_equal(labels, images[:, 0, 0, 0])
        assert sorted(labels) == list(range(256))
    (tmp_path / 'photos' / '256').mkdir()
    with messages.raises(
        f'^The folders of {tmp_path}/photos cannot be classes .the number of classes is 257, not '
        '2 to 256.: make one folder of images per class, at most 256$'
    ):
        convert(str(tmp_path / 'photos'), str(tmp_path / 'more'), print)


def _damage(top, *paths):
    for path in paths:
        with open(os.path.join(top, path), 'w') as damaged:
            damaged.write('text')


def test_damaged_files_are_left_out(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 4)
    _damage(top, 'a/3.png', 'b/2.png')
    assert convert(top, str(tmp_path / 'out'), print) == 2
    found = verification.verify(dataset.read(str(tmp_path / 'out')))
    assert found.train.num_examples + found.test.num_examples == 6


def test_the_image_file_of_each_example_is_known(tmp_path):
    """Also after `holdout`. A damaged file has no example."""
    top = pictures.write(tmp_path / 'photos', ['a,b', 'c "d"'], 20)
    for name in ('new\nline', 'return\r'):
        os.rename(
            os.path.join(top, 'a,b', f'{len(name)}.png'), os.path.join(top, 'a,b', f'{name}.png')
        )
    _damage(top, 'a,b/3.png')
    convert(top, str(tmp_path / 'out'), print, 0.25)
    dataset_writer.hold_out(dataset.read(str(tmp_path / 'out')), str(tmp_path / 'held'), 6, 0)
    for directory, counts in [('out', [29, 10]), ('held', [23, 6])]:
        found = dataset.read(str(tmp_path / directory))
        for split, count, name in zip([found.train, found.test], counts, ['train', 'test']):
            labels, images = oracle.read_records(split.paths)
            with open(str(tmp_path / directory / f'{name}_images.csv'), newline='') as file:
                header, *rows = csv.reader(file)
            assert header == ['index', 'file', 'class'] and len(rows) == len(labels) == count
            for i, (index, image_file, class_name) in enumerate(rows):
                assert int(index) == i and class_name == found.class_names[labels[i]]
                assert image_file.startswith(class_name + '/')
                path = os.path.join(top, image_file.replace(r'\n', '\n').replace(r'\r', '\r'))
                picture = np.asarray(Image.open(path))
                np.testing.assert_array_equal(images[i], picture)
            assert split.image_files() == {int(row[0]): row[1] for row in rows}


@pytest.mark.parametrize(
    'damaged, complaint',
    [
        (['train/b/0.png'], '^The class b has no usable training image: add images, or '),
        (['test/a/0.png', 'test/b/0.png'], '^There is no usable test image: add images$'),
    ],
)
def test_too_many_damaged_files(tmp_path, damaged, complaint):
    for part in ('train', 'test'):
        pictures.write(tmp_path / 'photos' / part, ['a', 'b'], 1)
    _damage(str(tmp_path / 'photos'), *damaged)
    with messages.raises(complaint):
        convert(str(tmp_path / 'photos'), str(tmp_path / 'out'), print)
    assert listing.names(tmp_path) == ['photos']


def test_not_among_the_images(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 2)
    (tmp_path / 'link').symlink_to('photos')
    for out in ('photos/a/new/out', 'link/out'):
        with messages.raises(f'/out is in {top}: give a directory outside it'):
            convert(top, str(tmp_path / out), print)
    convert(top, str(tmp_path / 'photos_out'), print)


def test_existing_paths_are_not_replaced(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 3)
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'precious').write_text('precious')
    (tmp_path / 'file').write_text('precious')
    (tmp_path / 'link').symlink_to('empty')
    (tmp_path / 'empty').mkdir()
    for name in ('full', 'file', 'link'):
        path = str(tmp_path / name)
        with messages.raises(f'^{path} exists: give the name of a new '):
            convert(top, path, print)
    convert(top, str(tmp_path / 'empty') + os.sep, print)
    found = dataset.read(str(tmp_path / 'empty'))
    assert verification.verify(found).train.num_examples == 4
