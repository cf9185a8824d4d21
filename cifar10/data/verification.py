"""Verification of data files: size, labels, checksums."""

import functools
import os
import zlib

import numpy as np

from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import files

_CHUNK_RECORDS = 1000
_REMEDY = 'replace it with a good copy'


def verify(split):
    """Check the files of a Split: complete records, number of records, valid labels.

    Returns:
      The total number of examples.

    Raises:
      UserError: a file is invalid; the message names it and the reason.
    """
    return int(np.sum(count_labels(split)))


def count_labels(split):
    """Verify a Split; return the number of examples per class, int64 [num_classes].

    Raises:
      UserError: see `verify`.
    """
    counts = [_verify_file(split, file) for file in split.files]
    return np.sum(counts, axis=0, dtype=np.int64)  # int64 also without files


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


def chunks(path, record_bytes):
    """Yield the bytes of a file in chunks of records; the last record may be incomplete."""
    # With a memory map, a disk error or a shrinking file would kill the process.
    with open(path, 'rb') as file:
        yield from iter(lambda: file.read(_CHUNK_RECORDS * record_bytes), b'')


def read_examples(split):
    """Yield labels, int64 [n], and images, uint8 [n, 3, 32, 32], in chunks."""
    for path in split.paths:
        for chunk in chunks(path, split.record_bytes):
            rows = np.frombuffer(chunk, np.uint8).reshape(-1, split.record_bytes)
            images = rows[:, -dataset.IMAGE_BYTES :]
            yield (
                split.labels(rows),
                images.reshape(-1, DEPTH, HEIGHT, WIDTH),
            )


def total_checksum(split):
    """Return a checksum of the CRC-32s of the files of a Split, as eight hexadecimal digits.

    Raises:
      UserError: a file is missing.
    """
    for path in split.paths:
        check_file(path)
    checksums = [_file_stats(path, split.label_bytes)[2] for path in split.paths]
    return f'{zlib.crc32(repr(checksums).encode()):08x}'


def check_file(path):
    """Raise UserError unless a data file exists."""
    if not os.path.isfile(path):
        raise UserError(
            f'{path} is missing: '
            'restore it, get a data set with `cifar10_dataset.py download` or `cifar10_dataset.py synthetic`, '
            f'or set --data_dir to the directory that holds {dataset.CIFAR10_DIRECTORY}'
        )


def _verify_file(split, file):
    """Verify a file; return its number of examples per class, int64 [num_classes].

    Raises:
      UserError: the file is invalid.
    """
    check_file(file.path)
    size, num_classes = split.record_bytes, split.num_classes
    num_bytes, counts, _ = _file_stats(file.path, split.label_bytes)
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
        source = 'in dataset.json' if file.sha256 else 'at the start'
        problem = f'has {num_examples} examples, not {file.num_examples} as {source}'
    elif bad_labels.size:
        problem = f'has labels that are not 0 to {num_classes - 1} (count: {counts[bad_labels].sum()}, for example {bad_labels[0]})'
    if problem:
        raise UserError(f'{file.path} {problem}: {_REMEDY}')
    return counts[:num_classes]


def _file_stats(path, label_bytes):
    """Return the size of a file, the counts of all possible labels, int64 [n], and the CRC-32.

    The result is cached until the file changes.
    """
    file_stat = os.stat(path)
    # The ctime shows a change even if the mtime is restored.
    cache_key = file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns
    return _cached_file_stats(path, label_bytes, cache_key)


@functools.lru_cache(maxsize=64)  # a trainer verifies several times
def _cached_file_stats(path, label_bytes, unused_cache_key):
    split = dataset.Split((), label_bytes=label_bytes)
    size = split.record_bytes
    counts, num_bytes, crc = np.zeros(256, np.int64), 0, 0
    for chunk in chunks(path, size):
        complete_records = np.frombuffer(chunk, np.uint8)[: len(chunk) // size * size]
        labels = split.labels(complete_records.reshape(-1, size))
        counts += np.bincount(labels, minlength=len(counts))
        num_bytes += len(chunk)
        crc = zlib.crc32(chunk, crc)
    return num_bytes, counts, crc
