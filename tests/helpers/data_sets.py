"""Small data sets on disk."""

import os

import numpy as np

from cifar10.data import dataset, synthetic


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
