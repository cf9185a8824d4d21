"""The data sets of tf.contrib.learn.datasets."""

import csv
import os
from typing import NamedTuple
import urllib.request

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from tf1_runner import mnist


class Dataset(NamedTuple):
    """Arrays of features and targets."""

    data: np.ndarray
    target: np.ndarray


def load_csv_with_header(filename, target_dtype, features_dtype, target_column=-1):
    """Return the Dataset of a CSV file whose first line has the sizes: examples, features.

    Args:
      filename: path of the file.
      target_dtype: NumPy type of the targets [examples].
      features_dtype: NumPy type of the features [examples, features].
      target_column: index of the column of the targets.
    """
    return _load_csv(filename, target_dtype, features_dtype, target_column, 1)


def load_csv_without_header(filename, target_dtype, features_dtype, target_column=-1):
    """Return the Dataset of a CSV file; see `load_csv_with_header`."""
    return _load_csv(filename, target_dtype, features_dtype, target_column, 0)


def _load_csv(filename, target_dtype, features_dtype, target_column, num_headers):
    with tf.gfile.Open(filename) as file:
        rows = list(csv.reader(file))[num_headers:]
    target = [row.pop(target_column) for row in rows]
    return Dataset(np.array(rows).astype(features_dtype), np.array(target).astype(target_dtype))


def maybe_download(filename, work_directory, source_url):
    """Return the path of a file in a directory; download it if it is missing."""
    path = os.path.join(work_directory, filename)
    if not os.path.exists(path):
        os.makedirs(work_directory, exist_ok=True)
        urllib.request.urlretrieve(source_url, path)
        print('Successfully downloaded', filename, os.path.getsize(path), 'bytes.')
    return path


def load_dataset(name):
    """Return the data set 'mnist', downloaded to the directory MNIST-data.

    Raises:
      UserError: it is another data set.
    """
    if name != 'mnist':
        raise UserError(
            f'load_dataset has only MNIST, not {name!r}',
            'use sklearn.datasets.load_iris() for the irises, or read its file with NumPy',
        )
    return mnist.load_mnist()
