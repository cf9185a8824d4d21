"""The file that describes a data set in its own directory: classes, label bytes, number of examples
and checksum of each file.

CIFAR-10's and CIFAR-100's own directories need none.
"""

import json
import os
import re
import reprlib
from typing import Mapping, NamedTuple, Sequence

from cifar10 import files

NAME = 'dataset.json'
MAX_CLASSES = 256**2  # a label has one byte or two


class Description(NamedTuple):
    """What the file says."""

    classes: Sequence[str]  # their names, in label order
    label_bytes: int  # before each image: 1 or 2, the high byte first
    # from the name of a training file to {'examples': their number, 'sha256': hexadecimal digits}
    train: Mapping[str, dict]
    test: Mapping[str, dict]  # the same of the test file
    origin: str  # where the images come from


def label_bytes(num_classes):
    """The bytes that the label of one of so many classes needs."""
    return 1 if num_classes <= 256 else 2


def write(directory, description):
    """Writes a Description to its file in the directory."""
    with open(os.path.join(directory, NAME), 'w') as opened:
        json.dump(description._asdict(), opened, indent=1)


def read(directory):
    """The Description in a directory, or None if there is none.

    Raises:
      UserError: the file is damaged.
    """
    return files.read_json(
        os.path.join(directory, NAME),
        _validated,
        'put the original back, or make the data set again',
    )


def _validated(content):
    """The content as a Description.

    Raises:
      ValueError: it is none.
    """
    if not isinstance(content, dict) or set(content) != set(Description._fields):
        raise ValueError('it is not a JSON object of %s' % ', '.join(Description._fields))
    found = Description(**content)
    check_class_names(found.classes)
    if (
        type(found.label_bytes) is not int
        or found.label_bytes not in (1, 2)
        or 256**found.label_bytes < len(found.classes)
    ):
        raise ValueError(
            'label_bytes is %s for %d classes'
            % (reprlib.repr(found.label_bytes), len(found.classes))
        )
    if not isinstance(found.origin, str):
        raise ValueError('the origin is no text')
    for split in (found.train, found.test):
        if not isinstance(split, dict) or not split:
            raise ValueError('it names no files for training, or none for the test')
        for name, about in split.items():
            if not name.isprintable() or os.path.basename(name) != name or name in ('', '.', '..'):
                raise ValueError('%s is not the name of a file' % ascii(name))
            if not _describes_file(about):
                raise ValueError('%s has no number of examples, or no SHA-256' % name)
    if set(found.train) & set(found.test):
        raise ValueError(
            '%s is for training and for the test' % sorted(set(found.train) & set(found.test))[0]
        )
    return found


def _describes_file(about):
    return (
        isinstance(about, dict)
        and type(about.get('examples')) is int
        and about['examples'] > 0
        and isinstance(about.get('sha256'), str)
        and bool(re.fullmatch('[0-9a-f]{64}', about['sha256']))
    )


def check_class_names(names):
    """Raises ValueError unless these are from 2 to MAX_CLASSES different names that can be
    printed."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError('the classes are no list of names')
    if not 2 <= len(names) <= MAX_CLASSES:
        raise ValueError('it has %d classes, not 2 to %d' % (len(names), MAX_CLASSES))
    for name in names:
        # a terminal would carry out what cannot be printed
        if not name.strip() or not name.isprintable():
            raise ValueError('a class cannot be called %s' % ascii(name))
    if len(set(names)) < len(names):
        raise ValueError('two classes have the same name')
