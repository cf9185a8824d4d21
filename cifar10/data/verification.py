"""Verification of data files: size, labels, checksums."""

import os
import zlib

import numpy as np

from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import files

_CHUNK_RECORDS = 1000
_REMEDY = 'replace it with a good copy'


def verify(found):
    """Return a Dataset with verified splits; see `verify_split`."""
    return found._replace(train=verify_split(found.train), test=verify_split(found.test))


def verify_split(split):
    """Check the files of a Split, unless that is done: complete records, their number, labels.

    Returns:
      The Split with the number of examples per class, and a checksum of the CRC-32s of the files.

    Raises:
      UserError: a file is missing or invalid; the message names it and the reason.
    """
    if split.counts is not None:
        return split
    counts, checksums = zip(*[_verify_file(split, file) for file in split.files])
    checksum = f'{zlib.crc32(repr(list(checksums)).encode()):08x}'
    return split._replace(counts=np.sum(counts, axis=0).tolist(), checksum=checksum)


def verify_checksums(split):
    """Compare the files with their checksums in dataset.json, if any.

    Raises:
      UserError: a checksum differs.
    """
    for file in split.files:
        if file.sha256 and files.digest(file.path, 'sha256') != file.sha256:
            raise UserError(
                f'{file.path} has been changed: its SHA-256 differs from dataset.json: {_REMEDY}'
            )


def _chunks(path, record_bytes):
    """Yield the bytes of a file in chunks of records; the last record may be incomplete."""
    # With a memory map, a disk error or a shrinking file would kill the process.
    with open(path, 'rb') as file:
        yield from iter(lambda: file.read(_CHUNK_RECORDS * record_bytes), b'')


def read_examples(split):
    """Yield labels, int64 [n], and images, uint8 [n, 3, 32, 32], in chunks."""
    for path in split.paths:
        for chunk in _chunks(path, split.record_bytes):
            rows = np.frombuffer(chunk, np.uint8).reshape(-1, split.record_bytes)
            images = rows[:, -dataset.IMAGE_BYTES :]
            yield split.labels(rows), images.reshape(-1, DEPTH, HEIGHT, WIDTH)


def _verify_file(split, file):
    """Verify a file; return its number of examples per class, int64 [num_classes], and CRC-32."""
    if not os.path.isfile(file.path):
        raise UserError(
            f'{file.path} is missing: '
            'restore it, get a data set with `cifar10_dataset.py download` or `cifar10_dataset.py synthetic`, '
            f'or set --data_dir to the directory that holds {dataset.CIFAR10_DIRECTORY}'
        )
    size, num_classes = split.record_bytes, split.num_classes
    counts, num_bytes, crc = np.zeros(256, np.int64), 0, 0
    for chunk in _chunks(file.path, size):
        complete_records = np.frombuffer(chunk, np.uint8)[: len(chunk) // size * size]
        labels = split.labels(complete_records.reshape(-1, size))
        counts += np.bincount(labels, minlength=len(counts))
        num_bytes += len(chunk)
        crc = zlib.crc32(chunk, crc)
    num_examples, num_extra_bytes = divmod(num_bytes, size)
    bad_labels = np.flatnonzero(counts[num_classes:]) + num_classes
    problem = None
    if not num_bytes:
        problem = 'is empty'
    elif num_extra_bytes:
        problem = (
            f'has an incomplete record: its {num_bytes} bytes are {num_examples} records of {size} bytes and '
            f'{num_extra_bytes} more'
        )
    elif file.num_examples not in (None, num_examples):
        problem = f'has {num_examples} examples, not {file.num_examples} as in dataset.json'
    elif bad_labels.size:
        problem = f'has labels that are not 0 to {num_classes - 1} (count: {counts[bad_labels].sum()}, for example {bad_labels[0]})'
    if problem:
        raise UserError(f'{file.path} {problem}: {_REMEDY}')
    return counts[:num_classes], crc
