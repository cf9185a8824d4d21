"""Statistics of a data set: class counts, channel statistics, duplicates, contact sheet."""

import hashlib
import os

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.data import verification
from cifar10.system import files

_MAX_ROWS, _MAX_COLUMNS = 100, {'train': 12, 'test': 4}  # of a contact sheet
_MAX_LISTED = 10  # duplicates
_SCALE = 2  # enlargement of images and borders on the contact sheet


def split_statistics(split):
    """Count the examples of a Split; compute mean and standard deviation of each channel.

    Returns:
      Number of examples per class, int64 [classes]; mean and standard deviation per channel,
      float64 [3], 0 to 255.

    Raises:
      UserError: a file is invalid.
    """
    counts = verification.count_labels(split)
    sums, squares = np.zeros([2, DEPTH])
    for _, images in verification.read_examples(split):
        values = images.astype(np.int64)
        sums += values.sum((0, 2, 3))
        squares += np.square(values).sum((0, 2, 3))
    num_values = counts.sum() * HEIGHT * WIDTH
    mean = sums / num_values
    return counts, mean, np.sqrt(np.maximum(squares / num_values - mean**2, 0))


def find_duplicates(dataset):
    """Return the test images of a Dataset that equal a training image byte by byte.

    Returns:
      A list of (test key, test label, train key, train label). A key is the image file, or else
      file:record, from 0. The training image is the first equal one.
    """
    first = {}
    for digest, key, label in _image_digests(dataset.train):
        first.setdefault(digest, (key, label))
    return [
        (key, label) + first[digest]
        for digest, key, label in _image_digests(dataset.test)
        if digest in first
    ]


def _image_digests(split):
    """Yield (digest of the image, key, label) of each example; see find_duplicates."""
    image_files, index = split.image_files(), 0
    for file in split.files:
        record = 0
        for labels, images in verification.read_examples(split._replace(files=[file])):
            for label, image in zip(labels, images):
                digest = hashlib.sha256(image.tobytes()).digest()
                key = image_files.get(index, f'{os.path.basename(file.path)}:{record}')
                yield digest, key, int(label)
                record, index = record + 1, index + 1


def contact_sheet(dataset):
    """Draw the first images of each class, one row per class, in label order.

    Training images are on the left, test images on the right.

    Returns:
      uint8 [height, width, 3] with white borders.
    """
    rows = min(dataset.num_classes, _MAX_ROWS)
    columns = sum(_MAX_COLUMNS.values()) + 1  # an empty column separates the splits
    bordered = HEIGHT + 2, WIDTH + 2, DEPTH
    sheet = np.full([rows, columns, *bordered], 255, np.uint8)
    for split_name, first_column in [('train', 0), ('test', _MAX_COLUMNS['train'] + 1)]:
        shown = [0] * rows
        for labels, images in verification.read_examples(getattr(dataset, split_name)):
            for label, image in zip(labels, images):
                if label < rows and shown[label] < _MAX_COLUMNS[split_name]:
                    column = first_column + shown[label]
                    sheet[label, column, 1:-1, 1:-1] = image.transpose(1, 2, 0)
                    shown[label] += 1
            if min(shown) == _MAX_COLUMNS[split_name]:
                break
    # The first hstack joins the rows, the second one the columns.
    joined = np.hstack(np.hstack(sheet))
    return joined.repeat(_SCALE, 0).repeat(_SCALE, 1)


def describe(dataset):
    """Return the statistics of a Dataset as text.

    Raises:
      UserError: a file is invalid.
    """
    counts, means, deviations = zip(*map(split_statistics, (dataset.train, dataset.test)))
    names = dataset.class_names or [str(label) for label in range(dataset.num_classes)]
    width = max(map(len, list(names) + ['deviation of green']))
    lines = [f'{"class":<{width}} {"training":>12} {"test":>12}']
    counts_of_classes = list(zip(names, *counts)) + [('all', *map(np.sum, counts))]
    for name, in_training, in_test in counts_of_classes:
        lines.append(f'{name:<{width}} {in_training:12} {in_test:12}')
    for title, values in [('mean', means), ('deviation', deviations)]:
        for color, in_training, in_test in zip(['red', 'green', 'blue'], *values):
            lines.append(f'{title + " of " + color:<{width}} {in_training:12.2f} {in_test:12.2f}')
    pairs = find_duplicates(dataset)
    lines.append(f'Test images that are also training images: {len(pairs)}')
    for test, test_label, train, train_label in pairs[:_MAX_LISTED]:
        lines.append(f'  {test} ({names[test_label]}) is {train} ({names[train_label]})')
    if len(pairs) > _MAX_LISTED:
        lines.append(f'  and {len(pairs) - _MAX_LISTED} more')
    return '\n'.join(lines)


def write_contact_sheet(dataset, path):
    """Write the contact sheet of a Dataset to a file; return a line of text about it.

    The format is PNG if the name ends in .png, else JPEG.
    """
    encode = tf.image.encode_png if path.lower().endswith('.png') else tf.image.encode_jpeg
    with tf.Graph().as_default(), tf.Session() as session:
        content = session.run(encode(contact_sheet(dataset)))
    files.atomic_write(path, content, 'name another file')
    shown = '' if dataset.num_classes <= _MAX_ROWS else f', the first {_MAX_ROWS}'
    return f'Contact sheet, one row per class{shown}, training images on the left, test images on the right: {path}'
