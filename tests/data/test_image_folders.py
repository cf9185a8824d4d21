"""Which files of which folders make which part of a data set."""

import os

import pytest

from cifar10.data import image_folders
from cifar10.errors import UserError


def _touch(top, *paths):
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text('')
    return str(top)


def _numbered(folder, count):
    return ['%s/%02d.jpg' % (folder, i) for i in range(count)]


def _names(top, part):
    return sorted((os.path.relpath(path, top), label) for path, label in part)


def test_classes_are_the_folders_in_sorted_order(tmp_path, capsys):
    top = _touch(
        tmp_path,
        *(_numbered('zebra', 20) + _numbered('Ape', 10) + _numbered('\u732b with space', 30)),
    )
    found = image_folders.read(top, 0.1, 0)
    assert found.class_names == ['Ape', 'zebra', '\u732b with space']
    assert [sum(label == wanted for _, label in found.test) for wanted in range(3)] == [1, 2, 3]
    assert _names(top, found.train + found.test) == sorted(
        (name, label)
        for label, (folder, count) in enumerate(
            [('Ape', 10), ('zebra', 20), ('\u732b with space', 30)]
        )
        for name in _numbered(folder, count)
    )
    labels = [label for _, label in found.train]
    assert labels != sorted(labels)  # in random order
    assert capsys.readouterr().err == ''


def test_the_seed_chooses(tmp_path):
    top = _touch(tmp_path, *(_numbered('a', 50) + _numbered('b', 50)))
    first, same, other = (image_folders.read(top, 0.2, seed) for seed in (1, 1, 2))
    assert first == same and set(first.test) != set(other.test) and first.train != other.train


@pytest.mark.parametrize(
    'count, fraction, num_test',
    [
        (1, 0.5, 0),
        (2, 0.1, 1),
        (2, 0.9, 1),
        (3, 0.99, 2),
        (10, 0.05, 1),
        (10, 0.25, 2),
        (10, 0.36, 4),
    ],
)
def test_the_test_fraction_of_a_class(tmp_path, count, fraction, num_test):
    found = image_folders.read(
        _touch(tmp_path, *(_numbered('a', count) + _numbered('b', 10))), fraction, 0
    )
    assert sum(label == 0 for _, label in found.test) == num_test
    assert len(found.train) + len(found.test) == count + 10


def test_train_and_test_folders(tmp_path):
    top = _touch(
        tmp_path, *(_numbered('train/a', 3) + _numbered('train/b', 4) + _numbered('test/b', 5))
    )
    found = image_folders.read(top, None, 0)
    assert found.class_names == ['a', 'b']
    assert _names(top, found.train) == sorted(
        [(name, 0) for name in _numbered('train/a', 3)]
        + [(name, 1) for name in _numbered('train/b', 4)]
    )
    assert _names(top, found.test) == [(name, 1) for name in _numbered('test/b', 5)]


def test_a_train_folder_alone(tmp_path):
    top = _touch(tmp_path, *(_numbered('train/a', 10) + _numbered('train/b', 10)))
    found = image_folders.read(top, 0.3, 0)
    assert found.class_names == ['a', 'b'] and (len(found.train), len(found.test)) == (14, 6)


def test_hidden_files_folders_below_and_links(tmp_path):
    top = tmp_path / 'top'
    _touch(
        top,
        'a/1.jpg',
        'a/.hidden',
        'a/.git/config',
        'a/below/deep/2.jpg',
        '.cache/3.jpg',
        'b/4.jpg',
        'b/5.jpg',
    )
    (top / 'a' / 'circle').symlink_to('..')
    (top / 'a' / 'file link').symlink_to('1.jpg')
    _touch(tmp_path / 'elsewhere', '6.jpg')
    (top / 'c').symlink_to(tmp_path / 'elsewhere')
    found = image_folders.read(str(top), 0.5, 0)
    assert found.class_names == ['a', 'b', 'c']
    assert [name for name, label in _names(str(top), found.train + found.test) if label == 2] == [
        'c/6.jpg'
    ]
    assert {'a/1.jpg', 'a/below/deep/2.jpg', 'a/file link'} <= {
        name for name, _ in _names(str(top), found.train + found.test)
    }
    assert not any('/.' in name for name, _ in _names(str(tmp_path), found.train + found.test))


def test_files_beside_the_folders_are_named(tmp_path, capsys):
    image_folders.read(
        _touch(tmp_path, 'labels.csv', 'x.jpg', 'y.jpg', 'a/1', 'a/2', 'b/1', 'b/2'), 0.5, 0
    )
    (told,) = capsys.readouterr().err.splitlines()
    assert told.endswith(
        '%s is not in the folder of a class, and not used; nor are 2 other files there'
        % (tmp_path / 'labels.csv')
    )


@pytest.mark.parametrize(
    'paths, complaint',
    [
        (
            [],
            '^{top} does not exist: give a directory that holds a folder of images for each class$',
        ),
        (
            ['a/1'],
            '^The folders of {top} cannot be classes: it has 1 classes, not 2 to 65536. Make a folder for each class, ',
        ),
        (['1.jpg', '2.jpg'], 'it has 0 classes, not 2'),
        (['a/1', 'b/.hidden'], '^{top}/b holds no file: put images there, or remove it$'),
        (
            ['a/1', 'test/a/1'],
            "^{top} has the folders 'a', 'test': there must be train and test, in upper or lower case, and ",
        ),
        (
            ['train/a/1', 'test/a/1', 'val/a/1'],
            "^{top} has the folders 'test', 'train', 'val': there must be train and test, ",
        ),
        (
            ['train/a/1', 'val/a/1'],
            "^{top} has the folders 'train', 'val': there must be train and test, ",
        ),
        (
            ['training/a/1', 'testing/a/1'],
            "^{top} has the folders 'testing', 'training': there must be train and test, ",
        ),
        (['train/a/1', 'dev/a/1'], "^{top} has the folders 'dev', 'train': there must be "),
        (
            ['Train/a/1', 'train/a/1', 'test/a/1'],
            "^{top} has the folders 'Train', 'test', 'train': there must be ",
        ),
        (
            ['train_images/a/1', 'testset/a/1'],
            "^{top} has the folders 'testset', 'train_images': there must be ",
        ),
        (
            ['Training Data/a/1', 'val2017/a/1'],
            "^{top} has the folders 'Training Data', 'val2017': there must be ",
        ),
        (
            ['TEST/a/1', 'cat/1', 'dog/1'],
            "^{top} has the folders 'TEST', 'cat', 'dog': there must be ",
        ),
        (
            ['Valid/a/1', 'eval/a/1', 'ship/1'],
            "^{top} has the folders 'Valid', 'eval', 'ship': there must be ",
        ),
        (
            ['seg_train/a/1', 'seg_test/a/1', 'seg_pred/1'],
            "^{top} has the folders 'seg_pred', 'seg_test', 'seg_train': there must be ",
        ),
        (
            ['TrainData/a/1', 'TestData/a/1'],
            "^{top} has the folders 'TestData', 'TrainData': there must be ",
        ),
        (
            ['traindata/a/1', 'testdata/a/1', 'about/1'],
            "^{top} has the folders 'about', 'testdata', 'traindata': there must be ",
        ),
        (
            ['cat/1', 'test2/a/1', 'train/a/1'],
            "^{top} has the folders 'cat', 'test2', 'train': there must be ",
        ),
        (
            ['train/a/1', 'cross-validation/a/1'],
            "^{top} has the folders 'cross-validation', 'train': there must be ",
        ),
        (
            ['Train/a/1', 'Train/b/1', 'TEST/c/1'],
            '^{top}/TEST/c is not a class of the training images: rename it',
        ),
        (
            ['a/1', 'b/1'],
            '^{top} has only one image of each class, and none is left for the test: add images$',
        ),
        (['a/1', 'b\x1b[31m/1'], 'has control characters: give another name$'),
        (['a/1', 'right\u202eleft/1'], r"a class cannot be called 'right\\u202eleft'"),
    ],
)
def test_folders_that_make_no_data_set(tmp_path, paths, complaint):
    top = _touch(tmp_path / 'top', *paths) if paths else str(tmp_path / 'nothing')
    with pytest.raises(UserError, match=complaint.format(top=top)):
        image_folders.read(top, None, 0)


def test_a_test_fraction_beside_a_folder_of_test_images(tmp_path):
    top = _touch(
        tmp_path, *(_numbered('train/a', 3) + _numbered('train/b', 4) + _numbered('test/b', 5))
    )
    with pytest.raises(
        UserError, match='^--test_fraction has no effect, because %s/test holds the images' % top
    ):
        image_folders.read(top, 0.1, 0)


@pytest.mark.parametrize(
    'names',
    [
        ['car', 'ship', 'train'],
        ['Training', 'car', 'ship'],
        ['car', 'dev'],
        ['train_station', 'train_track'],
        ['test_strip', 'test_tube'],
        ['bus', 'test_tube', 'train_station'],
    ],
)
def test_classes_that_are_called_like_parts(tmp_path, names):
    top = _touch(tmp_path, *('%s/%d' % (folder, i) for folder in names for i in range(2)))
    assert image_folders.read(top, 0.5, 0).class_names == names


def test_links_do_not_bring_the_images_of_other_classes(tmp_path):
    top = tmp_path / 'top'
    _touch(top, 'a/1.jpg', 'b/2.jpg', 'b/3.jpg')
    _touch(tmp_path, 'beside/4.jpg')
    for name, target in [
        ('up', '..'),
        ('further', '../..'),
        ('root', '/'),
        ('other', '../b'),
        ('own', '.'),
        ('beside', '../../beside'),
    ]:
        (top / 'a' / name).symlink_to(target)
    found = image_folders.read(str(top), 0.5, 0)
    assert _names(str(top), found.train + found.test) == [
        ('a/1.jpg', 0),
        ('a/beside/4.jpg', 0),
        ('b/2.jpg', 1),
        ('b/3.jpg', 1),
    ]


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    """Root can read everything: the error is made."""
    top = _touch(tmp_path, 'a/1', 'b/1', 'b/below/2')

    def scandir(path):
        if str(path).endswith('below'):
            raise PermissionError(13, 'Permission denied', path)
        return whole(path)

    whole = os.scandir
    monkeypatch.setattr(os, 'scandir', scandir)
    with pytest.raises(
        UserError,
        match=r'^Cannot read %s/b/below \(Permission denied\): make it readable, or remove it$'
        % top,
    ):
        image_folders.read(top, 0.5, 0)
