"""Conversion of own files in the layout of CIFAR-10 or CIFAR-100 to a data set.

The classes, files and examples are counted. Test images that are missing are held out.
"""

import os
from typing import NamedTuple, Sequence

import numpy as np

from cifar10.data import copies, dataset, dataset_writer, python_version
from cifar10.errors import UserError

_REMEDY = 'write the file again, with pickle.dump(..., protocol=2)'


class _Examples(NamedTuple):
    """Examples in the order of their files."""

    labels: np.ndarray  # int64 [n]
    images: np.ndarray  # uint8 [n, 3072]
    image_files: Sequence[str] = ()  # names of the image files; empty if unknown


def convert(published, source, path, progress, test_fraction=None, seed=0):
    """Convert the files in a directory to a data set.

    Args:
      published: the Published data set whose layout the files have, binary or for Python.
      source: the directory.
      path: directory of the data set, new or empty.
      progress: a function of one line of text.
      test_fraction: fraction of test images per class, if there are no files of test images.
      seed: seed for selecting test images.

    Raises:
      UserError: a file is damaged, there is no training image, a label has no name, or the data
        set cannot be written.
    """
    train = _read_split(published, source, published.train_files[0])
    test = _read_split(published, source, published.test_files[0])
    if train is None:
        raise UserError(
            f'{source} has no training images', f'write them to {published.train_files[0]}'
        )
    labels = np.concatenate([part.labels for part in (train, test) if part])
    class_names = _find_class_names(published, source, labels)
    origin = os.path.abspath(source)
    if test is None:
        fraction = dataset_writer.TEST_FRACTION if test_fraction is None else test_fraction
        if np.bincount(train.labels).max() == 1:
            raise UserError(f'{source} has one image per class', 'add images for the test')
        train, test = _hold_out(train, fraction, seed)
        origin += f', converted with test_fraction={fraction:g} seed={seed}'
    with dataset_writer.new_dataset(path, progress) as directory:
        label_bytes = dataset.label_bytes(len(class_names))
        for split_name, names, part in [
            ('train', dataset.TRAIN_FILES, train),
            ('test', dataset.TEST_FILES, test),
        ]:
            writer = dataset_writer.RecordWriter(directory, names, len(part.labels), label_bytes)
            writer.write(part.labels, part.images)
            if part.image_files:
                dataset_writer.write_images_csv(
                    directory,
                    split_name,
                    part.image_files,
                    [class_names[label] for label in part.labels],
                )
        dataset_writer.write_dataset_info(directory, class_names, origin)


def _find_class_names(published, source, labels):
    """Return the class names in the files, or else the numbers up to the largest label.

    Raises:
      UserError: the names are invalid, or a label has none.
    """
    class_names = _read_class_names(published, source)
    class_names = class_names or list(map(str, range(labels.max() + 1)))
    without_name = labels[labels >= len(class_names)]
    if without_name.size:
        raise UserError(
            f'{source} has {len(class_names)} class names, but labels that are not 0 to {len(class_names) - 1} (count: '
            f'{without_name.size}, for example {without_name[0]})',
            'correct the labels, which begin at 0, or add the missing names',
        )
    try:
        dataset.check_class_names(class_names)
    except ValueError as error:
        raise UserError(
            f'The classes of {source} cannot be used ({error})', 'correct the class names'
        )
    return class_names


def _hold_out(examples, fraction, seed):
    """Return training and test _Examples."""
    counts = np.bincount(examples.labels)
    most = np.maximum(counts - 1, 0).sum()
    num_test = min(max(1, round(fraction * len(examples.labels))), most)
    is_test = dataset_writer.select_held_out(examples.labels, num_test, np.random.RandomState(seed))
    return [
        _Examples(
            examples.labels[mask],
            examples.images[mask],
            [name for name, chosen in zip(examples.image_files, mask) if chosen],
        )
        for mask in (~is_test, is_test)
    ]


def _read_split(published, source, first_name):
    """Return the _Examples of all files of a split, or None without files.

    Raises:
      UserError: a file is damaged.
    """
    names = dataset.find_files(source, first_name)
    is_binary = names and names[0].endswith('.bin')
    read = _read_binary_file if is_binary else _read_pickle
    parts = [read(published, os.path.join(source, name)) for name in names]
    if not sum(len(part.labels) for part in parts):
        return None
    image_files = [name for part in parts for name in part.image_files]
    labels, images = map(np.concatenate, list(zip(*parts))[:2])
    return _Examples(labels, images, image_files if len(image_files) == len(labels) else [])


def _read_binary_file(published, path):
    split = dataset.Split((), label_weights=published.label_weights)
    content = np.fromfile(path, np.uint8)
    if len(content) % split.record_bytes:
        raise UserError(
            f'{path} has an incomplete record: its {len(content)} bytes are not a multiple of {split.record_bytes}',
            f'a record has {dataset.IMAGE_BYTES} bytes of the image after 1 label byte (data_batch_1.bin, test_batch.bin) '
            'or 2 (train.bin, test.bin)',
        )
    rows = content.reshape(-1, split.record_bytes)
    return _Examples(split.labels(rows), rows[:, -dataset.IMAGE_BYTES :])


def _read_pickle(published, path):
    directory, name = os.path.split(path)
    *_, label_key = published.python.label_keys
    try:
        batch = python_version.read_batch(
            lambda name: copies.open_file(os.path.join(directory, name)),
            name,
            {label_key: dataset.MAX_CLASSES},
        )
    except python_version.Error as error:
        raise UserError(f'{directory} is damaged ({error})', _REMEDY)
    return _Examples(batch.labels[0].astype(np.int64), batch.images, batch.image_files)


def _read_class_names(published, source):
    """Return the class names, one per line of the file or those of the meta file; [] if unknown."""
    path = os.path.join(source, published.names_files[0])
    if os.path.exists(path):
        with open(path, 'rb') as file:
            try:
                return dataset.parse_class_names(file.read())
            except ValueError as error:
                raise UserError(f'{path} is not UTF-8 ({error})', 'save it as UTF-8')
    if not os.path.exists(os.path.join(source, published.python.meta_file)):
        return []
    try:
        return python_version.read_class_names(
            lambda name: copies.open_file(os.path.join(source, name)), published.python
        )
    except python_version.Error as error:
        raise UserError(f'{source} is damaged ({error})', _REMEDY)
