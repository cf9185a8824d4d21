"""Folders of images made into a data set."""

import contextlib
import os
import pathlib
from typing import NamedTuple, Optional

import numpy as np

from cifar10 import errors
from cifar10.data import dataset, decoding, description, image_folders, writing
from cifar10.data.progress_bar import ProgressBar
from cifar10.errors import UserError


class Options(NamedTuple):
    """How folders are converted."""

    test_fraction: Optional[float] = None  # see image_folders.read
    seed: int = 0  # of the choice of test images, and of the order of all images
    strict: bool = False  # whether a damaged file ends the conversion


def convert(images_dir, path, options, num_threads):
    """Makes a data set of folders of images; tells which files cannot be used, and returns how many
    they are.

    Args:
      images_dir: see image_folders.read.
      path: of the directory of the data set; it must not exist yet, or be empty.
      options: an Options.
      num_threads: threads that decode.

    Raises:
      UserError: the folders are no classes, a class has no image for training, a file is damaged
        and options.strict, or the data set cannot be written, or would be among the folders.
    """
    writing.check_new(path)  # before all folders are listed
    if pathlib.Path(os.path.realpath(images_dir)) in pathlib.Path(os.path.realpath(path)).parents:
        raise UserError(
            '%s is in %s, and would be one of its folders: give a directory elsewhere'
            % (path, images_dir)
        )
    folders = image_folders.read(images_dir, options.test_fraction, options.seed)
    with writing.new_data_set(path) as directory:
        label_bytes = description.label_bytes(len(folders.class_names))
        failures, described = [], []
        num_images = len(folders.train) + len(folders.test)
        with decoding.Decoder(num_threads) as decoder, ProgressBar('Converting', num_images) as bar:
            for names, examples in [
                (dataset.TRAIN_FILES, folders.train),
                (dataset.TEST_FILES, folders.test),
            ]:
                writer = writing.Writer(directory, names, len(examples), label_bytes)
                _write(examples, decoder, writer, bar, failures)
                described.append(writer.close())
        for damaged, reason in failures:
            errors.warn('%s is left out: %s' % (damaged, reason))
        if failures and options.strict:
            raise UserError(
                'Nothing was written because of damaged files (%d): repair or remove them, or leave out --strict'
                % len(failures)
            )
        _check_classes(folders, {damaged for damaged, _ in failures})
        writing.describe(
            directory,
            folders.class_names,
            *described,
            origin='%s, converted with %s--seed=%d'
            % (
                os.path.abspath(images_dir),
                ''
                if options.test_fraction is None
                else '--test_fraction=%g ' % options.test_fraction,
                options.seed,
            ),
        )
    return len(failures)


def _write(examples, decoder, writer, bar, failures):
    """Writes the images of pairs of path and label, and appends to `failures` what cannot be
    decoded."""
    paths, labels = [path for path, _ in examples], np.array([label for _, label in examples])
    with contextlib.closing(decoder.decode(paths)) as chunks:
        for decoded in chunks:
            writer.add(labels[decoded.places], decoded.images)
            failures += decoded.failures
            bar.advance(len(decoded.places) + len(decoded.failures))


def _check_classes(folders, damaged):
    """Raises UserError unless each class has an image for training, and some have one for the
    test."""
    trained = {label for path, label in folders.train if path not in damaged}
    for label, name in enumerate(folders.class_names):
        if label not in trained:
            raise UserError(
                'The class %s has no image for training that can be used: add images, or remove its folder'
                % name
            )
    if all(path in damaged for path, _ in folders.test):
        raise UserError('No image for the test can be used: add images')
