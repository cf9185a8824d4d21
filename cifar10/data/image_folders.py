"""Folders of images: one folder per class, with or without folders `train` and `test` around them."""
import os
from typing import NamedTuple, Sequence, Tuple

import numpy as np

from cifar10 import errors, files
from cifar10.data import description
from cifar10.errors import UserError

SPLITS = ['train', 'test']


class ImageFolders(NamedTuple):
    """The files of a data set that is to be made."""
    class_names: Sequence[str]
    train: Sequence[Tuple[str, int]]  # paths and labels, in random order
    test: Sequence[Tuple[str, int]]


def read(images_dir, test_fraction, seed):
    """Finds the files of each class.

    Args:
      images_dir: the directory. Hidden files and folders do not count.
      test_fraction: the fraction of each class that goes to the test part, if there is no folder `test`: at least one of two images.
      seed: of the random order, and of the choice.

    Returns:
      An ImageFolders.

    Raises:
      UserError: there are not at least two folders with files, or they cannot be classes of one data set.
    """
    rng = np.random.RandomState(seed)
    folders = _folders(images_dir)
    if 'test' in folders and set(folders) != set(SPLITS):
        raise UserError('%s has a folder test, but %s: there must be train and test, and nothing else, or one folder for each class'
                        % (images_dir, 'no folder train' if 'train' not in folders else
                           'also %s' % ', '.join(sorted(set(folders) - set(SPLITS)))))
    has_splits = 'test' in folders
    top = images_dir
    if has_splits or folders == ['train']:
        top = os.path.join(images_dir, 'train')
        folders = _folders(top)
    class_names = _checked_names(top, folders)
    train, test = [], []
    for label, name in enumerate(class_names):
        paths = _paths(os.path.join(top, name))
        if not paths:
            raise UserError('%s holds no file: put images there, or remove it' % os.path.join(top, name))
        rng.shuffle(paths)
        num_test = 0 if has_splits or len(paths) == 1 else min(len(paths) - 1, max(1, round(test_fraction * len(paths))))
        test += [(path, label) for path in paths[:num_test]]
        train += [(path, label) for path in paths[num_test:]]
    if has_splits:
        test = _test_files(os.path.join(images_dir, 'test'), class_names)
    if not test:
        raise UserError('%s has only one image of each class, and none is left for the test: add images' % images_dir)
    for part in (train, test):
        rng.shuffle(part)
    return ImageFolders(class_names, train, test)


def _checked_names(directory, names):
    for name in names:
        files.check_name(os.path.join(directory, name))
    try:
        description.check_class_names(names)
    except ValueError as error:
        raise UserError('The folders of %s cannot be classes: %s. Make a folder for each class, with its images in it'
                        % (directory, error))
    return names


def _test_files(directory, class_names):
    """The paths and labels in the folder of the test images; it may lack classes."""
    unknown = sorted(set(_folders(directory)) - set(class_names))
    if unknown:
        raise UserError('%s is not a class of the training images: rename it, or add such a folder there'
                        % os.path.join(directory, unknown[0]))
    folders = [(os.path.join(directory, name), label) for label, name in enumerate(class_names)]
    return [(path, label) for folder, label in folders if os.path.isdir(folder) for path in _paths(folder)]


def _folders(directory):
    """The names of the folders in a directory, in sorted order; says which files beside them are not used."""
    if not os.path.isdir(directory):
        raise UserError('%s is not a directory: give one that holds a folder of images for each class' % directory)
    entries = [entry for entry in os.scandir(directory) if not entry.name.startswith('.')]
    others = sorted(entry.name for entry in entries if not entry.is_dir())
    if others:
        errors.warn('%s is not in the folder of a class, and not used%s' % (
            os.path.join(directory, others[0]), '; nor are %d other files there' % (len(others) - 1) if others[1:] else ''))
    return sorted(entry.name for entry in entries if entry.is_dir())


def _paths(folder):
    """The files in a folder and in the folders below it, in sorted order; links are followed."""
    def fail(error):
        raise error
    paths, seen = [], set()
    for directory, below, names in os.walk(folder, onerror=fail, followlinks=True):
        found = os.stat(directory)
        if (found.st_dev, found.st_ino) in seen:  # links may lead in a circle
            below.clear()
            continue
        seen.add((found.st_dev, found.st_ino))
        below[:] = [name for name in below if not name.startswith('.')]
        paths += [os.path.join(directory, name) for name in names if not name.startswith('.')]
    return sorted(paths)
