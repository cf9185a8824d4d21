"""CIFAR-10 on disk: record layout, file names, verification.

A record is 1 label byte and 3,072 image bytes: 32 x 32 red, then green, then blue values, each row by row
(https://www.cs.toronto.edu/~kriz/cifar.html). `data_dir` is `cifar-10-batches-bin`, or its parent.
"""
import contextlib
import functools
import glob
import os
import shutil
import tempfile

import numpy as np

from cifar10 import directories, files
from cifar10.errors import UserError

HEIGHT = WIDTH = 32
DEPTH = 3
LABEL_BYTES = 1
IMAGE_BYTES = HEIGHT * WIDTH * DEPTH
RECORD_BYTES = LABEL_BYTES + IMAGE_BYTES

NUM_CLASSES = 10
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 50000
NUM_EXAMPLES_PER_EPOCH_FOR_EVAL = 10000

DATA_DIR = '/tmp/cifar10_data'
DIRECTORY = 'cifar-10-batches-bin'
TRAIN_FILES = ['data_batch_%d.bin' % i for i in range(1, 6)]
TEST_FILES = ['test_batch.bin']
_INCOMPLETE = '.cifar10-incomplete-'
CLASS_NAMES_FILE = 'batches.meta.txt'
CLASS_NAMES_BYTES = 4096  # more is no list of ten names
CLASS_NAMES = ['airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog', 'horse', 'ship', 'truck']


def batches_dir(data_dir=DATA_DIR):
    """The directory of the files: `data_dir` itself if it holds them or is called as they are kept, else the one in it."""
    inner = os.path.join(data_dir, DIRECTORY)
    holds_files = any(os.path.exists(os.path.join(data_dir, name)) for name in TRAIN_FILES + TEST_FILES)
    is_itself = holds_files or os.path.basename(os.path.abspath(data_dir)) == DIRECTORY
    return data_dir if is_itself and not os.path.isdir(inner) else inner


def train_files(data_dir=DATA_DIR):
    """The paths of the five training files."""
    return [os.path.join(batches_dir(data_dir), name) for name in TRAIN_FILES]


def test_files(data_dir=DATA_DIR):
    """The paths of the test files: a list of one."""
    return [os.path.join(batches_dir(data_dir), name) for name in TEST_FILES]


def class_names(data_dir=DATA_DIR):
    """The ten class names that batches.meta.txt lists, in label order; None if there is no such file.

    Raises:
      UserError: the file lists more or fewer, or what lies there is no such list.
    """
    path, remedy = os.path.join(batches_dir(data_dir), CLASS_NAMES_FILE), 'correct it, or delete it'
    if not os.path.exists(path):
        return None
    files.check_regular(path, remedy)
    with open(path, 'rb') as listing:
        content = listing.read(CLASS_NAMES_BYTES + 1)
    if len(content) > CLASS_NAMES_BYTES:
        raise UserError('%s is too long for a list of class names (more than %d bytes): %s' % (path, CLASS_NAMES_BYTES, remedy))
    names = content.decode(errors='replace').split()
    if len(names) != NUM_CLASSES:
        raise UserError('%s lists %d class names, not %d: %s' % (path, len(names), NUM_CLASSES, remedy))
    for name in names:
        if not name.isprintable():  # a terminal would carry it out
            raise UserError('%s has control characters in the class name %s: %s' % (path, ascii(name), remedy))
    return names


def verify(paths, num_classes=NUM_CLASSES):
    """Checks that each file is a whole number of records with labels from 0 to num_classes - 1.

    Returns:
      The number of examples in all files together.

    Raises:
      UserError: names the first bad file and what is wrong with it.
    """
    return sum(_verify_file(path, num_classes) for path in paths)


def check_file(path):
    """Raises UserError if a data file does not exist, or is not a regular file."""
    try:
        files.check_regular(path, 'replace it with a good copy')
    except (FileNotFoundError, NotADirectoryError):
        raise UserError('%s is missing: fetch the data set with `cifar10_dataset.py download`, make one with '
                        '`cifar10_dataset.py synthetic`, or point --data_dir at the directory that holds %s'
                        % (path, DIRECTORY))


def _verify_file(path, num_classes):
    check_file(path)
    found = os.stat(path)
    labels, size = _labels(path, (found.st_ino, found.st_size, found.st_mtime_ns))
    if size == 0:
        raise UserError('%s is empty: replace it with a good copy' % path)
    if size % RECORD_BYTES:
        raise UserError('%s is not a whole number of records: its %d bytes are %d records of %d bytes and %d more; '
                        'replace it with a good copy' % (path, size, size // RECORD_BYTES, RECORD_BYTES, size % RECORD_BYTES))
    bad = np.flatnonzero(labels >= num_classes)
    if bad.size:
        raise UserError('%s has labels that are not 0 to %d: %d of them, the first (%d) in record %d; replace it with a good copy'
                        % (path, num_classes - 1, bad.size, labels[bad[0]], bad[0]))
    return len(labels)


@functools.lru_cache(maxsize=16)  # a trainer asks several times
def _labels(path, unused_state):
    """The first byte of each record, and the size of the file in this state."""
    labels, size = [np.empty(0, np.uint8)], 0
    with open(path, 'rb') as records:  # not a memory map: a disk error, or a file that shrinks, would end the process there
        for piece in iter(lambda: records.read(1000 * RECORD_BYTES), b''):
            labels.append(np.frombuffer(piece, np.uint8)[::RECORD_BYTES].copy())
            size += len(piece)
    return np.concatenate(labels), size


def is_present(data_dir):
    """Whether `data_dir` holds all files of a data set.

    Raises:
      UserError: cifar-10-batches-bin holds only some of its files, or is not a directory; it must not be replaced.
    """
    batches = batches_dir(data_dir)
    if os.path.lexists(batches) and not os.path.isdir(batches):
        raise UserError('%s is not a directory: move it away, or give another --data_dir' % batches)
    if not os.path.isdir(batches) or not os.listdir(batches):
        return False
    missing = [path for path in train_files(data_dir) + test_files(data_dir) if not os.path.exists(path)]
    if missing:
        raise UserError('%s is missing: put it back, or move %s away, and the whole data set is written again'
                        % (missing[0], batches))
    return True


@contextlib.contextmanager
def preparing(data_dir):
    """Yields the directory in which cifar-10-batches-bin must be written; None if the data set is present.

    No other process writes it meanwhile.
    """
    if is_present(data_dir):
        yield None
        return
    parent = data_dir if batches_dir(data_dir) != data_dir else os.path.dirname(os.path.abspath(data_dir))
    directories.make(parent)
    with directories.locked(parent) as is_locked:
        if is_locked:
            for leftover in glob.glob(os.path.join(glob.escape(parent), _INCOMPLETE + '*')):  # of a process that was killed
                shutil.rmtree(leftover, ignore_errors=True)
        yield None if is_present(data_dir) else parent


@contextlib.contextmanager
def new_directory(parent):
    """Yields a temporary directory that becomes parent/cifar-10-batches-bin at the end of the block.

    The files in it are verified first; after an error it is removed.

    Raises:
      UserError: it cannot be written, or its files are malformed.
    """
    incomplete = None
    try:
        incomplete = tempfile.mkdtemp(prefix=_INCOMPLETE, dir=parent)
        batches = os.path.join(incomplete, DIRECTORY)
        os.mkdir(batches)
        yield batches
        verify(train_files(batches) + test_files(batches))
        os.rename(batches, os.path.join(parent, DIRECTORY))
    except OSError as error:
        raise UserError('Cannot write the data set to %s (%s): make room there, or give another --data_dir' % (parent, error))
    finally:
        if incomplete:
            shutil.rmtree(incomplete, ignore_errors=True)
