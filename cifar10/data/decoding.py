"""Parallel decoding of image files to 32 x 32 images, by Pillow."""

import concurrent.futures
import functools
from typing import NamedTuple, Sequence, Tuple
import warnings

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.errors import UserError

_CHUNK_FILES = 256
_FORMATS = ['JPEG', 'PNG', 'GIF', 'BMP', 'WEBP']


class DecodedImages(NamedTuple):
    """Images of consecutive files."""

    images: np.ndarray  # uint8 [n, 3, 32, 32]
    indices: Sequence[int]  # indices of their files
    failures: Sequence[Tuple[str, str]]  # (path, reason) of the other files


def decode(paths, num_threads, open_file=functools.partial(open, mode='rb')):
    """Decode JPEG, PNG, GIF, BMP and WebP files; the file extension is ignored.

    The first image of a file is turned as its metadata say, and blended with white by its alpha
    channel. Its largest central square is scaled to 32 x 32.

    Args:
      paths: paths of the files.
      num_threads: number of decoding threads.
      open_file: a function that opens a file by its path.

    Yields:
      A DecodedImages per chunk, in the order of the files.

    Raises:
      UserError: Pillow is missing.
    """
    try:
        from PIL import UnidentifiedImageError
    except ImportError:
        raise UserError('Reading image files needs Pillow', 'pip install Pillow')

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

    with concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
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


def decode_and_resize(contents):
    """Decode the contents of files, string [n], to images, uint8 [n, 3, 32, 32].

    PNG images with an alpha channel are blended with white. The op raises tf.errors.OpError if a
    file is damaged or of another type. Exported models use the same graph and get the same pixels.
    """
    with tf.device('/cpu:0'):
        return tf.map_fn(_decode_and_resize_one, contents, tf.uint8)


def _decode_and_resize_one(content):
    return center_crop_and_resize(_decode_image(content)[None])[0]


def _decode_image(content):
    """Decode the content of a file, a scalar, to uint8 [height, width, 1 or 3]."""
    image = tf.io.decode_image(content, expand_animations=False)
    has_alpha = tf.equal(tf.shape(image)[2] % 2, 0)  # 2 or 4 channels
    return tf.cond(has_alpha, lambda: _blend_on_white(image), lambda: image)


def _blend_on_white(image):
    """Blend an image with white by its alpha channel."""
    image = tf.cast(image, tf.float32)
    alpha = image[:, :, -1:] / 255
    return tf.cast(tf.round(255 + (image[:, :, :-1] - 255) * alpha), tf.uint8)


def center_crop_and_resize(images):
    """Scale the largest central squares of images to 32 x 32, with an antialiasing triangle filter.

    Args:
      images: uint8 [n, height, width, 1 or 3].

    Returns:
      uint8 [n, 3, 32, 32].
    """
    height_and_width = tf.shape(images)[1:3]
    is_small = tf.reduce_all(tf.equal(height_and_width, [HEIGHT, WIDTH]))
    small = tf.cond(
        is_small,
        lambda: images,
        lambda: _scale_and_center_crop(images, tf.cast(height_and_width, tf.float32)),
    )
    small.set_shape([None, HEIGHT, WIDTH, None])
    # Convert one channel to three after scaling, when the image is small.
    return tf.transpose(small + tf.zeros([DEPTH], tf.uint8), [0, 3, 1, 2])


def _scale_and_center_crop(images, height_and_width):
    """Scale images to a short side of 32 pixels, and crop their centers."""
    scale = HEIGHT / tf.reduce_min(height_and_width)
    scaled = tf.raw_ops.ScaleAndTranslate(
        images=images,
        size=[HEIGHT, WIDTH],
        scale=tf.stack([scale, scale]),
        translation=(HEIGHT - height_and_width * scale) / 2,
        kernel_type='triangle',
        antialias=True,
    )
    return tf.cast(tf.round(tf.clip_by_value(scaled, 0, 255)), tf.uint8)
