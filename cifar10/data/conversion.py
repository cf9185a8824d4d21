"""Conversion of folders of images, one per class, into a data set.

Folders `train` and `test` around them are optional.
"""

import os
import pathlib
import re

import numpy as np

from cifar10 import errors
from cifar10.data import dataset, dataset_writer, decoding
from cifar10.data.progress import ProgressBar
from cifar10.errors import UserError
from cifar10.system import directories

TEST_FRACTION = 0.1
# names of folders with splits of a data set rather than classes, such as seg_train and val2017
_SPLIT_NAME = re.compile(
    '(?<![a-z])(train|test|val|dev|eval|pred|holdout)(ing|id|idate|idation|uation|iction)?'
    '(set|data)?(?![a-z])'
)


def convert(images_dir, path, num_threads, test_fraction=None, seed=0, strict=False):
    """Convert folders of images to a data set; warn of unusable files, and return their number.

    Args:
      images_dir: see `find_images`.
      path: of the directory of the data set; it must not exist yet, or be empty.
      num_threads: threads that decode.
      test_fraction: see `find_images`.
      seed: of the choice of test images, and of the order of all images.
      strict: whether a damaged file ends the conversion.

    Raises:
      UserError: the folders are no classes, a class has no image for training, a file is damaged
        and `strict`, or the data set cannot be written, or would be among the folders.
    """
    dataset_writer.check_new_directory(path)  # before all folders are listed
    if pathlib.Path(os.path.realpath(images_dir)) in pathlib.Path(os.path.realpath(path)).parents:
        raise UserError(
            f'{path} is in {images_dir}, and would be one of its folders: give a directory elsewhere'
        )
    class_names, train, test = find_images(images_dir, test_fraction, seed)
    with dataset_writer.new_dataset(path) as directory:
        label_bytes = dataset.label_bytes(len(class_names))
        failures, progress = [], ProgressBar('Converting', len(train) + len(test))
        for names, examples in [(dataset.TRAIN_FILES, train), (dataset.TEST_FILES, test)]:
            writer = dataset_writer.RecordWriter(directory, names, len(examples), label_bytes)
            labels = np.array([label for _, label in examples])
            for decoded in decoding.decode([path for path, _ in examples], num_threads):
                writer.write(labels[decoded.indices], decoded.images)
                failures += decoded.failures
                progress.advance(len(decoded.indices) + len(decoded.failures))
        for damaged, reason in failures:
            errors.warn(f'{damaged} is left out: {reason}')
        if failures and strict:
            raise UserError(
                f'Nothing was written because of damaged files ({len(failures)}): repair or remove them, or leave out --strict'
            )
        damaged_paths = {damaged for damaged, _ in failures}
        labels_with_images = {label for path, label in train if path not in damaged_paths}
        for label, name in enumerate(class_names):
            if label not in labels_with_images:
                raise UserError(
                    f'The class {name} has no image for training that can be used: add images, or remove its folder'
                )
        if all(path in damaged_paths for path, _ in test):
            raise UserError('No image for the test can be used: add images')
        fraction = '' if test_fraction is None else f'--test_fraction={test_fraction:g} '
        origin = f'{os.path.abspath(images_dir)}, converted with {fraction}--seed={seed}'
        dataset_writer.write_dataset_info(directory, class_names, origin)
    return len(failures)


def find_images(images_dir, test_fraction, seed):
    """Find the files of each class.

    Args:
      images_dir: the directory. Hidden files and folders do not count.
      test_fraction: the fraction of each class that is for the test, at least one of two images;
        None takes TEST_FRACTION, or the folder `test`.
      seed: of the random order, and of the choice.

    Returns:
      The names of the classes, and the training images and the test images: lists of paths and
      labels, in random order.

    Raises:
      UserError: there are not at least two folders with files, or they cannot be classes of one
        data set.
    """
    rng = np.random.RandomState(seed)
    top, test_dir, class_names = _find_splits(images_dir)
    if test_dir and test_fraction is not None:
        raise UserError(
            f'--test_fraction has no effect, because {test_dir} holds the images for the test: leave it out'
        )
    test_fraction = TEST_FRACTION if test_fraction is None else test_fraction
    try:
        dataset.check_class_names(class_names)
    except ValueError as error:
        raise UserError(
            f'The folders of {top} cannot be classes: {error}. Make a folder for each class, with its images in it'
        )
    train, test = [], _test_images(test_dir, class_names) if test_dir else []
    for label, name in enumerate(class_names):
        paths = _list_files(os.path.join(top, name))
        if not paths:
            raise UserError(
                f'{os.path.join(top, name)} holds no file: put images there, or remove it'
            )
        rng.shuffle(paths)
        num_test = min(len(paths) - 1, max(1, round(test_fraction * len(paths))))
        num_test = 0 if test_dir else num_test
        test += [(path, label) for path in paths[:num_test]]
        train += [(path, label) for path in paths[num_test:]]
    if not test:
        raise UserError(
            f'{images_dir} has only one image of each class, and none is left for the test: add images'
        )
    rng.shuffle(train)
    rng.shuffle(test)
    return class_names, train, test


def _find_splits(images_dir):
    """Return the directories of training and of test images (or None), and the class names."""
    folders = _list_folders(images_dir)
    names = sorted(name.lower() for name in folders)
    if names in (['train'], ['test', 'train']):
        paths = {name.lower(): os.path.join(images_dir, name) for name in folders}
        return paths['train'], paths.get('test'), _list_folders(paths['train'])
    # Classes may be called train, test_tube and train_station. Splits are cars_train and cars_test,
    # or folders that are all called like splits.
    words = [re.sub('([a-z])([A-Z])', r'\1_\2', name).lower() for name in folders]
    matches = list(filter(None, map(_SPLIT_NAME.search, words)))
    splits = {match.group(1) for match in matches}
    rests = {match.string.replace(match.group(), '') for match in matches}
    all_are_splits = len(matches) == len(names) and len(splits) > 1
    if 'test' in names or len(rests) < len(matches) or all_are_splits:
        raise UserError(
            f'{images_dir} has the folders {", ".join(map(ascii, folders))}: there must be train and test, in upper or '
            'lower case, and nothing else, or one folder for each class: rename or remove the others'
        )
    return images_dir, None, folders


def _test_images(test_dir, class_names):
    """Return the paths and labels in the folder of the test images; it may lack classes."""
    found, labels = [], {name: label for label, name in enumerate(class_names)}
    for name in _list_folders(test_dir):
        folder = os.path.join(test_dir, name)
        if name not in labels:
            raise UserError(
                f'{folder} is not a class of the training images: rename it, or add such a folder there'
            )
        found += [(path, labels[name]) for path in _list_files(folder)]
    return found


def _list_folders(directory):
    """Return the names of the folders in a directory, sorted; warn of unused files beside them."""
    directories.check_exists(
        directory, 'give a directory that holds a folder of images for each class'
    )
    names = sorted(name for name in os.listdir(directory) if not name.startswith('.'))
    folders = [name for name in names if os.path.isdir(os.path.join(directory, name))]
    others = sorted(set(names) - set(folders))
    if others:
        errors.warn(
            f'{os.path.join(directory, others[0])} is not in the folder of a class, and not used (files like this: {len(others)})'
        )
    return folders


def _list_files(folder):
    """Return the files in a class's folder and in the folders below it, sorted."""

    def fail(error):
        raise error

    paths = []
    for directory, below, names in os.walk(folder, onerror=fail):
        below[:] = [name for name in below if not name.startswith('.')]
        paths += [os.path.join(directory, name) for name in names if not name.startswith('.')]
    return sorted(paths)
