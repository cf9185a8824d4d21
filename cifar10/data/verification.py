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
CHANGED = 'a data file has changed'
_PIECE = 1000  # records that are read at a time
_REMEDY = 'replace it with a good copy'


def verify(records):
    """Checks that each file is a whole number of records, as many as dataset.json says, with labels
    below the number of classes.

    Args:
      records: a Records.

    Returns:
      The number of examples in all files together.

    Raises:
      UserError: names the first bad file and what is wrong with it.
    """
    return int(np.sum(count_labels(records)))


def count_labels(records):
    """The number of examples of each class, int64 [num_classes]; raises UserError as `verify`
    does."""
    counts = [_verified_counts(records, file) for file in records.files]
    return np.sum(counts, axis=0, dtype=np.int64)  # of no file, too


def check_sums(records):
    """Compares the files with their checksums, where dataset.json has some.

    Raises:
      UserError: a file has another one.
    """
    for file in records.files:
        if file.sha256 and files.digest(file.path, 'sha256') != file.sha256:
            raise UserError(
                '%s has been changed: its SHA-256 is not the one in dataset.json; %s'
                % (file.path, _REMEDY)
            )


def pieces(path, record_bytes):
    """Yields the bytes of a file in pieces of whole records."""
    # not a memory map: a disk error, or a file that shrinks, would end the process there
    with open(path, 'rb') as opened:
        yield from iter(lambda: opened.read(_PIECE * record_bytes), b'')


def examples(records):
    """Yields the labels, int64 [n], and the images, uint8 [n, 3, 32, 32], of a thousand examples at
    a time, in their order."""
    for path in records.paths:
        for piece in pieces(path, records.record_bytes):
            rows = np.frombuffer(piece, np.uint8).reshape(-1, records.record_bytes)
            images = rows[:, -dataset.IMAGE_BYTES :]
            yield (
                records.labels(rows),
                images.reshape(-1, DEPTH, HEIGHT, WIDTH),
            )


def total_checksum(records):
    """Returns a CRC-32 of all files of a Records, in their order, as eight hexadecimal digits."""
    checksums = [_checksum(path, records.label_weights) for path in records.paths]
    return '%08x' % zlib.crc32(repr(checksums).encode())


def check_file(path):
    """Raises UserError if a data file does not exist, or is not a regular file."""
    try:
        files.check_regular(path, _REMEDY)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            '%s is missing: put it back, fetch the data set with `cifar10_dataset.py download`, make '
            'one with `cifar10_dataset.py synthetic`, or point --data_dir at the directory that holds '
            '%s' % (path, dataset.DIRECTORY)
        )


def _verified_counts(records, file):
    """How often each label is in the file, int64 [num_classes]; raises UserError if something is
    wrong with it."""
    check_file(file.path)
    size, num_classes = records.record_bytes, records.num_classes
    num_bytes, counts, _ = _content(file.path, records.label_weights)
    num_examples, num_more = divmod(num_bytes, size)
    bad = np.flatnonzero(counts[num_classes:]) + num_classes
    fault = None
    if not num_bytes:
        fault = 'is empty'
    elif num_more:
        fault = (
            'is not a whole number of records: its %d bytes are %d records of %d bytes and %d more'
            % (num_bytes, num_examples, size, num_more)
        )
    elif file.num_examples not in (None, num_examples):
        fault = 'has %d examples, not the %d that dataset.json says' % (
            num_examples,
            file.num_examples,
        )
    elif bad.size:
        fault = 'has labels that are not 0 to %d: %d of them, such as %d' % (
            num_classes - 1,
            counts[bad].sum(),
            bad[0],
        )
    if fault:
        raise UserError('%s %s; %s' % (file.path, fault, _REMEDY))
    return counts[:num_classes]


def _checksum(path, label_weights):
    _, _, crc = _content(path, label_weights)
    return crc


def _content(path, label_weights):
    """The bytes of a file, how often each possible label is in it, int64 [n], and its CRC-32. It is
    read once, until it changes."""
    found = os.stat(path)
    # The change time shows that the file was written, even if its modification time is restored.
    state = found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return _content_in_state(path, tuple(label_weights), state)


@functools.lru_cache(maxsize=64)  # a trainer asks several times
def _content_in_state(path, label_weights, unused_state):
    records = dataset.Records((), label_weights=label_weights)
    size = records.record_bytes
    counts, num_bytes, crc = np.zeros(256 ** len(label_weights), np.int64), 0, 0
    for piece in pieces(path, size):
        whole = np.frombuffer(piece, np.uint8)[: len(piece) // size * size]
        labels = records.labels(whole.reshape(-1, size))
        counts += np.bincount(labels, minlength=len(counts))
        num_bytes += len(piece)
        crc = zlib.crc32(piece, crc)
    return num_bytes, counts, crc


class Snapshot:
    """Size, times and checksum of each file at the start of a run."""

    def __init__(self, records):
        """Takes a Records; raises UserError if one of its files is missing, or is not a regular
        file."""
        self._label_weights = records.label_weights
        self._found = {}
        for path in records.paths:
            check_file(path)
            self._found[path] = os.stat(path), _checksum(path, records.label_weights)

    def changed(self):
        """None, or a line that names the first file that has changed, and says how.

        Sizes and times are compared: to open a file could wait for ever, if it has been replaced by
        a FIFO. Nobody can set back the change time (ctime), but permissions and hard links change
        it too. If nothing else differs, the checksum decides.
        """
        for path, (before, checksum) in self._found.items():
            try:
                now = os.stat(path)
                kind = files.special_kind(now.st_mode)
                if kind:
                    return '%s is now %s' % (path, kind)
                if now.st_size != before.st_size:
                    sizes = before.st_size, now.st_size
                    return '%s has changed: it had %d bytes, now %d' % (path, *sizes)
                if now.st_mtime_ns != before.st_mtime_ns or (
                    now.st_ctime_ns != before.st_ctime_ns
                    and _checksum(path, self._label_weights) != checksum
                ):
                    return '%s has changed since the start' % path
            except FileNotFoundError:
                return '%s has been removed' % path
            except OSError as error:
                return '%s cannot be read any more (%s)' % (path, error.strerror)
        return None
