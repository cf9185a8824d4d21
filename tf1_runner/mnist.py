"""MNIST as NumPy arrays: tensorflow.examples.tutorials.mnist.input_data."""

import gzip
import os
import struct
from typing import NamedTuple
import zlib

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from tf1_runner import downloads
from tf1_runner.private_api import get_seed

_NUM_CLASSES = 10
_IMAGES, _LABELS = 2051, 2049  # magic numbers of the files; source: yann.lecun.com/exdb/mnist


class DataSet:
    """Images and labels, in batches."""

    def __init__(self, images, labels, *, dtype=tf.float32, reshape=True, seed=None):
        """Set the data, and seed NumPy's random numbers, as TensorFlow does.

        Args:
          images: uint8 [examples, height, width, 1].
          labels: uint8 [examples], or one-hot vectors.
          dtype: tf.uint8, or tf.float32 to divide the images by 255.
          reshape: reshape the images to [examples, height * width] if True.
          seed: int, or None for the seed of the graph.
        """
        seeds = get_seed(seed)
        np.random.seed(seeds[0] if seed is None else seeds[1])
        if reshape:
            images = images.reshape(len(images), images.shape[1] * images.shape[2])
        if tf.as_dtype(dtype) == tf.float32:
            images = images.astype(np.float32) * np.float32(1 / 255)
        self._images, self._labels = images, labels
        self._num_examples = len(images)
        self._epochs_completed = 0
        self._index_in_epoch = 0

    @property
    def images(self):
        """The images, in the order of the present epoch."""
        return self._images

    @property
    def labels(self):
        """The labels, in the order of the present epoch."""
        return self._labels

    @property
    def num_examples(self):
        """The number of examples."""
        return self._num_examples

    def next_batch(self, batch_size, *, shuffle=True):
        """Return the next images and labels; the batch may contain two epochs."""
        start = self._index_in_epoch
        if shuffle and start == self._epochs_completed == 0:
            self._shuffle()
        end = start + batch_size
        batch = self._images[start:end], self._labels[start:end]
        if end > self._num_examples:
            self._epochs_completed += 1
            if shuffle:
                self._shuffle()
            end -= self._num_examples
            rest = self._images[:end], self._labels[:end]
            batch = tuple(np.concatenate(parts) for parts in zip(batch, rest))
        self._index_in_epoch = end
        return batch

    def _shuffle(self):
        order = np.arange(self._num_examples)
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


class Datasets(NamedTuple):
    """The three DataSets."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir, *, one_hot=False, dtype=tf.float32, reshape=True, validation_size=5000, seed=None
):
    """Return the Datasets of MNIST, or of other files of the same names and format.

    Missing files are downloaded.

    Args:
      train_dir: directory of the four files, compressed or not.
      one_hot: labels are float64 [examples, 10] if True, else uint8 [examples].
      dtype: see DataSet.
      reshape: see DataSet.
      validation_size: number of training examples for validation.
      seed: see DataSet.

    Raises:
      UserError: a file is damaged, or cannot be downloaded.
      ValueError: the validation size is larger than the number of training examples.
    """
    options = {'dtype': dtype, 'reshape': reshape, 'seed': seed}
    arrays = []
    for name, magic in [
        ('train-images-idx3-ubyte.gz', _IMAGES),
        ('train-labels-idx1-ubyte.gz', _LABELS),
        ('t10k-images-idx3-ubyte.gz', _IMAGES),
        ('t10k-labels-idx1-ubyte.gz', _LABELS),
    ]:
        arrays.append(_read(_obtain(train_dir, name), magic))
        if magic == _LABELS and one_hot:
            arrays[-1] = np.eye(_NUM_CLASSES)[arrays[-1]]
    train_images, train_labels, test_images, test_labels = arrays
    if not 0 <= validation_size <= len(train_images):
        raise ValueError(
            f'Validation size should be between 0 and {len(train_images)}. Received: {validation_size}.'
        )
    return Datasets(
        DataSet(train_images[validation_size:], train_labels[validation_size:], **options),
        DataSet(train_images[:validation_size], train_labels[:validation_size], **options),
        DataSet(test_images, test_labels, **options),
    )


def _obtain(directory, name):
    """Return the path of a file; download it if it is missing."""
    path = os.path.join(directory, name)
    for present in (path, path[: -len('.gz')]):
        if os.path.exists(present):
            return present
    os.makedirs(directory, exist_ok=True)
    downloads.fetch(downloads.MNIST[name], path)
    return path


def _read(path, magic):
    """Return the array of a file: uint8 [examples, height, width, 1], or [examples].

    The format: the magic number, the number of examples and for images their height and width, as
    big-endian int32; then the bytes. Source: yann.lecun.com/exdb/mnist.
    """
    print('Extracting', path)
    num_sizes = 3 if magic == _IMAGES else 1
    try:
        with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
            found, *sizes = struct.unpack(f'>{1 + num_sizes}i', file.read(4 + 4 * num_sizes))
            content = np.frombuffer(file.read(), np.uint8)
        if found != magic:
            raise ValueError(f'its magic number is {found}, not {magic}')
        return content.reshape(sizes + [1] * (magic == _IMAGES))
    except (EOFError, OSError, ValueError, struct.error, zlib.error) as error:
        raise UserError(f'{path} is damaged ({error}): delete it')
