"""Conversion of folders of images, one per class, to a data set.

`train` and `test` may contain the class folders.
"""

import os
import re
import unicodedata

import numpy as np

from cifar10 import errors
from cifar10.data import dataset, dataset_writer, decoding
from cifar10.data.progress_lines import ProgressLines
from cifar10.errors import UserError
from cifar10.system import directories

# matches names of splits, such as seg_train and val2017
_SPLIT_NAME = re.compile(
    '(?<![a-z])(train|test|val|dev|eval|pred|holdout)(ing|id|idate|idation|uation|iction)?'
    '(set|data)?(?![a-z])'
)


def convert(images_dir, path, progress, test_fraction=None, seed=0):
    """Convert class folders to a data set; return the number of unusable files.

    Args:
      images_dir: see `find_images`.
      path: directory of the data set, new or empty.
      progress: a function of one line of text.
      test_fraction: see `find_images`.
      seed: seed for selecting test images and for shuffling.

    Raises:
      UserError: the folders cannot be classes, a class has no training image, or `path` exists.
    """
    failures = []

    def decode(examples):
        labels = np.array([label for _, label in examples])
        for decoded in decoding.decode([path for path, _ in examples]):
            lines.advance(len(decoded.indices) + len(decoded.failures))
            failures.extend(decoded.failures)
            names = [os.path.relpath(examples[i][0], images_dir) for i in decoded.indices]
            yield labels[decoded.indices], decoded.images, names

    dataset_writer.check_new_directory(path)  # early, because listing takes long
    if os.path.realpath(path).startswith(os.path.join(os.path.realpath(images_dir), '')):
        raise UserError(f'{path} is in {images_dir}: give a directory outside it')
    class_names, train, test = find_images(images_dir, test_fraction, seed)
    with dataset_writer.new_dataset(path, progress) as directory:
        lines = ProgressLines(progress, 'Converting', len(train) + len(test))
        for split_name, examples in [('train', train), ('test', test)]:
            dataset_writer.write_split(
                directory, split_name, decode(examples), len(examples), class_names
            )
        for damaged, reason in failures:
            errors.warn(f'{damaged} is left out: {reason}')
        damaged_paths = {damaged for damaged, _ in failures}
        usable = {label for path, label in train if path not in damaged_paths}
        for label, name in enumerate(class_names):
            if label not in usable:
                raise UserError(
                    f'The class {name} has no usable training image: '
                    'add images, or remove its folder'
                )
        if all(path in damaged_paths for path, _ in test):
            raise UserError('There is no usable test image: add images')
        dataset_writer.write_dataset_info(directory, class_names)
    return len(failures)


def find_images(images_dir, test_fraction, seed):
    """Find the files of each class.

    Args:
      images_dir: parent of class folders, or of `train` and `test`. A class can have two folders,
        whose names are equal in Unicode's form NFC. Hidden entries are left out.
      test_fraction: fraction of test images per class; at least one if the class has two images.
        None means the images in `test`, or 0.1 without that folder.
      seed: seed for selecting test images and for shuffling.

    Returns:
      Class names; training images and test images, each a list of (path, label) in random order.

    Raises:
      UserError: the folders cannot be classes, a class folder is empty, or there is no test image.
    """
    rng = np.random.RandomState(seed)
    train_dir, test_dir, folders = _find_splits(images_dir)
    if test_dir and test_fraction is not None:
        raise UserError(
            f'--test_fraction has no effect, because {test_dir} holds the test images: leave it out'
        )
    test_fraction = 0.1 if test_fraction is None else test_fraction
    class_names = _class_names(train_dir, folders)
    hidden, test_files = [], {}
    if test_dir:
        test_files = _list_test_files(test_dir, class_names, hidden)
    train, test = [], []
    for label, name in enumerate(class_names):
        paths = _list_files(folders[name], hidden)
        if not paths:
            raise UserError(f'{folders[name][0]} has no files: add images, or remove it')
        test += [(path, label) for path in test_files.get(name, [])]
        rng.shuffle(paths)
        num_test = min(len(paths) - 1, max(1, round(test_fraction * len(paths))))
        num_test = 0 if test_dir else num_test
        test += [(path, label) for path in paths[:num_test]]
        train += [(path, label) for path in paths[num_test:]]
    if not test:
        raise UserError(
            'There is no test image: '
            f'add images to {test_dir or images_dir + ", at least two per class"}'
        )
    decoding.warn_of_hidden(hidden)
    rng.shuffle(train)
    rng.shuffle(test)
    return class_names, train, test


def _class_names(train_dir, folders):
    """Return the class names of the folders in `train_dir`; raise UserError without classes."""
    try:
        return dataset.check_class_names(folders)
    except ValueError as error:
        remedy = f'make one folder of images per class, at most {dataset.MAX_CLASSES}'
        if re.search('[\ud800-\udfff]', ''.join(folders)):  # Python's form of undecodable bytes
            remedy = (
                'rename them in UTF-8, or unpack their ZIP file with the encoding of its names, for example '
                '`python3.11 -m zipfile --metadata-encoding=gbk -e FILE.zip OUT`'
            )
        raise UserError(f'The folders of {train_dir} cannot be classes ({error}): {remedy}')


def _find_splits(images_dir):
    """Return the directory of the training images, that of the test images or None, the folders."""
    folders = _list_folders(images_dir)
    names = sorted(name.lower() for name in folders)
    if names in (['train'], ['test', 'train']):
        paths = {name.lower(): path for name, (path,) in folders.items()}
        return paths['train'], paths.get('test'), _list_folders(paths['train'])
    # A class may be called train or test_tube.
    words = [re.sub('([a-z])([A-Z])', r'\1_\2', name).lower() for name in folders]
    if 'test' in names or sum(map(bool, map(_SPLIT_NAME.search, words))) > 1:
        raise UserError(
            f'{images_dir} has the folders {", ".join(map(ascii, folders))}: '
            'it must have only train and test (in upper or lower case), or one folder per class; rename or remove the others'
        )
    return images_dir, None, folders


def _list_test_files(test_dir, class_names, hidden):
    """Return the paths of the test files by class name; some classes may have none."""
    folders = _list_folders(test_dir)
    for name in sorted(folders.keys() - set(class_names)):
        raise UserError(
            f'{folders[name][0]} is not a class of the training images: '
            'rename it, or add the class to the training images'
        )
    return {name: _list_files(paths, hidden) for name, paths in folders.items()}


def _list_folders(directory):
    """Return the paths of the folders by their names in NFC, sorted; warn of ignored files."""
    directories.check_exists(directory, 'give a directory with one folder of images per class')
    folders, others = {}, []
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if name.startswith('.') or decoding.ADDED.fullmatch(name):
            continue
        if os.path.isdir(path):
            folders.setdefault(unicodedata.normalize('NFC', name), []).append(path)
        else:
            others.append(path)
    if others:
        errors.warn(
            f'{others[0]} is ignored, because it is in no class folder (ignored files: {len(others)})'
        )
    return dict(sorted(folders.items()))


def _list_files(folders, hidden):
    """Return the paths of the files in the folders of a class; see decoding.find."""
    return [path for folder in folders for path in decoding.find(folder, hidden)]
