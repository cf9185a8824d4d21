"""Content of directories."""

import os

from cifar10.system import directories


def names(directory):
    """Return the sorted names in a directory, without the file of directories.lock."""
    return sorted(set(os.listdir(str(directory))) - {directories.LOCK_FILE})
