"""Search for the image files in directories."""

import os
import re

from cifar10 import errors
from cifar10.errors import UserError

# Entries that file managers, file servers and notebooks add to a directory by themselves.
_ADDED = re.compile(
    r'\._.*|\.DS_Store|\.AppleDouble|\.localized|\.directory|\.thumbnails|\.@__thumb|\.nfs.*|'
    r'\.Trash.*|\.ipynb_checkpoints|__MACOSX|Thumbs\.db|desktop\.ini|@eaDir|#recycle',
    re.IGNORECASE,
)


def find(directory, hidden, recursive=True):
    """Return the sorted paths of the files below a directory; follow links to directories.

    Args:
      directory: the directory.
      hidden: a list, to which the paths of other hidden entries than added ones are appended.
      recursive: False leaves out subdirectories.

    Raises:
      UserError: links lead to a directory twice, as in a loop.
      OSError: a directory cannot be read.
    """

    def fail(error):
        raise error

    paths, searched = [], set()
    for place, folders, names in os.walk(directory, onerror=fail, followlinks=True):
        if os.path.realpath(place) in searched:
            raise UserError(f'{place} is a link to a directory that is searched twice: remove it')
        searched.add(os.path.realpath(place))
        entries = [name for name in folders + names if not _ADDED.fullmatch(name)]
        hidden += [os.path.join(place, name) for name in entries if name.startswith('.')]
        visible = {name for name in entries if not name.startswith('.')}
        paths += [os.path.join(place, name) for name in visible.intersection(names)]
        folders[:] = visible.intersection(folders) if recursive else []
    return sorted(paths)


def warn_of_hidden(hidden):
    """Count the hidden entries that `find` has left out, if any, in a line."""
    if hidden:
        errors.warn(f'{hidden[0]} is left out, because it is hidden (left out: {len(hidden)})')
