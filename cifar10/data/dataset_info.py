"""Statistics of a data set: examples by class, colours, duplicates, a contact sheet."""

import hashlib
import os

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.data import verification
from cifar10.system import files

_MAX_ROWS, _MAX_COLUMNS = 100, {'train': 12, 'test': 4}  # of a contact sheet, at most
_MAX_LISTED = 10  # duplicates
_SCALE = 2  # pixels of the sheet for a pixel of an image, and of the border around each image


def split_statistics(split):
    """Count the examples and describe the colours of a Split.

    Returns:
      The number of examples of each class, int64 [classes], and for each channel the mean and the
      standard deviation of its values, float64 [3], from 0 to 255.

    Raises:
      UserError: a file is malformed.
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
    """Return the test images of a Dataset that are training images too, byte by byte.

    Returns:
      For each of them, its key and that of the first equal training image, as file:record,
      counted from 0, with the labels: (test key, test label, train key, train label).
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
    """Yield for each example a digest of the image, file:record, and the label."""
    for file in split.files:
        record = 0
        for labels, images in verification.read_examples(split._replace(files=[file])):
            for label, image in zip(labels, images):
                digest = hashlib.md5(image.tobytes()).digest()
                yield digest, f'{os.path.basename(file.path)}:{record}', int(label)
                record += 1


def contact_sheet(dataset):
    """Return the first images of each class, a row per class, in label order.

    Training images are to the left, test images to the right.

    Returns:
      uint8 [height, width, 3], white between the images.
    """
    rows = min(dataset.num_classes, _MAX_ROWS)
    columns = sum(_MAX_COLUMNS.values()) + 1  # and an empty one between the splits
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
    # It joins the rows below each other, then the columns.
    joined = np.hstack(np.hstack(sheet))
    return joined.repeat(_SCALE, 0).repeat(_SCALE, 1)


def describe(dataset):
    """Describe a Dataset in text: examples by class, colours, images in both splits.

    Raise UserError as `verify` does.
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
    """Write the contact sheet of a Dataset to a file, and print its path.

    It is PNG if its name ends in .png, else JPEG.
    """
    encode = tf.image.encode_png if path.lower().endswith('.png') else tf.image.encode_jpeg
    with tf.Graph().as_default(), tf.Session() as session:
        content = session.run(encode(contact_sheet(dataset)))
    files.atomic_write(path, content, 'name another file with --contact_sheet_file')
    shown = '' if dataset.num_classes <= _MAX_ROWS else f', the first {_MAX_ROWS}'
    print(
        f'A row of images of each class{shown}, training images to the left, test images to the right: {path}'
    )
