"""Description of a data set: class counts, duplicates."""

import hashlib
import os

from cifar10.data import verification


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


def describe(dataset):
    """Return the class counts and the duplicates of a verified Dataset as text."""
    counts = [split.counts for split in dataset.splits]
    names = dataset.class_names or [str(label) for label in range(dataset.num_classes)]
    width = max(map(len, [*names, 'class']))
    lines = [f'{"class":<{width}} {"training":>12} {"test":>12}']
    for name, in_training, in_test in [*zip(names, *counts), ('all', *map(sum, counts))]:
        lines.append(f'{name:<{width}} {in_training:12} {in_test:12}')
    pairs = find_duplicates(dataset)
    lines.append(f'Test images that are also training images: {len(pairs)}')
    for test, test_label, train, train_label in pairs[:10]:
        lines.append(f'  {test} ({names[test_label]}) is {train} ({names[train_label]})')
    if len(pairs) > 10:
        lines.append(f'  and {len(pairs) - 10} more')
    return '\n'.join(lines)
