"""Atomic writing of data sets; hold-out of training images."""

import contextlib
import csv
import itertools
import json
import os

import numpy as np

from cifar10 import errors
from cifar10.data import catalog, dataset, verification
from cifar10.errors import UserError
from cifar10.system import directories, files

_FILES = {'train': dataset.TRAIN_FILES, 'test': dataset.TEST_FILES}


@contextlib.contextmanager
def lock_files_dir(data_dir, published=catalog.CIFAR10, progress=None):
    """Lock and yield the directory to write; yield None if the data set is present."""
    if dataset.is_present(data_dir, published):
        yield None
        return
    path = dataset.files_dir(data_dir, published)
    with directories.lock(os.path.dirname(os.path.abspath(path)), progress=progress):
        # Another process may have written it meanwhile.
        yield None if dataset.is_present(data_dir, published) else path


@contextlib.contextmanager
def new_dataset(path, progress=None):
    """Yield a temporary directory for a new data set, as `verified_directory` does.

    Args:
      path: the new or empty directory.
      progress: a function of one line of text.

    Raises:
      UserError: `path` exists and is not an empty directory.
    """
    with directories.lock(os.path.dirname(os.path.abspath(path)), progress=progress):
        check_new_directory(path)
        with verified_directory(path) as directory:
            yield directory


def check_new_directory(path):
    """Raise UserError unless `path` is new or an empty directory."""
    is_directory = os.path.isdir(path) and not os.path.islink(path)
    if os.path.lexists(path) and not (is_directory and directories.is_empty(path)):
        raise UserError(f'{path} exists: give the name of a new directory')


@contextlib.contextmanager
def verified_directory(path):
    """Yield a temporary directory; verify its files at the end, then rename it to `path`.

    After an error the directory is removed.

    Raises:
      UserError: the directory cannot be written, or its files are invalid.
    """
    try:
        with directories.atomic_directory(path) as directory:
            yield directory
            verification.verify(dataset.read(directory))
    except OSError as error:
        raise UserError(
            f'Cannot write {path} ({error}): make room there, or give another directory'
        )


def write_split(directory, split_name, chunks, num_examples, class_names):
    """Write the files of a split, and a CSV file with index, image file and class of each example.

    Args:
      directory: the directory.
      split_name: 'train' or 'test'.
      chunks: an iterable of labels, int64 [n], images, uint8 [n, 3, 32, 32], and the n names of
        their image files, or none. Unprintable characters are escaped.
      num_examples: at most this number is distributed evenly among the files.
      class_names: class names in label order.
    """
    names = _FILES[split_name]
    examples_per_file = -(-num_examples // len(names))
    count, lines = 0, []
    for labels, images, image_files in chunks:
        label_bytes = labels.astype(np.uint8).reshape(-1, 1)
        rows = np.concatenate([label_bytes, images.reshape(-1, dataset.IMAGE_BYTES)], 1)
        shown = map(errors.escape_unprintable, image_files)
        lines += zip(itertools.count(count), shown, [class_names[label] for label in labels])
        while len(rows):
            file_index, num_written = divmod(count, examples_per_file)
            part, rows = np.split(rows, [examples_per_file - num_written])
            with open(os.path.join(directory, names[file_index]), 'ab') as file:
                file.write(part.tobytes())
            count += len(part)
    if lines:
        path = os.path.join(directory, dataset.IMAGES_CSV_FILES[split_name])
        with open(path, 'w', newline='', encoding='utf-8') as file:
            csv.writer(file, lineterminator='\n').writerows([['index', 'file', 'class'], *lines])


def write_dataset_info(directory, class_names):
    """Write dataset.json and, for the books' programs, batches.meta.txt.

    Args:
      directory: directory of the files.
      class_names: class names in label order.
    """
    content = {'classes': class_names}
    for split_name, names in _FILES.items():
        content[split_name] = {}
        for name in names:
            path = os.path.join(directory, name)
            if os.path.exists(path):  # a tiny split has fewer files
                content[split_name][name] = {
                    'examples': os.path.getsize(path) // (1 + dataset.IMAGE_BYTES),
                    'sha256': files.digest(path, 'sha256'),
                }
    with open(os.path.join(directory, dataset.DATASET_INFO_FILE), 'w') as file:
        json.dump(content, file, indent=1)
    with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w', encoding='utf-8') as names:
        names.write('\n'.join(class_names) + '\n')


def hold_out(source, path, num_examples, seed, progress=None):
    """Split the training images of `source` into the training and test images of a new data set.

    The new test images serve to choose hyperparameters.

    Args:
      source: a Dataset. The order of its training images is kept.
      path: directory of the new data set, new or empty.
      num_examples: number of test images, stratified by class; each class keeps at least one
        training image.
      seed: seed of the random selection.
      progress: a function of one line of text.

    Raises:
      UserError: there are too few images, a file is invalid, or the data set cannot be written.
    """
    verification.verify_split(source.train)
    labels = np.concatenate([labels for labels, _ in verification.read_examples(source.train)])
    most = np.maximum(np.bincount(labels) - 1, 0).sum()
    if num_examples > most:
        raise UserError(
            f'--num_examples={num_examples} leaves a class without a training image: '
            f'give at most {most}'
        )
    is_test = select_held_out(labels, num_examples, np.random.RandomState(seed))
    names = list(source.class_names or map(str, range(source.num_classes)))
    image_files = source.train.image_files()

    def select(mask):
        first = 0
        for chunk_labels, images in verification.read_examples(source.train):
            chosen = np.flatnonzero(mask[first : first + len(images)])
            chosen_files = [image_files.get(first + i, '') for i in chosen] if image_files else []
            yield chunk_labels[chosen], images[chosen], chosen_files
            first += len(images)

    with new_dataset(path, progress) as directory:
        for split_name, mask in [('train', ~is_test), ('test', is_test)]:
            write_split(directory, split_name, select(mask), mask.sum(), names)
        write_dataset_info(directory, names)


def select_held_out(labels, num_examples, rng):
    """Return a mask of the held-out examples, bool [n]; each class keeps a training image.

    The images of a class get random ranks. The images with the lowest (rank + 0.5) / class count
    are held out, so the test images are stratified.

    Args:
      labels: int64 [n].
      num_examples: number of held-out examples.
      rng: a np.random.RandomState.
    """
    counts = np.bincount(labels)
    by_class = np.argsort(labels, kind='stable')
    ranks = np.concatenate([rng.permutation(count) for count in counts])
    counts = np.repeat(counts, counts)
    fractions = np.where(ranks < counts - 1, (ranks + 0.5) / counts, np.inf)
    is_test = np.zeros(len(labels), bool)
    is_test[by_class[np.argsort(fractions, kind='stable')[:num_examples]]] = True
    return is_test
