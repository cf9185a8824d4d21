"""Verification of data files, their labels and checksums, and a snapshot that notices changes."""

import functools
import hashlib
import os
from typing import NamedTuple
import zlib

import numpy as np

from cifar10 import files
from cifar10.data import dataset
from cifar10.errors import UserError

# part of the error for a label that the verified files did not have
CHANGED = 'a data file has changed'
_PIECE = 1000  # records that are read at a time
_REMEDY = 'replace it with a good copy'


def verify(records, num_classes=None):
    """Checks that each file is a whole number of records, as many as dataset.json says, with labels
    below the number of classes.

    Args:
      records: a Records.
      num_classes: the number of classes; None takes that of the records.

    Returns:
      The number of examples in all files together.

    Raises:
      UserError: names the first bad file and what is wrong with it.
    """
    return int(
        sum(
            _verified_counts(records, file, num_classes or records.num_classes).sum()
            for file in records.files
        )
    )


def count_labels(records):
    """The number of examples of each class, int64 [num_classes]; raises UserError as `verify`
    does."""
    total = np.zeros(records.num_classes, np.int64)
    for file in records.files:
        counts = _verified_counts(records, file, records.num_classes)
        total[: len(counts)] += counts
    return total


def check_sums(records):
    """Compares the files with their checksums, where dataset.json has some.

    Raises:
      UserError: a file has another one.
    """
    for file in records.files:
        if file.sha256:
            digest = hashlib.sha256()
            for piece in pieces(file.path, records.record_bytes):
                digest.update(piece)
            if digest.hexdigest() != file.sha256:
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
            images = rows[:, len(records.label_weights) :].reshape(
                -1, dataset.DEPTH, dataset.HEIGHT, dataset.WIDTH
            )
            yield records.labels(rows), images


def checksum(path, label_weights):
    """Returns the CRC-32 of a data file. The file is read once for its checksum and its labels,
    until it changes."""
    return _content(path, tuple(label_weights), _state(path)).checksum


def total_checksum(records):
    """Returns a CRC-32 of all files of a Records, in their order, as eight hexadecimal digits."""
    checksums = [checksum(path, records.label_weights) for path in records.paths]
    return '%08x' % zlib.crc32(repr(checksums).encode())


def check_file(path):
    """Raises UserError if a data file does not exist, or is not a regular file."""
    try:
        files.check_regular(path, _REMEDY)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            '%s is missing: fetch the data set with `cifar10_dataset.py download`, make one with '
            '`cifar10_dataset.py synthetic`, or point --data_dir at the directory that holds %s'
            % (path, dataset.DIRECTORY)
        )


def _verified_counts(records, file, num_classes):
    """How often each label is in the file, int64 [the greatest label + 1]; raises UserError if
    something is wrong with it."""
    if file.num_examples is not None and not os.path.exists(file.path):
        raise UserError(
            '%s is missing, which dataset.json names: put it back, or make the data set again'
            % file.path
        )
    check_file(file.path)
    size = records.record_bytes
    num_bytes, counts, _ = _content(file.path, tuple(records.label_weights), _state(file.path))
    if num_bytes == 0:
        raise UserError('%s is empty: %s' % (file.path, _REMEDY))
    if num_bytes % size:
        raise UserError(
            '%s is not a whole number of records: its %d bytes are %d records of %d bytes and %d more; %s'
            % (file.path, num_bytes, num_bytes // size, size, num_bytes % size, _REMEDY)
        )
    if file.num_examples not in (None, num_bytes // size):
        raise UserError(
            '%s has %d examples, not the %d that dataset.json says; %s'
            % (file.path, num_bytes // size, file.num_examples, _REMEDY)
        )
    num_bad = counts[num_classes:].sum()
    if num_bad:
        raise UserError(
            '%s has labels that are not 0 to %d: %d of them, the first (%d) in record %d; %s'
            % (
                (file.path, num_classes - 1, num_bad)
                + _first_bad(records, file.path, num_classes)
                + (_REMEDY,)
            )
        )
    return counts


class _Content(NamedTuple):
    num_bytes: int
    counts: np.ndarray  # how often each label is in the file
    checksum: int


def _state(path):
    """Returns values that change when the file is written, even if its modification time is
    restored."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@functools.lru_cache(maxsize=64)  # a trainer asks several times
def _content(path, label_weights, unused_state):
    """The _Content of the file in this state."""
    form = dataset.Records((), label_weights=label_weights)
    counts, num_bytes, crc = np.zeros(256 ** len(label_weights), np.int64), 0, 0
    for piece in pieces(path, form.record_bytes):
        whole = np.frombuffer(piece, np.uint8)[
            : len(piece) // form.record_bytes * form.record_bytes
        ]
        counts += np.bincount(
            form.labels(whole.reshape(-1, form.record_bytes)), minlength=len(counts)
        )
        num_bytes += len(piece)
        crc = zlib.crc32(piece, crc)
    return _Content(num_bytes, np.trim_zeros(counts, 'b'), crc)


def _first_bad(records, path, num_classes):
    """The first label that is not below `num_classes`, and the number of its record."""
    for i, piece in enumerate(pieces(path, records.record_bytes)):
        labels = records.labels(np.frombuffer(piece, np.uint8).reshape(-1, records.record_bytes))
        bad = np.flatnonzero(labels >= num_classes)
        if bad.size:
            return labels[bad[0]], i * _PIECE + bad[0]
    raise UserError('%s is being changed: start again' % path)


class Snapshot:
    """Size, times and checksum of each file at the start of a run."""

    def __init__(self, records):
        """Takes a Records; raises UserError if one of its files is missing, or is not a regular
        file."""
        self._label_weights = records.label_weights
        self._found = {}
        for path in records.paths:
            check_file(path)
            self._found[path] = os.stat(path), checksum(path, self._label_weights)

    def changed(self):
        """None, or a line that names the first file that has changed, and says how.

        Sizes and times are compared: to open a file could wait for ever, if it has been replaced by
        a FIFO. Nobody can set back the change time (ctime), but permissions and hard links change
        it too. If nothing else differs, the checksum decides.
        """
        for path, (before, before_sum) in self._found.items():
            try:
                now = os.stat(path)
                kind = files.special_kind(now.st_mode)
                if kind:
                    return '%s is now %s' % (path, kind)
                if now.st_size != before.st_size:
                    return '%s has changed: it had %d bytes, now %d' % (
                        path,
                        before.st_size,
                        now.st_size,
                    )
                if now.st_mtime_ns != before.st_mtime_ns or (
                    now.st_ctime_ns != before.st_ctime_ns
                    and checksum(path, self._label_weights) != before_sum
                ):
                    return '%s has changed since the start' % path
            except OSError as error:
                return '%s %s' % (
                    path,
                    'has been removed'
                    if isinstance(error, FileNotFoundError)
                    else 'cannot be read any more (%s)' % error.strerror,
                )
        return None
