"""Small synthetic data sets, and no deprecation notices."""
import os

import numpy as np
import pytest

import cifar10  # first: it keeps TensorFlow's import quiet
from cifar10.data import dataset, synthetic
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.ERROR)


def write_data_set(data_dir, train_records=60, test_records=50):
    """Writes random records of the synthetic classes: `train_records` in each training file."""
    directory = os.path.join(str(data_dir), dataset.DIRECTORY)
    os.makedirs(directory)
    for index, name in enumerate(dataset.TRAIN_FILES + dataset.TEST_FILES):
        count = test_records if name in dataset.TEST_FILES else train_records
        synthetic.records(count, np.random.default_rng([7, index])).tofile(os.path.join(directory, name))
    with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w') as names:
        names.write('\n'.join(synthetic.CLASS_NAMES) + '\n')
    return str(data_dir)


@pytest.fixture(scope='session')
def data_dir(tmp_path_factory):
    """A read-only data set: five training files of 60 records, 50 test records."""
    return write_data_set(tmp_path_factory.mktemp('data'))


@pytest.fixture
def own_data_dir(tmp_path):
    """The same for one test, which may damage it."""
    return write_data_set(tmp_path / 'data')


@pytest.fixture(autouse=True)
def graph():
    """A graph of its own for each test."""
    with tf.Graph().as_default() as graph:
        yield graph
