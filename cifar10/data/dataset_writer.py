"""Atomic writing of data sets; holding out a part of the training images."""

import contextlib
import json
import os

import numpy as np

from cifar10.data import dataset, verification
from cifar10.errors import UserError
from cifar10.system import directories, files


def is_present(data_dir, dataset_spec=dataset.CIFAR10):
    """Return whether `data_dir` holds all files of a data set.

    It is the published one, or any other in `data_dir` itself.

    Raises:
      UserError: it holds only some of them, or its directory is none; it must not be replaced.
    """
    directory = dataset.files_dir(data_dir, dataset_spec)
    directories.check_no_file(directory)
    if not os.path.isdir(directory) or not os.listdir(directory):
        return False
    found = dataset.read(directory)
    for path in found.train.paths + found.test.paths:
        if not os.path.exists(path):
            raise UserError(
                f'{path} is missing: put it back, or move {directory} away, and the whole data set is written again'
            )
    return True


@contextlib.contextmanager
def lock_files_dir(data_dir, dataset_spec=dataset.CIFAR10):
    """Yield the locked directory to write the data set to; None if the data set is present."""
    if is_present(data_dir, dataset_spec):
        yield None
        return
    files.check_name(data_dir)
    path = dataset.files_dir(data_dir, dataset_spec)
    with _lock_parent(path):
        yield None if is_present(data_dir, dataset_spec) else path


@contextlib.contextmanager
def new_dataset(path):
    """Yield a directory that becomes `path` at the end of the block, as `verified_directory` does.

    Raises:
      UserError: there is something at `path`, or it cannot be written.
    """
    check_new_directory(path)
    with _lock_parent(path), verified_directory(path) as directory:
        yield directory


def check_new_directory(path):
    """Raise UserError unless a new directory can be called `path`; an empty one may exist."""
    if not path:
        raise UserError('The name of the new directory is empty: give one')
    files.check_name(path)
    if os.path.lexists(path) and (
        os.path.islink(path) or not os.path.isdir(path) or os.listdir(path)
    ):
        raise UserError(f'{path} exists: give the name of a new directory')


@contextlib.contextmanager
def _lock_parent(path):
    """Make and lock the parent directory of `path`.

    At the end, remove the directories made if they are empty.
    """
    parent = os.path.dirname(os.path.abspath(path))
    missing = directories.missing_directories(parent)
    directories.make(parent)
    with directories.write_lock(parent):  # Whoever waits for it notices that it has been removed.
        try:
            yield
        finally:
            for directory in missing:
                with contextlib.suppress(OSError):  # It is not empty.
                    os.rmdir(directory)


@contextlib.contextmanager
def verified_directory(path):
    """Yield a temporary directory beside `path` that becomes `path` at the end of the block.

    The files in it are verified first; after an error it is removed.

    Raises:
      UserError: it cannot be written, or its files are malformed.
    """
    try:
        with directories.atomic_directory(path) as directory:
            yield directory
            found = dataset.read(directory)
            for split in (found.train, found.test):
                verification.verify(split)
    except OSError as error:
        raise UserError(
            f'Cannot write the data set to {path} ({error}): make room there, or give another directory'
        )


class RecordWriter:
    """Writer of the records of one split, file after file."""

    def __init__(self, directory, names, num_examples, label_bytes):
        """Divide at most `num_examples` evenly among the files `names`."""
        self._paths = [os.path.join(directory, name) for name in names]
        self._examples_per_file = -(-num_examples // len(names))
        self._label_bytes = label_bytes
        self._count = 0

    def write(self, labels, images):
        """Write the labels, integers [n], and the images, uint8 [n, 3, 32, 32]."""
        both_bytes = np.asarray(labels, '>u2').reshape(-1, 1).view(np.uint8)
        pixels = np.reshape(images, [-1, dataset.IMAGE_BYTES])
        rows = np.concatenate([both_bytes[:, 2 - self._label_bytes :], pixels], 1)
        while len(rows):
            file_index, num_written = divmod(self._count, self._examples_per_file)
            part, rows = np.split(rows, [self._examples_per_file - num_written])
            with open(self._paths[file_index], 'ab') as file:
                file.write(part.tobytes())
            self._count += len(part)


def write_dataset_info(directory, class_names, origin):
    """Write dataset.json, and, for programs of books, the class names to batches.meta.txt.

    Args:
      directory: of the files.
      class_names: in label order.
      origin: the source of the images, a text.
    """
    label_bytes = dataset.label_bytes(len(class_names))
    content = {'classes': class_names, 'label_bytes': label_bytes, 'origin': origin}
    for split_name, names in [('train', dataset.TRAIN_FILES), ('test', dataset.TEST_FILES)]:
        content[split_name] = {}
        for name in names:
            path = os.path.join(directory, name)
            if os.path.exists(path):  # there may be fewer images than files
                content[split_name][name] = {
                    'examples': os.path.getsize(path) // (label_bytes + dataset.IMAGE_BYTES),
                    'sha256': files.digest(path, 'sha256'),
                }
    with open(os.path.join(directory, dataset.DATASET_INFO_FILE), 'w') as file:
        json.dump(content, file, indent=1)
    with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w', encoding='utf-8') as names:
        names.write('\n'.join(class_names) + '\n')


def hold_out(source, path, num_examples, seed):
    """Make a data set from training images alone, some of which, drawn by class, are for the test.

    It serves to choose hyperparameters without the test images.

    Args:
      source: the Dataset whose training images are divided; their order stays.
      path: of the directory of the new data set; it must not exist yet, or be empty.
      num_examples: the number of test images; each class has the part of them that it has of all
        images, rounded, and keeps an image for training.
      seed: of the random numbers.

    Raises:
      UserError: there are too few images, a file is malformed, or the data set cannot be written.
    """
    is_test = _select_held_out(source.train, num_examples, np.random.RandomState(seed))
    names = list(source.class_names or map(str, range(source.num_classes)))
    label_bytes = dataset.label_bytes(len(names))
    with new_dataset(path) as directory:
        num_train = len(is_test) - num_examples
        train = RecordWriter(directory, dataset.TRAIN_FILES, num_train, label_bytes)
        test = RecordWriter(directory, dataset.TEST_FILES, num_examples, label_bytes)
        for labels, images in verification.read_examples(source.train):
            chosen, is_test = np.split(is_test, [len(labels)])
            train.write(labels[~chosen], images[~chosen])
            test.write(labels[chosen], images[chosen])
        source_dir = os.path.abspath(source.directory)
        origin = f'the training images of {source_dir}, held out with --num_examples={num_examples} --seed={seed}'
        write_dataset_info(directory, names, origin)


def _select_held_out(split, num_examples, rng):
    """Return whether each example is held out, bool [n].

    The images of a class are ranked at random, and a rank stands for (rank + 0.5) / count of the
    class. The lowest ones of all classes together are held out, so that each class has its part.
    """
    counts = verification.count_labels(split)
    most = np.maximum(counts - 1, 0).sum()
    if num_examples > most:
        raise UserError(
            f'--num_examples={num_examples} leaves a class without an image for training: give at most {most}'
        )
    labels = np.concatenate([labels for labels, _ in verification.read_examples(split)])
    by_class = np.argsort(labels, kind='stable')
    ranks = np.concatenate([rng.permutation(count) for count in counts])
    counts = np.repeat(counts, counts)
    fractions = np.where(ranks < counts - 1, (ranks + 0.5) / counts, np.inf)
    is_test = np.zeros(len(labels), bool)
    is_test[by_class[np.argsort(fractions, kind='stable')[:num_examples]]] = True
    return is_test
