"""Parallel decoding of image files to 32 x 32 images.

Pillow reads the orientation, TensorFlow decodes.
"""

import concurrent.futures
import contextlib
import io
from typing import NamedTuple, Sequence, Tuple
import warnings

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.errors import UserError
from cifar10.system import startup

_CHUNK_FILES = 256
MAX_BYTES = 1 << 28  # per file
_HEADER_BYTES = 1 << 16  # read first, to detect the file type
_ORIENTATION = 0x0112  # EXIF tag (CIPA DC-008)
# First bytes of each file type; bytes in front of the EXIF or XMP data in which Pillow finds an
# orientation. Texts in PNG files can be compressed, but not their names.
_METADATA = {
    b'\xff\xd8\xff': (b'Exif\0', b'tiff:Orientation'),
    b'\x89PNG\r\n\x1a\n': (b'eXIf', b'exif\0', b'XML:com.adobe.xmp'),
    b'GIF8': (),
    b'BM': (),
}


class DecodedImages(NamedTuple):
    """Images of consecutive files."""

    images: np.ndarray  # uint8 [n, 3, 32, 32]
    indices: Sequence[int]  # indices of their files
    failures: Sequence[Tuple[str, str]]  # (path, reason) of the other files


def decode(paths, num_threads, read_file=None):
    """Decode JPEG, PNG, GIF (first image) and BMP (24 bits) files with `decode_and_resize`.

    The file extension is ignored. The orientation is applied, as by Pillow's `exif_transpose`.

    Args:
      paths: paths of the files.
      num_threads: number of decoding threads.
      read_file: a function like `read`; None for `read`.

    Yields:
      A DecodedImages per chunk, in the order of the files. A warning names each decoded file about
      which libjpeg prints a message, such as "Corrupt JPEG data".

    Raises:
      UserError: Pillow is missing.
    """
    _import_pillow()
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # no gain here
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        content = tf.placeholder(tf.string, [])
        image = _decode_and_resize_one(content)
        session = tf.Session(config=config)
    with contextlib.closing(session), concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
        decode_fn = session.make_callable(image, [content])

        def decode_file(path):
            """Return the image or None, and the reason."""
            try:
                file_content, orientation = (read_file or read)(path)
                return _rotate(decode_fn(file_content), orientation), None
            except tf.errors.OpError as error:
                return None, f'the image is damaged or incomplete ({errors.reason(error)})'
            except (UserError, OSError) as error:
                return None, getattr(error, 'strerror', None) or str(error)

        def decode_files(some_paths):
            return list(pool.map(decode_file, some_paths))

        for start in range(0, len(paths), _CHUNK_FILES):
            chunk = paths[start : start + _CHUNK_FILES]
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')  # Pillow warns of damaged EXIF data.
                with startup.captured_stderr() as messages:
                    results = decode_files(chunk)
                indices = [i for i, (image, _) in enumerate(results) if image is not None]
                if messages:
                    _warn_of_messages([chunk[i] for i in indices], decode_files)
            images = np.array([results[i][0] for i in indices], np.uint8)
            yield DecodedImages(
                images.reshape(-1, DEPTH, HEIGHT, WIDTH),
                [start + i for i in indices],
                [(path, reason) for path, (_, reason) in zip(chunk, results) if reason],
            )


def _warn_of_messages(paths, decode_files):
    """Decode files again, and warn of each one about which libjpeg prints a message.

    The message does not name the file.
    """
    with startup.captured_stderr() as messages:
        decode_files(paths)
    middle = len(paths) // 2
    if messages and middle:
        _warn_of_messages(paths[:middle], decode_files)
        _warn_of_messages(paths[middle:], decode_files)
    elif messages:
        errors.warn(f'{paths[0]}: {"; ".join(messages)}')


def _rotate(image, orientation):
    """Apply an EXIF orientation to an image, uint8 [3, 32, 32]."""
    if orientation == 1:
        return image
    from PIL import Image, ImageOps

    picture = Image.fromarray(image.transpose(1, 2, 0))
    picture.getexif()[_ORIENTATION] = orientation
    return np.asarray(ImageOps.exif_transpose(picture)).transpose(2, 0, 1)


def read(path):
    """Return the bytes of an image file, and its orientation (EXIF), 1 if it has none.

    Raises:
      UserError: the file type is not supported.
      OSError: the file cannot be read.
    """
    with open(path, 'rb') as stream:
        return read_stream(stream)


def read_stream(stream):
    """Return the same as `read`, from an open binary file."""
    content = stream.read(_HEADER_BYTES)
    metadata = [names for start, names in _METADATA.items() if content.startswith(start)]
    if not metadata:
        raise UserError('it is not a JPEG, PNG, GIF or BMP file')
    if len(content) == _HEADER_BYTES:  # stream.read allocates MAX_BYTES, which takes long.
        content += stream.read(MAX_BYTES)
    if len(content) > MAX_BYTES:
        raise UserError(f'it is larger than {MAX_BYTES >> 20} MB')
    if content.startswith(b'BM') and content[28:30] != b'\x18\0':
        raise UserError('it is a BMP file without 24 bits per pixel', 'save it as PNG')
    orientation = 1
    # Only metadata need Pillow, which is slower than the decoder for small files.
    if any(name in content for name in metadata[0]):
        with contextlib.suppress(Exception):  # damaged metadata, or no orientation
            image = _import_pillow().open(io.BytesIO(content))
            orientation = image.getexif()[_ORIENTATION]
    return content, orientation


def _import_pillow():
    """Return Pillow's module Image; raise UserError if it is missing."""
    try:
        from PIL import Image
    except ImportError:
        raise UserError('Reading image files needs Pillow', 'pip install Pillow')
    Image.MAX_IMAGE_PIXELS = None  # no warning, because TensorFlow decodes
    return Image


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
