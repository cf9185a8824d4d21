"""What is in a data set: examples by class, colours, the same image twice, pictures to look at."""

import collections
import hashlib
import os
from typing import NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import files
from cifar10.data import dataset, verification

_ROWS, _COLUMNS = 100, {'train': 12, 'test': 4}  # of a contact sheet, at most
_LISTED = 10  # duplicates
_SCALE, _GAP = 2, 4  # pixels of the sheet for a pixel of an image, and between two images


class Part(NamedTuple):
    """The training images or the test images of a data set."""

    counts: np.ndarray  # int64 [classes]
    mean: np.ndarray  # float64 [3], of each channel, from 0 to 255
    deviation: np.ndarray  # float64 [3], the standard deviation of the values of each channel


def summarize(records):
    """The Part that Records are; raises UserError if a file is malformed."""
    counts = verification.count_labels(records)
    sums, squares = np.zeros(dataset.DEPTH), np.zeros(dataset.DEPTH)
    for _, images in verification.examples(records):
        values = images.reshape(len(images), dataset.DEPTH, -1).astype(np.int64)
        sums += values.sum((0, 2))
        squares += np.square(values).sum((0, 2))
    num_values = counts.sum() * dataset.HEIGHT * dataset.WIDTH
    mean = sums / num_values
    return Part(counts, mean, np.sqrt(np.maximum(squares / num_values - mean**2, 0)))


class Duplicate(NamedTuple):
    """A test image that is a training image too, byte by byte."""

    test: str  # file:record, counted from 0
    train: str
    test_label: int
    train_label: int


def duplicates(data_set) -> Sequence[Duplicate]:
    """The test images of a DataSet that are training images too; of several equal training images
    the first is named."""
    wanted = collections.defaultdict(list)
    for place, label, digest in _digests(data_set.test):
        wanted[digest].append((place, label))
    found = {}
    for place, label, digest in _digests(data_set.train):
        if digest in wanted and digest not in found:
            found[digest] = place, label
    return [
        Duplicate(place, found[digest][0], label, found[digest][1])
        for digest, places in wanted.items()
        if digest in found
        for place, label in places
    ]


def _digests(records):
    """Yields for each example: file:record, the label, and a digest of the image."""
    for file in records.files:
        record = 0
        for labels, images in verification.examples(records._replace(files=[file])):
            for label, image in zip(labels, images):
                yield (
                    '%s:%d' % (os.path.basename(file.path), record),
                    int(label),
                    hashlib.md5(image.tobytes()).digest(),
                )
                record += 1


def contact_sheet(data_set):
    """The first images of each class: a row per class, in label order, training images to the left,
    test images to the right.

    Returns:
      uint8 [height, width, 3], white between the images.
    """
    size = dataset.HEIGHT * _SCALE + _GAP
    rows = min(data_set.num_classes, _ROWS)
    sheet = np.full(
        [rows * size + _GAP, (sum(_COLUMNS.values()) + 1) * size + _GAP, dataset.DEPTH],
        255,
        np.uint8,
    )
    for split, first_column in (('train', 0), ('test', _COLUMNS['train'] + 1)):
        shown = np.zeros(data_set.num_classes, np.int64)
        for labels, images in verification.examples(getattr(data_set, split)):
            for label in np.unique(labels[labels < rows]):
                for image in images[labels == label][: _COLUMNS[split] - shown[label]]:
                    top, left = label * size + _GAP, (first_column + shown[label]) * size + _GAP
                    enlarged = image.transpose(1, 2, 0).repeat(_SCALE, 0).repeat(_SCALE, 1)
                    sheet[top : top + size - _GAP, left : left + size - _GAP] = enlarged
                    shown[label] += 1
            if (shown[:rows] == _COLUMNS[split]).all():
                break
    return sheet


def report(data_set):
    """What is in a DataSet, as text: examples by class, colours, images in both parts; raises like
    verify."""
    parts = [summarize(records) for records in (data_set.train, data_set.test)]
    names = data_set.class_names or [str(label) for label in range(data_set.num_classes)]
    width = max(map(len, list(names) + ['deviation of green']))
    lines = ['%-*s %12s %12s' % (width, 'class', 'training', 'test')]
    lines += [
        '%-*s %12d %12d' % ((width, name) + counts)
        for name, counts in zip(names, zip(*[part.counts for part in parts]))
    ]
    lines.append('%-*s %12d %12d' % ((width, 'all') + tuple(part.counts.sum() for part in parts)))
    for what in ('mean', 'deviation'):
        for channel, color in enumerate(['red', 'green', 'blue']):
            values = tuple(getattr(part, what)[channel] for part in parts)
            lines.append('%-*s %12.2f %12.2f' % ((width, '%s of %s' % (what, color)) + values))
    twice = duplicates(data_set)
    lines.append('Test images that are also training images: %d' % len(twice))
    lines += [
        '  %s (%s) is %s (%s)'
        % (pair.test, names[pair.test_label], pair.train, names[pair.train_label])
        for pair in twice[:_LISTED]
    ]
    return '\n'.join(lines + ['  and %d more' % (len(twice) - _LISTED)] * (len(twice) > _LISTED))


def draw(data_set, path):
    """Writes the contact sheet of a DataSet to a file, PNG if its name ends in .png, else JPEG, and
    tells where."""
    encode = tf.image.encode_png if path.lower().endswith('.png') else tf.image.encode_jpeg
    with tf.Graph().as_default(), tf.Session() as session:
        content = session.run(encode(contact_sheet(data_set)))
    files.write_whole(path, content, 'name another file with --contact_sheet')
    shown = '' if data_set.num_classes <= _ROWS else ', the first %d' % _ROWS
    print(
        'A row of images of each class%s, training images to the left, test images to the right: %s'
        % (shown, path),
        flush=True,
    )
