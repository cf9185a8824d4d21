"""The version of CIFAR-10 and CIFAR-100 for Python, with the pickles of Python 2."""

import io
import os
import pickle
import struct

import numpy as np

from cifar10.data import dataset


class _Python2Pickler(pickle._Pickler):
    """Writes bytes as strings of Python 2."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_bytes(self, content):
        if len(content) < 256:
            self.write(pickle.SHORT_BINSTRING + bytes([len(content)]) + content)
        else:
            self.write(pickle.BINSTRING + struct.pack('<i', len(content)) + content)
        self.memoize(content)

    dispatch[bytes] = save_bytes


def dump(content, path):
    """Write a pickle as the original ones, which Python 2 wrote with protocol 2."""
    pickled = io.BytesIO()
    _Python2Pickler(pickled, 2).dump(content)
    with open(str(path), 'wb') as file:  # NumPy 2 has another name of the module.
        file.write(pickled.getvalue().replace(b'cnumpy._core.', b'cnumpy.core.'))


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
