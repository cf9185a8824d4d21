"""Folders of images: one folder per class, with or without folders `train` and `test` around
them."""

import os
import re
from typing import NamedTuple, Sequence, Tuple

import numpy as np

from cifar10 import directories, errors, files
from cifar10.data import description
from cifar10.errors import UserError

TEST_FRACTION = 0.1
_SPLITS = dict(
    train='train',
    training='train',
    test='test',
    testing='test',
    **dict.fromkeys(
        [
            'dev',
            'eval',
            'evaluation',
            'val',
            'valid',
            'validate',
            'validation',
            'holdout',
            'pred',
            'prediction',
        ],
        'validation',
    ),
)


class ImageFolders(NamedTuple):
    """The files of a data set that is to be made."""

    class_names: Sequence[str]
    train: Sequence[Tuple[str, int]]  # paths and labels, in random order
    test: Sequence[Tuple[str, int]]


def read(images_dir, test_fraction, seed):
    """Finds the files of each class.

    Args:
      images_dir: the directory. Hidden files and folders do not count.
      test_fraction: the fraction of each class that is for the test, at least one of two images;
        None takes TEST_FRACTION, or what is in the folder `test`.
      seed: of the random order, and of the choice.

    Returns:
      An ImageFolders.

    Raises:
      UserError: there are not at least two folders with files, or they cannot be classes of one
        data set.
    """
    rng = np.random.RandomState(seed)
    top, test_dir, folders = _parts(images_dir)
    if test_dir and test_fraction is not None:
        raise UserError(
            '--test_fraction has no effect, because %s holds the images for the test: leave it out'
            % test_dir
        )
    test_fraction = TEST_FRACTION if test_fraction is None else test_fraction
    class_names = _checked_names(top, folders)
    train, test, reserved = [], [], _reserved(top, class_names)
    for label, name in enumerate(class_names):
        paths = _paths(os.path.join(top, name), reserved)
        if not paths:
            raise UserError(
                '%s holds no file: put images there, or remove it' % os.path.join(top, name)
            )
        rng.shuffle(paths)
        num_test = (
            0
            if test_dir or len(paths) == 1
            else min(len(paths) - 1, max(1, round(test_fraction * len(paths))))
        )
        test += [(path, label) for path in paths[:num_test]]
        train += [(path, label) for path in paths[num_test:]]
    if test_dir:
        test = _test_files(test_dir, class_names)
    if not test:
        raise UserError(
            '%s has only one image of each class, and none is left for the test: add images'
            % images_dir
        )
    for part in (train, test):
        rng.shuffle(part)
    return ImageFolders(class_names, train, test)


def _parts(images_dir):
    """The directory of the classes, that of the classes for the test or None, and the names of the
    folders in the first one."""
    folders = _folders(images_dir)
    names = sorted(name.lower() for name in folders)
    if names in (['train'], ['test', 'train']):
        paths = {name.lower(): os.path.join(images_dir, name) for name in folders}
        return paths['train'], paths.get('test'), _folders(paths['train'])
    if 'test' in names or _are_splits(folders):  # train can be a class, beside car and ship
        raise UserError(
            '%s has the folders %s: there must be train and test, in upper or lower case, and nothing else, or one folder '
            'for each class: rename or remove the others'
            % (images_dir, ', '.join(map(ascii, folders)))
        )
    return images_dir, None, folders


def _are_splits(names):
    """Returns whether folders seem to hold parts of a data set rather than classes, such as
    seg_train and seg_test."""
    found = set(map(_split, names))
    splits = {each for each in found if each[0]}
    num_rests = len({rest for _, rest in splits})
    return (
        num_rests < len(splits)
        or len({split for split, _ in splits}) > 1
        and splits == found
        or (sum(name.lower() in _SPLITS for name in names) > 1)
    )


def _split(name):
    """Returns the part of a data set that the name of a folder speaks of, or None, and a tuple of
    the other words of the name."""
    words = re.findall('[a-z]+', re.sub('([a-z])([A-Z])', r'\1 \2', name).lower())
    words = [re.sub('(?<=.)(set|data)$', '', word) for word in words]
    return next((_SPLITS[word] for word in words if word in _SPLITS), None), tuple(
        word for word in words if word not in _SPLITS
    )


def _checked_names(directory, names):
    for name in names:
        files.check_name(os.path.join(directory, name))
    try:
        description.check_class_names(names)
    except ValueError as error:
        raise UserError(
            'The folders of %s cannot be classes: %s. Make a folder for each class, with its images in it'
            % (directory, error)
        )
    return names


def _test_files(directory, class_names):
    """The paths and labels in the folder of the test images; it may lack classes."""
    unknown = sorted(set(_folders(directory)) - set(class_names))
    if unknown:
        raise UserError(
            '%s is not a class of the training images: rename it, or add such a folder there'
            % os.path.join(directory, unknown[0])
        )
    folders = [(os.path.join(directory, name), label) for label, name in enumerate(class_names)]
    reserved = _reserved(directory, class_names)
    return [
        (path, label)
        for folder, label in folders
        if os.path.isdir(folder)
        for path in _paths(folder, reserved)
    ]


def _folders(directory):
    """The names of the folders in a directory, in sorted order; says which files beside them are
    not used."""
    directories.check_exists(
        directory, 'give a directory that holds a folder of images for each class'
    )
    try:
        entries = [entry for entry in os.scandir(directory) if not entry.name.startswith('.')]
    except OSError as error:
        _fail(error)
    others = sorted(entry.name for entry in entries if not entry.is_dir())
    if others:
        errors.warn(
            '%s is not in the folder of a class, and not used%s'
            % (
                os.path.join(directory, others[0]),
                '; nor are %d other files there' % (len(others) - 1) if others[1:] else '',
            )
        )
    return sorted(entry.name for entry in entries if entry.is_dir())


def _fail(error):
    raise UserError(
        'Cannot read %s (%s): make it readable, or remove it' % (error.filename, error.strerror)
    )


def _reserved(top, class_names):
    """The directories that a link in the folder of a class must not lead to: the folders of the
    classes, and those around them."""
    around = os.path.realpath(top)
    found = {os.path.realpath(os.path.join(top, name)) for name in class_names}
    while around not in found:
        found.add(around)
        around = os.path.dirname(around)
    return found


def _paths(folder, reserved):
    """The files in a class's folder and in the folders below it, in sorted order; links are
    followed."""
    paths, seen = [], set()
    for directory, below, names in os.walk(folder, onerror=_fail, followlinks=True):
        real = os.path.realpath(directory)
        if real in seen or real in reserved and directory != folder:
            below.clear()
            continue
        seen.add(real)
        below[:] = [name for name in below if not name.startswith('.')]
        paths += [os.path.join(directory, name) for name in names if not name.startswith('.')]
    return sorted(paths)
