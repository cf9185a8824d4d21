"""Small data sets on disk."""

import os

import numpy as np

from cifar10.data import dataset, dataset_writer, synthetic


def records(paths):
    """Return the Split of ten classes in these files."""
    return dataset.Split([dataset.DataFile(str(path)) for path in paths])


def write(data_dir, train_records=60, test_records=50):
    """Write random records of the synthetic classes, `train_records` per file."""
    directory = os.path.join(str(data_dir), dataset.CIFAR10_DIRECTORY)
    os.makedirs(directory)
    for index, name in enumerate(dataset.TRAIN_FILES + dataset.TEST_FILES):
        count = test_records if name in dataset.TEST_FILES else train_records
        synthetic.draw_records(count, np.random.default_rng([7, index])).tofile(
            os.path.join(directory, name)
        )
    with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w') as names:
        names.write('\n'.join(synthetic.CLASS_NAMES) + '\n')
    return str(data_dir)


def cifar100_rows(count, seed):
    """Return records with coarse and fine labels: superclass i has the classes 5 i to 5 i + 4."""
    rows = np.random.RandomState(seed).randint(0, 256, [count, 3074]).astype(np.uint8)
    rows[:, 1] = np.arange(count) % 100
    rows[:, 0] = rows[:, 1] // 5
    return rows


def write_cifar100(directory):
    """Write 400 training and 200 test images in CIFAR-100's layout."""
    directory.mkdir()
    cifar100_rows(400, 0).tofile(str(directory / 'train.bin'))
    cifar100_rows(200, 1).tofile(str(directory / 'test.bin'))
    for kind, count in [('fine', 100), ('coarse', 20)]:
        names = ''.join(f'{kind}_{i}\n' for i in range(count))
        (directory / f'{kind}_label_names.txt').write_text(names)


def write_many(directory):
    """Write a data set of 300 classes, with one image per class and split, in files of unequal
    size; return its path.

    The first two pixels of an image hold its label.
    """
    labels = np.random.RandomState(0).permutation(300)
    images = np.zeros([300, 3, 32, 32], np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = labels // 256, labels % 256
    with dataset_writer.new_dataset(str(directory)) as new:
        for names, count in [(dataset.TRAIN_FILES, 263), (dataset.TEST_FILES, 300)]:
            writer = dataset_writer.RecordWriter(new, names, count, 2)
            for part in np.split(np.arange(count), [100, 101]):
                writer.write(labels[part], images[part])
        dataset_writer.write_dataset_info(new, [f'class {i}' for i in range(300)], 'a test')
    return str(directory)
