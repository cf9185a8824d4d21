"""Atomic writing of data sets; hold-out of training images."""

import contextlib
import csv
import json
import os

import numpy as np

from cifar10 import errors
from cifar10.data import catalog, dataset, verification
from cifar10.errors import UserError
from cifar10.system import directories, files

TEST_FRACTION = 0.1  # of the images of each class, if there are no test images


@contextlib.contextmanager
def lock_files_dir(data_dir, published=catalog.CIFAR10, progress=None):
    """Lock and yield the directory to write; yield None if the data set is present."""
    if dataset.is_present(data_dir, published):
        yield None
        return
    path = dataset.files_dir(data_dir, published)
    with _lock_parent(path, progress):
        # Another process may have written it meanwhile.
        yield None if dataset.is_present(data_dir, published) else path


@contextlib.contextmanager
def new_dataset(path, progress=None):
    """Yield a temporary directory for a new data set, as `verified_directory` does.

    Args:
      path: the new or empty directory.
      progress: a function of one line of text.

    Raises:
      UserError: `path` exists and is not an empty directory, or cannot be written.
    """
    check_new_directory(path)
    with _lock_parent(path, progress):
        check_new_directory(path)  # Another process may have written it.
        with verified_directory(path) as directory:
            yield directory


def check_new_directory(path):
    """Raise UserError unless `path` is new or an empty directory."""
    if not path:
        raise UserError('The name of the new directory is empty: give a name')
    if os.path.lexists(path) and (
        os.path.islink(path) or not os.path.isdir(path) or not directories.is_empty(path)
    ):
        raise UserError(f'{path} exists: give the name of a new directory')


@contextlib.contextmanager
def _lock_parent(path, progress):
    """Create and lock the parent of `path`."""
    parent = os.path.dirname(os.path.abspath(path))
    directories.make(parent)
    with directories.lock(parent, progress=progress):
        yield


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
            f'Cannot write the data set to {path} ({error}): '
            'make room there, or give another directory'
        )


class RecordWriter:
    """Writer of the records of one split."""

    def __init__(self, directory, names, num_examples):
        """Distribute at most `num_examples` evenly among the files `names`."""
        self._paths = [os.path.join(directory, name) for name in names]
        self._examples_per_file = -(-num_examples // len(names))
        self._count = 0

    def write(self, labels, images):
        """Write the labels, integers [n], and the images, uint8 [n, 3, 32, 32]."""
        label_bytes = np.asarray(labels, np.uint8).reshape(-1, 1)
        rows = np.concatenate([label_bytes, np.reshape(images, [-1, dataset.IMAGE_BYTES])], 1)
        while len(rows):
            file_index, num_written = divmod(self._count, self._examples_per_file)
            part, rows = np.split(rows, [self._examples_per_file - num_written])
            with open(self._paths[file_index], 'ab') as file:
                file.write(part.tobytes())
            self._count += len(part)


def write_dataset_info(directory, class_names, origin):
    """Write dataset.json and, for the books' programs, batches.meta.txt.

    Args:
      directory: directory of the files.
      class_names: class names in label order.
      origin: string, the source of the images.
    """
    content = {'classes': class_names, 'origin': origin}
    for split_name, names in [('train', dataset.TRAIN_FILES), ('test', dataset.TEST_FILES)]:
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


def write_images_csv(directory, split_name, image_files, class_names):
    """Write the CSV file with index, image file and class of each example of a split.

    Args:
      directory: directory of the files.
      split_name: 'train' or 'test'.
      image_files: names of the image files, in the order of the examples. Unprintable characters
        are escaped.
      class_names: class name of each example.
    """
    path = os.path.join(directory, dataset.IMAGES_CSV_FILES[split_name])
    with open(path, 'w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(['index', 'file', 'class'])
        names = map(errors.escape_unprintable, image_files)
        writer.writerows(zip(range(len(image_files)), names, class_names))


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
    with new_dataset(path, progress) as directory:
        num_written = 0
        parts = [('train', dataset.TRAIN_FILES, ~is_test), ('test', dataset.TEST_FILES, is_test)]
        writers = [RecordWriter(directory, file_names, mask.sum()) for _, file_names, mask in parts]
        for _, images in verification.read_examples(source.train):
            block = slice(num_written, num_written + len(images))
            for writer, (_, _, mask) in zip(writers, parts):
                writer.write(labels[block][mask[block]], images[mask[block]])
            num_written = block.stop
        for split_name, _, mask in parts if image_files else []:
            files_of_split = [image_files.get(index, '') for index in np.flatnonzero(mask)]
            class_names = [names[label] for label in labels[mask]]
            write_images_csv(directory, split_name, files_of_split, class_names)
        source_dir = os.path.abspath(source.directory)
        origin = f'the training images of {source_dir}, held out with num_examples={num_examples} seed={seed}'
        write_dataset_info(directory, names, origin)


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
