"""Data sets are written whole or not at all: beside their place, and put there when they are
complete."""

import contextlib
import hashlib
import os

import numpy as np

from cifar10 import directories, files
from cifar10.data import dataset, description, verification
from cifar10.errors import UserError


def is_present(data_dir, published=dataset.CIFAR10):
    """Whether `data_dir` holds all files of a data set: the published one, or any other that is in
    `data_dir` itself.

    Raises:
      UserError: it holds only some of them, or what should be its directory is none; it must not be
        replaced.
    """
    directory = dataset.files_dir(data_dir, published)
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise UserError(
            '%s is not a directory: move it away, or give another --data_dir' % directory
        )
    if not os.path.isdir(directory) or not os.listdir(directory):
        return False
    found = dataset.read(directory)
    missing = [path for path in found.train.paths + found.test.paths if not os.path.exists(path)]
    if missing:
        raise UserError(
            '%s is missing: put it back, or move %s away, and the whole data set is written again'
            % (missing[0], directory)
        )
    return True


@contextlib.contextmanager
def preparing(data_dir, published=dataset.CIFAR10):
    """Yields the path of the directory in which the data set must be written; None if the data set
    is present.

    No other process writes it meanwhile.
    """
    if is_present(data_dir, published):
        yield None
        return
    files.check_name(data_dir)
    path = dataset.files_dir(data_dir, published)
    with _alone_beside(path):
        yield None if is_present(data_dir, published) else path


@contextlib.contextmanager
def new_data_set(path):
    """Yields a directory that becomes `path` at the end of the block, as `new_directory` does; no
    other process writes it meanwhile.

    Raises:
      UserError: there is something at `path`, or it cannot be written.
    """
    check_new(path)
    with _alone_beside(path):
        check_new(path)  # another process may just have made it
        with new_directory(path) as directory:
            yield directory


def check_new(path):
    """Raises UserError unless a new directory can be called `path`: there may be an empty one."""
    if not path:
        raise UserError('The name of the new directory is empty: give one')
    files.check_name(path)
    if os.path.lexists(path) and (
        os.path.islink(path) or not os.path.isdir(path) or os.listdir(path)
    ):
        raise UserError('%s exists: give the name of a new directory' % path)


@contextlib.contextmanager
def _alone_beside(path):
    """Locks the parent directory of `path`, after making it. Removes what it has made if that is
    empty at the end."""
    parent = os.path.dirname(os.path.abspath(path))
    missing = directories.missing(parent)
    directories.make(parent)
    with directories.alone_in(parent):  # Whoever waits for it notices that it has been removed.
        try:
            yield
        finally:
            for directory in missing:
                with contextlib.suppress(OSError):  # It is not empty.
                    os.rmdir(directory)


@contextlib.contextmanager
def new_directory(path):
    """Yields a temporary directory beside `path` that becomes `path` at the end of the block.

    The files in it are verified first; after an error it is removed.

    Raises:
      UserError: it cannot be written, or its files are malformed.
    """
    try:
        with directories.written_whole(path) as directory:
            yield directory
            found = dataset.read(directory)
            for split in (found.train, found.test):
                verification.verify(split)
    except OSError as error:
        raise UserError(
            'Cannot write the data set to %s (%s): make room there, or give another directory'
            % (path, error)
        )


class Writer:
    """Writes the records of one part of a data set to its files, one file after the other."""

    def __init__(self, directory, names, num_examples, label_bytes):
        """Takes where to write, at most so many examples divided evenly among the files, with so
        many bytes for a label."""
        self._directory, self._names = directory, iter(names)
        self._per_file = -(-num_examples // len(names))
        self._label_bytes = label_bytes
        self._room, self._file, self._digest = 0, None, None
        self._written = {}

    def add(self, labels, images):
        """Writes the labels, integers [n], and the images, uint8 [n, 3, 32, 32]."""
        label_bytes = (
            np.asarray(labels, '>u2').reshape(-1, 1).view(np.uint8)[:, 2 - self._label_bytes :]
        )
        new = np.concatenate([label_bytes, np.reshape(images, [-1, dataset.IMAGE_BYTES])], 1)
        while len(new):
            if not self._room:
                self._start_file()
            part, new = new[: self._room].tobytes(), new[self._room :]
            count = len(part) // (self._label_bytes + dataset.IMAGE_BYTES)
            self._file.write(part)
            self._digest.update(part)
            self._room -= count
            self._about['examples'] += count

    def _start_file(self):
        self._finish_file()
        name = next(self._names)
        self._file, self._digest, self._room = (
            open(os.path.join(self._directory, name), 'wb'),
            hashlib.sha256(),
            self._per_file,
        )
        self._about = self._written[name] = {'examples': 0}

    def _finish_file(self):
        if self._file:
            self._file.close()
            self._about['sha256'] = self._digest.hexdigest()

    def close(self):
        """Closes the last file; returns the files as a Description has them."""
        self._finish_file()
        return self._written


def describe(directory, class_names, train, test, origin):
    """Writes dataset.json, and the class names to batches.meta.txt too, where programs of books
    look for them.

    Args:
      directory: of the files.
      class_names: in label order.
      train, test: what Writer.close has returned.
      origin: where the images come from.
    """
    described = description.Description(
        class_names, description.label_bytes(len(class_names)), train, test, origin
    )
    description.write(directory, described)
    with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w', encoding='utf-8') as names:
        names.write('\n'.join(class_names) + '\n')
