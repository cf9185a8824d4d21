"""The version of CIFAR-10 and CIFAR-100 for Python, written with pickle and NumPy."""

import os
import pickle

import numpy as np

from cifar10.data import dataset


def dump(content, path, protocol=2):
    """Write a pickle as the original ones, which Python 2 wrote with protocol 2."""
    with open(str(path), 'wb') as file:
        pickle.dump(content, file, protocol)


def write(binary_directory, directory):
    """Write the pickles for the binary files in a directory; return the path."""
    directory.mkdir()
    if (binary_directory / dataset.CLASS_NAMES_FILE).exists():
        meta, keys = 'batches.meta', [b'labels']
        names = {b'label_names': dataset.CLASS_NAMES_FILE}
    else:
        meta, keys = 'meta', [b'coarse_labels', b'fine_labels']
        names = {key[:-1] + b'_names': key[:-1].decode() + '_names.txt' for key in keys}
    for path in binary_directory.glob('*.bin'):
        rows = np.fromfile(str(path), np.uint8).reshape(-1, len(keys) + dataset.IMAGE_BYTES)
        content = {b'batch_label': b'a batch', b'data': rows[:, len(keys) :].copy()}
        content.update({key: rows[:, column].tolist() for column, key in enumerate(keys)})
        dump(content, directory / os.path.splitext(path.name)[0])
    dump(
        {
            key: [name.encode() for name in (binary_directory / file).read_text().split()]
            for key, file in names.items()
        },
        directory / meta,
    )
    return directory
