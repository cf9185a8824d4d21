"""Image files: search in directories, and parallel decoding to 32 x 32 images by Pillow."""

import concurrent.futures
import functools
import os
import re
from typing import NamedTuple, Sequence, Tuple
import warnings

import numpy as np

from cifar10 import errors
from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.errors import UserError

_CHUNK_FILES = 256
_FORMATS = ['JPEG', 'PNG', 'GIF', 'BMP', 'WEBP']
# Entries that file managers, file servers, notebooks and this package add to a directory.
ADDED = re.compile(
    r'\.cifar10.*|\._.*|\.DS_Store|\.AppleDouble|\.localized|\.directory|\.thumbnails|\.@__thumb|\.nfs.*|'
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

    paths, searched = [], {}
    for place, folders, names in os.walk(directory, onerror=fail, followlinks=True):
        other = searched.setdefault(os.path.realpath(place), place)
        if other != place:
            raise UserError(
                f'{place} and {other} are one directory, because of a link: remove the link'
            )
        entries = [name for name in folders + names if not ADDED.fullmatch(name)]
        hidden += [os.path.join(place, name) for name in entries if name.startswith('.')]
        visible = {name for name in entries if not name.startswith('.')}
        paths += [os.path.join(place, name) for name in visible.intersection(names)]
        folders[:] = sorted(visible.intersection(folders)) if recursive else []
    return sorted(paths)


def warn_of_hidden(hidden):
    """Count the hidden entries that `find` has left out, if any, in a line."""
    if hidden:
        errors.warn(f'{hidden[0]} is left out, because it is hidden (left out: {len(hidden)})')


class DecodedImages(NamedTuple):
    """Images of consecutive files."""

    images: np.ndarray  # uint8 [n, 3, 32, 32]
    indices: Sequence[int]  # indices of their files
    failures: Sequence[Tuple[str, str]]  # (path, reason) of the other files


def decode(paths, open_file=functools.partial(open, mode='rb')):
    """Decode JPEG, PNG, GIF, BMP and WebP files; the file extension is ignored.

    The first image of a file is used. The orientation in its metadata is applied, and its alpha
    channel blends it with white. Its largest central square is scaled to 32 x 32.

    Args:
      paths: paths of the files.
      open_file: a function that opens a file by its path.

    Yields:
      A DecodedImages per chunk, in the order of the files.

    Raises:
      UserError: Pillow is missing.
    """
    try:
        from PIL import UnidentifiedImageError
    except ImportError:
        raise UserError('Reading image files needs Pillow: pip install Pillow')

    def decode_file(path):
        """Return the image or None, and the reason."""
        try:
            with open_file(path) as file:
                return _decode(file), None
        except UnidentifiedImageError:
            return None, 'it is not a readable JPEG, PNG, GIF, BMP or WebP file'
        except Exception as error:  # A damaged file can raise any.
            damage = f'the image is damaged or incomplete ({errors.reason(error)})'
            return None, getattr(error, 'strerror', None) or damage

    with concurrent.futures.ThreadPoolExecutor() as pool:
        for start in range(0, len(paths), _CHUNK_FILES):
            chunk = paths[start : start + _CHUNK_FILES]
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')  # Pillow warns of large images and odd metadata.
                results = list(pool.map(decode_file, chunk))
            indices = [i for i, (image, _) in enumerate(results) if image is not None]
            images = np.array([results[i][0] for i in indices], np.uint8)
            yield DecodedImages(
                images.reshape(-1, DEPTH, HEIGHT, WIDTH),
                [start + i for i in indices],
                [(path, reason) for path, (_, reason) in zip(chunk, results) if reason],
            )


def _decode(file):
    """Return the image in an open file, uint8 [3, 32, 32]; see `decode`."""
    from PIL import Image, ImageOps

    Image.open(file, formats=_FORMATS).verify()  # checksums, which decoding ignores
    file.seek(0)
    image = ImageOps.exif_transpose(Image.open(file, formats=_FORMATS))
    if image.mode.startswith('I'):  # 16 bits, which `convert` would clip
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ('LA', 'RGBA') or 'transparency' in image.info:
        image = image.convert('RGBA')
        image = Image.alpha_composite(Image.new('RGBA', image.size, 'white'), image)
    image = ImageOps.fit(image.convert('RGB'), (WIDTH, HEIGHT), Image.BILINEAR)
    return np.asarray(image).transpose(2, 0, 1)
