"""Data sets on disk: what a data directory holds.

A record is the bytes of the label and 3,072 image bytes: 32 x 32 red, then green, then blue values,
each row by row. CIFAR-10 has one label byte; CIFAR-100 has two, the superclass and the class
(https://www.cs.toronto.edu/~kriz/cifar.html). Every other directory has a file dataset.json, which
says what is in it.
"""

import os
from typing import Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from cifar10 import files
from cifar10.data import description
from cifar10.errors import UserError

HEIGHT = WIDTH = 32
DEPTH = 3
IMAGE_BYTES = HEIGHT * WIDTH * DEPTH

NUM_CLASSES = 10
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 50000
NUM_EXAMPLES_PER_EPOCH_FOR_EVAL = 10000

DATA_DIR = '/tmp/cifar10_data'
CIFAR100_DATA_DIR = '/tmp/cifar100_data'
DIRECTORY = 'cifar-10-batches-bin'
TRAIN_FILES = ['data_batch_%d.bin' % i for i in range(1, 6)]
TEST_FILES = ['test_batch.bin']
CLASS_NAMES_FILE = 'batches.meta.txt'
CLASS_NAMES_BYTES = 4096  # more is no list of so few names
CLASS_NAMES = [
    'airplane',
    'automobile',
    'bird',
    'cat',
    'deer',
    'dog',
    'frog',
    'horse',
    'ship',
    'truck',
]
LABELS = ['fine', 'coarse']  # of CIFAR-100: the classes and the superclasses


class File(NamedTuple):
    """A file of records."""

    path: str
    num_examples: Optional[int] = None  # as dataset.json says, if there is one
    sha256: Optional[str] = None  # in hexadecimal digits


class Records(NamedTuple):
    """Files of records of the same form."""

    files: Sequence[File]
    num_classes: int = NUM_CLASSES
    class_names: Optional[Sequence[str]] = None  # in label order; None if nothing tells them
    label_weights: Sequence[int] = (1,)  # a label is the sum of its bytes, each times its weight

    @property
    def paths(self):
        """The paths of the files."""
        return [file.path for file in self.files]

    @property
    def record_bytes(self):
        """The bytes of a record."""
        return len(self.label_weights) + IMAGE_BYTES

    def labels(self, array):
        """The labels, int64 [n], of records, uint8 [n, record_bytes]."""
        return array[:, : len(self.label_weights)].astype(np.int64).dot(self.label_weights)


class DataSet(NamedTuple):
    """What a data directory holds."""

    directory: str  # of the files
    train: Records
    test: Records

    @property
    def class_names(self):
        """The names of the classes, in label order; None if nothing tells them."""
        return self.train.class_names

    @property
    def num_classes(self):
        """The number of classes."""
        return self.train.num_classes


class Published(NamedTuple):
    """The form of a published data set."""

    directory: str
    train_files: Sequence[str]
    test_files: Sequence[str]
    # a kind of labels: the file and the number of its classes, and its weights
    labels: Mapping[str, Tuple[str, int, Sequence[int]]]


CIFAR10 = Published(
    DIRECTORY, TRAIN_FILES, TEST_FILES, {'class': (CLASS_NAMES_FILE, NUM_CLASSES, (1,))}
)
CIFAR100 = Published(
    'cifar-100-binary',
    ['train.bin'],
    ['test.bin'],
    {
        'fine': ('fine_label_names.txt', 100, (0, 1)),
        'coarse': ('coarse_label_names.txt', 20, (1, 0)),
    },
)


def files_dir(data_dir=DATA_DIR, published=CIFAR10):
    """The directory of the files: `data_dir` itself if it holds a data set or is called as it is
    published, else the one in it."""
    inner = os.path.join(data_dir, published.directory)
    is_itself = (
        _holds_files(data_dir) or os.path.basename(os.path.abspath(data_dir)) == published.directory
    )
    return data_dir if is_itself and not os.path.isdir(inner) else inner


def find(data_dir):
    """The directory of the files of whatever data set `data_dir` holds; where CIFAR-10's would be,
    if it holds none."""
    found = [
        directory
        for directory in (files_dir(data_dir), files_dir(data_dir, CIFAR100))
        if os.path.isdir(directory)
    ]
    return found[0] if found else files_dir(data_dir)


def _holds_files(directory, kinds=(CIFAR10, CIFAR100)):
    names = [name for published in kinds for name in published.train_files + published.test_files]
    return any(
        os.path.lexists(os.path.join(directory, name)) for name in names + [description.NAME]
    )


def read(data_dir=DATA_DIR, label=None):
    """Finds out what a data directory holds. It does not look into the files of records.

    Args:
      data_dir: the directory of a data set, or the parent of a published one; '' for none. A
        DataSet is returned as it is.
      label: one of LABELS, for CIFAR-100; None means 'fine'.

    Returns:
      A DataSet; that of CIFAR-10 if there is nothing.

    Raises:
      UserError: dataset.json or a file of class names is damaged, or there are no such labels.
    """
    if isinstance(data_dir, DataSet):
        return data_dir
    directory = find(data_dir)
    described = description.read(directory) if data_dir else None
    published = (
        CIFAR100 if data_dir and not described and _holds_files(directory, [CIFAR100]) else CIFAR10
    )
    if label and (described or label not in published.labels):
        raise UserError(
            '--label=%s is for CIFAR-100, and %s holds another data set: leave it out'
            % (label, directory)
        )
    if described:
        weights = (1,) if described.label_bytes == 1 else (256, 1)
        return DataSet(
            directory,
            *[
                Records(
                    [
                        File(os.path.join(directory, name), about['examples'], about['sha256'])
                        for name, about in split.items()
                    ],
                    len(described.classes),
                    described.classes,
                    weights,
                )
                for split in (described.train, described.test)
            ],
        )
    listing, count, weights = published.labels[label or list(published.labels)[0]]
    names = _class_names(os.path.join(directory, listing), count)
    return DataSet(
        directory,
        *[
            Records([File(os.path.join(directory, name)) for name in split], count, names, weights)
            for split in (published.train_files, published.test_files)
        ],
    )


def _class_names(path, count):
    """The class names that a file lists, in label order; None if there is no such file.

    Raises:
      UserError: it lists more or fewer than `count`, or what lies there is no such list.
    """
    remedy = 'correct it, or delete it'
    if not os.path.exists(path):
        return None
    files.check_regular(path, remedy)
    with open(path, 'rb') as listing:
        content = listing.read(CLASS_NAMES_BYTES + 1)
    if len(content) > CLASS_NAMES_BYTES:
        raise UserError(
            '%s is too long for a list of class names (more than %d bytes): %s'
            % (path, CLASS_NAMES_BYTES, remedy)
        )
    names = content.decode(errors='replace').split()
    if len(names) != count:
        raise UserError('%s lists %d class names, not %d: %s' % (path, len(names), count, remedy))
    for name in names:
        if not name.isprintable():  # a terminal would carry it out
            raise UserError(
                '%s has control characters in the class name %s: %s' % (path, ascii(name), remedy)
            )
    return names


def listed(class_names):
    """The class names as text; if they are many, the first ones, the last one and their number."""
    if not class_names:
        return 'unnamed classes'
    if len(class_names) <= 20:
        return ', '.join(class_names)
    return '%d classes (%s ... %s)' % (
        len(class_names),
        ', '.join(class_names[:3]),
        class_names[-1],
    )
