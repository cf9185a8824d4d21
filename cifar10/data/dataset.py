"""Data sets on disk.

A record has label bytes and 3,072 image bytes: 32 x 32 red, then green, then blue values, row by
row. CIFAR-10 has one label byte. CIFAR-100 has two: superclass and class
(https://www.cs.toronto.edu/~kriz/cifar.html). Other data sets have a dataset.json: class names,
and for each file its number of examples and its SHA-256. Those that are converted from image files
also name the file of each example, in train_images.csv and test_images.csv.
"""

import csv
import os
import re
from typing import NamedTuple, Optional, Sequence
import unicodedata

import numpy as np

from cifar10.config import DEPTH, HEIGHT, NUM_CLASSES, WIDTH
from cifar10.data import catalog
from cifar10.errors import UserError, warn
from cifar10.system import directories, files

IMAGE_BYTES = HEIGHT * WIDTH * DEPTH
# Converted and synthetic data sets have the layout of CIFAR-10, too.
CIFAR10_DIRECTORY = catalog.CIFAR10.directory
TRAIN_FILES, TEST_FILES = catalog.CIFAR10.train_files, catalog.CIFAR10.test_files
(CLASS_NAMES_FILE,) = catalog.CIFAR10.names_files
DATASET_INFO_FILE = 'dataset.json'
IMAGES_CSV_FILES = {'train': 'train_images.csv', 'test': 'test_images.csv'}
MAX_CLASSES = 256  # a label has one byte
CLASS_NAMES = 'airplane automobile bird cat deer dog frog horse ship truck'.split()


# Directories of the data sets if the user names none
DATA_DIRS = {name: f'/tmp/{name}_data' for name in catalog.PUBLISHED}
DATA_DIRS['synthetic'] = '/tmp/cifar10_synthetic'
DATA_DIR = DATA_DIRS['cifar10']


class DataFile(NamedTuple):
    """A file of records."""

    path: str
    num_examples: Optional[int] = None  # as in dataset.json
    sha256: Optional[str] = None  # hexadecimal, as in dataset.json


class Split(NamedTuple):
    """Training files or test files, with one record layout."""

    files: Sequence[DataFile]
    num_classes: int = NUM_CLASSES
    class_names: Optional[Sequence[str]] = None  # in label order; None if unknown
    label_bytes: int = 1  # per record; the last one is the label
    images_csv: Optional[str] = None  # path of the CSV file that names the image files
    # Of verification.verify_split:
    counts: Optional[Sequence[int]] = None  # examples per class
    checksum: Optional[str] = None  # eight hexadecimal digits

    @property
    def num_examples(self):
        """Number of examples, after the verification."""
        return int(sum(self.counts))

    @property
    def paths(self):
        """Paths of the files."""
        return [file.path for file in self.files]

    @property
    def record_bytes(self):
        """Size of a record in bytes."""
        return self.label_bytes + IMAGE_BYTES

    def labels(self, array):
        """Return the labels, int64 [n], of records, uint8 [n, record_bytes]."""
        return array[:, self.label_bytes - 1].astype(np.int64)

    def image_files(self):
        """Return a dict from the index of an example, from 0, to its image file; {} if unknown."""
        if not self.images_csv or not os.path.exists(self.images_csv):
            return {}
        try:
            with open(self.images_csv, newline='', encoding='utf-8-sig') as file:
                return {int(row['index']): str(row['file']) for row in csv.DictReader(file)}
        except (KeyError, TypeError, ValueError, csv.Error):
            warn(f'{self.images_csv} is damaged, so no image file is named: restore or delete it')
            return {}


class Dataset(NamedTuple):
    """The data set in a directory."""

    directory: str
    train: Split
    test: Split

    @property
    def class_names(self):
        """Class names in label order; None if unknown."""
        return self.train.class_names

    @property
    def num_classes(self):
        """Number of classes."""
        return self.train.num_classes


# of the size of CIFAR-10, for a batch in memory
WITHOUT_FILES = Dataset(
    '', *[Split([], counts=[count // NUM_CLASSES] * NUM_CLASSES) for count in (50000, 10000)]
)


def files_dir(data_dir=DATA_DIR, published=None):
    """Return the directory of the binary files: `data_dir` or its subdirectory.

    An existing subdirectory comes first, then `data_dir` with a data set or the published name.
    The files of a version for Python are beside it.

    Args:
      data_dir: see `read`.
      published: a Published data set. Default: the first one that has a directory, else CIFAR-10.
    """
    if published is None:
        found = [files_dir(data_dir, published) for published in catalog.PUBLISHED.values()]
        return next(filter(os.path.isdir, found), found[0])
    parent, name = os.path.split(os.path.abspath(data_dir))
    if name == published.python.directory:
        data_dir = parent
    subdirectory = os.path.join(data_dir, published.directory)
    is_itself = name == published.directory or _find_published(data_dir) or has_info(data_dir)
    return data_dir if is_itself and not os.path.isdir(subdirectory) else subdirectory


def _find_published(directory):
    """Return the Published data set with most files in a directory, or None."""

    def count(published):
        paths = [os.path.join(directory, name) for name in published.binary_files]
        return sum(map(os.path.lexists, paths))

    found = max(catalog.PUBLISHED.values(), key=count)
    return found if count(found) else None


def read(data_dir=DATA_DIR):
    """Return the Dataset in a directory, without reading the records.

    Args:
      data_dir: directory of a data set, or parent of a published data set. A Dataset is returned
        unchanged.

    Returns:
      A Dataset; if the directory has no data set, the layout of CIFAR-10.

    Raises:
      UserError: dataset.json is damaged.
    """
    if isinstance(data_dir, Dataset):
        return data_dir
    directory = files_dir(data_dir)
    own_dataset = files.read_json(
        os.path.join(directory, DATASET_INFO_FILE),
        lambda content: _parse_dataset_info(directory, content),
        'restore it, or make the data set again',
    )
    if own_dataset:
        return own_dataset
    published = _find_published(directory) or catalog.CIFAR10
    class_names = _read_class_names(os.path.join(directory, published.names_files[0]))
    # Programs of the tutorial accept any names.
    names = class_names if len(class_names) == published.num_classes else None
    splits = []
    for file_names in (published.train_files, published.test_files):
        split_files = [DataFile(os.path.join(directory, name)) for name in file_names]
        splits.append(Split(split_files, published.num_classes, names, published.label_bytes))
    return Dataset(directory, *splits)


def is_present(data_dir, published=None):
    """Return True if there is a complete data set; the arguments are those of files_dir.

    Raises:
      UserError: files are missing, or the path is not a directory.
    """
    directory = files_dir(data_dir, published)
    directories.check_no_file(directory)
    if not os.path.isdir(directory) or directories.is_empty(directory):
        return False
    found = read(directory)
    for path in found.train.paths + found.test.paths:
        if not os.path.exists(path):
            raise UserError(
                f'{path} is missing: restore it, or move {directory} away and start again'
            )
    if not has_info(directory):
        check_no_further_file(directory, list(map(os.path.basename, found.train.paths)))
    return True


def check_no_further_file(directory, train_files):
    """Raise UserError for a further training file, whose images would be left out."""
    for name in sorted(set(os.listdir(directory)) - set(train_files)):
        if re.fullmatch(train_files[0].replace('1', r'\d+'), name):
            path = os.path.join(directory, name)
            raise UserError(f'{path} is not a file of the published data set: move it away')


def has_info(directory):
    """Return True if a directory has a dataset.json."""
    return os.path.lexists(os.path.join(directory, DATASET_INFO_FILE))


def _parse_dataset_info(directory, content):
    """Return the Dataset for the parsed content of a dataset.json."""
    names = check_class_names(content['classes'])
    splits = []
    for split_name in ('train', 'test'):
        split_files = [
            DataFile(os.path.join(directory, name), file_info['examples'], file_info['sha256'])
            for name, file_info in content[split_name].items()
        ]
        if not split_files:
            raise ValueError(f'{split_name} has no files')
        images_csv = os.path.join(directory, IMAGES_CSV_FILES[split_name])
        splits.append(Split(split_files, len(names), names, images_csv=images_csv))
    return Dataset(directory, *splits)


def check_class_names(names):
    """Return class names in Unicode's form NFC, in which names that look equal are equal.

    Raises:
      ValueError: they are not 2 to MAX_CLASSES different printable names.
    """
    names = [unicodedata.normalize('NFC', name) for name in names]
    if not 2 <= len(names) <= MAX_CLASSES:
        raise ValueError(f'the number of classes is {len(names)}, not 2 to {MAX_CLASSES}')
    for name in names:
        # A terminal would execute control characters.
        if not name.strip() or not name.isprintable():
            raise ValueError(f'{ascii(name)} is not a class name')
    if len(set(names)) < len(names):
        raise ValueError('two classes have the same name')
    return names


def _read_class_names(path):
    """Return the class names in a file, in label order; none without the file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8-sig', errors='replace') as file:
        return [unicodedata.normalize('NFC', line.strip()) for line in file if line.strip()]


def format_class_names(class_names):
    """Return the class names as text, abbreviated above 20 names."""
    if not class_names:
        return 'unnamed classes'
    if len(class_names) <= 20:
        return ', '.join(class_names)
    return f'{len(class_names)} classes ({", ".join(class_names[:3])} ... {class_names[-1]})'
