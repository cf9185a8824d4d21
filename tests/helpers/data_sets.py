"""Small data sets on disk."""

import glob
import os

import numpy as np

from cifar10.data import dataset, synthetic


def records(paths):
    """The Records of ten classes in these files."""
    return dataset.Records([dataset.File(str(path)) for path in paths])


def write(data_dir, train_records=60, test_records=50):
    """Writes random records of the synthetic classes, `train_records` in each training file;
    returns `data_dir`."""
    directory = os.path.join(str(data_dir), dataset.DIRECTORY)
    os.makedirs(directory)
    for index, name in enumerate(dataset.TRAIN_FILES + dataset.TEST_FILES):
        count = test_records if name in dataset.TEST_FILES else train_records
        synthetic.records(count, np.random.default_rng([7, index])).tofile(
            os.path.join(directory, name)
        )
    with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w') as names:
        names.write('\n'.join(synthetic.CLASS_NAMES) + '\n')
    return str(data_dir)


def write_same(data_dir):
    """The same, with one and the same record everywhere, so that the order does not matter; returns
    `data_dir`."""
    for path in glob.glob(os.path.join(write(data_dir), dataset.DIRECTORY, '*.bin')):
        count = os.path.getsize(path) // 3073
        synthetic.records(1, np.random.default_rng(7)).repeat(count, 0).tofile(path)
    return str(data_dir)
