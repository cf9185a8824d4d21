"""Verification of data files: size, labels, checksums, and changes under a run."""

import functools
import os
import zlib

import numpy as np

from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import files

# part of the error for a label that the verified files did not have
CHANGED_MESSAGE = 'a data file has changed'
_CHUNK_RECORDS = 1000  # records that are read at a time
_HINT = 'replace it with a good copy'


def verify(split):
    """Check that each file has whole records, as many as dataset.json says, with valid labels.

    Args:
      split: a Split.

    Returns:
      The number of examples in all files together.

    Raises:
      UserError: names the first bad file and what is wrong with it.
    """
    return int(np.sum(count_labels(split)))


def count_labels(split):
    """Return the number of examples of each class, int64 [num_classes].

    Raise UserError as `verify` does.
    """
    counts = [_verify_file(split, file) for file in split.files]
    return np.sum(counts, axis=0, dtype=np.int64)  # of no file, too


def verify_checksums(split):
    """Compare the files with their checksums, where dataset.json has some.

    Raises:
      UserError: a file has another one.
    """
    for file in split.files:
        if file.sha256 and files.digest(file.path, 'sha256') != file.sha256:
            raise UserError(
                f'{file.path} has been changed: its SHA-256 is not the one in dataset.json; {_HINT}'
            )


def chunks(path, record_bytes):
    """Yield the bytes of a file in chunks of whole records."""
    # not a memory map: a disk error, or a file that shrinks, would end the process there
    with open(path, 'rb') as file:
        yield from iter(lambda: file.read(_CHUNK_RECORDS * record_bytes), b'')


def read_examples(split):
    """Yield labels, int64 [n], and images, uint8 [n, 3, 32, 32], of some examples at a time."""
    for path in split.paths:
        for chunk in chunks(path, split.record_bytes):
            rows = np.frombuffer(chunk, np.uint8).reshape(-1, split.record_bytes)
            images = rows[:, -dataset.IMAGE_BYTES :]
            yield (
                split.labels(rows),
                images.reshape(-1, DEPTH, HEIGHT, WIDTH),
            )


def total_checksum(split):
    """Return a CRC-32 of all files of a Split, in their order, as eight hexadecimal digits."""
    checksums = [_checksum(path, split.label_weights) for path in split.paths]
    return f'{zlib.crc32(repr(checksums).encode()):08x}'


def check_file(path):
    """Raise UserError if a data file does not exist, or is not a regular file."""
    try:
        files.check_regular_file(path, _HINT)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f'{path} is missing: put it back, fetch the data set with `cifar10_dataset.py download`, make '
            'one with `cifar10_dataset.py synthetic`, or point --data_dir at the directory that holds '
            f'{dataset.CIFAR10_DIRECTORY}'
        )


def _verify_file(split, file):
    """Return the number of examples of each class in a file, int64 [num_classes].

    Raise UserError if it is malformed.
    """
    check_file(file.path)
    size, num_classes = split.record_bytes, split.num_classes
    num_bytes, counts, _ = _file_stats(file.path, split.label_weights)
    num_examples, num_extra_bytes = divmod(num_bytes, size)
    bad_labels = np.flatnonzero(counts[num_classes:]) + num_classes
    problem = None
    if not num_bytes:
        problem = 'is empty'
    elif num_extra_bytes:
        problem = (
            f'is not a whole number of records: its {num_bytes} bytes are {num_examples} records of {size} bytes and '
            f'{num_extra_bytes} more'
        )
    elif file.num_examples not in (None, num_examples):
        problem = f'has {num_examples} examples, not the {file.num_examples} that dataset.json says'
    elif bad_labels.size:
        problem = f'has labels that are not 0 to {num_classes - 1}: {counts[bad_labels].sum()} of them, such as {bad_labels[0]}'
    if problem:
        raise UserError(f'{file.path} {problem}; {_HINT}')
    return counts[:num_classes]


def _checksum(path, label_weights):
    _, _, crc = _file_stats(path, label_weights)
    return crc


def _file_stats(path, label_weights):
    """Return size of a file, count of each possible label, int64 [n], and CRC-32.

    It is read once, until it changes.
    """
    file_stat = os.stat(path)
    # The change time shows that the file was written, even if its modification time is restored.
    cache_key = file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns
    return _cached_file_stats(path, tuple(label_weights), cache_key)


@functools.lru_cache(maxsize=64)  # a trainer asks several times
def _cached_file_stats(path, label_weights, unused_cache_key):
    split = dataset.Split((), label_weights=label_weights)
    size = split.record_bytes
    counts, num_bytes, crc = np.zeros(256 ** len(label_weights), np.int64), 0, 0
    for chunk in chunks(path, size):
        complete_records = np.frombuffer(chunk, np.uint8)[: len(chunk) // size * size]
        labels = split.labels(complete_records.reshape(-1, size))
        counts += np.bincount(labels, minlength=len(counts))
        num_bytes += len(chunk)
        crc = zlib.crc32(chunk, crc)
    return num_bytes, counts, crc


class Snapshot:
    """Size, times and checksum of each file at the start of a run."""

    def __init__(self, split):
        """Take the snapshot; raise UserError if a file is missing or not regular."""
        self._label_weights = split.label_weights
        self._files = {}
        for path in split.paths:
            check_file(path)
            self._files[path] = os.stat(path), _checksum(path, split.label_weights)

    def find_change(self):
        """Return a line about the first changed file, or None.

        Sizes and times are compared: opening a file that has been replaced by a FIFO could wait for
        ever. Nobody can set back the change time (ctime), but permissions and hard links change it
        too. If nothing else differs, the checksum decides.
        """
        for path, (before, checksum) in self._files.items():
            try:
                now = os.stat(path)
                file_type = files.special_file_type(now.st_mode)
                if file_type:
                    return f'{path} is now {file_type}'
                if now.st_size != before.st_size:
                    return f'{path} has changed: it had {before.st_size} bytes, now {now.st_size}'
                if now.st_mtime_ns != before.st_mtime_ns or (
                    now.st_ctime_ns != before.st_ctime_ns
                    and _checksum(path, self._label_weights) != checksum
                ):
                    return f'{path} has changed since the start'
            except FileNotFoundError:
                return f'{path} has been removed'
            except OSError as error:
                return f'{path} cannot be read any more ({error.strerror})'
        return None
