"""The formats of image files: which one a file has, and its decoder."""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError

JPEG, PNG, GIF, BMP = STARTS = b'\xff\xd8', b'\x89PNG', b'GIF8', b'BM'  # how the files begin


def check_start(content):
    """Raises UserError unless the bytes begin as those of an image file do."""
    if not content:
        raise UserError('it is empty')
    if not content.startswith(STARTS):
        raise UserError('it is no JPEG, PNG, GIF or BMP file')


def kind(content):
    """The kind of a file with these bytes: one of the keys of DECODERS; raises UserError if
    TensorFlow cannot decode it."""
    check_start(content)
    if content.startswith(JPEG):
        # without the start of a scan libjpeg would write a line of its own to stderr
        if b'\xff\xda' not in content:
            raise UserError('it is a JPEG file that ends before the image')
        return 'JPEG'
    if content.startswith(PNG):
        # For few colours without transparency TensorFlow would make up an alpha channel that is not
        # opaque.
        has_alpha = content[25:26] in (b'\4', b'\6') or b'tRNS' in content[: content.find(b'IDAT')]
        return 'PNG with alpha' if has_alpha else 'PNG'
    if content.startswith(GIF):
        return 'GIF'
    found = 'BMP, %d bits' % int.from_bytes(content[28:30], 'little')
    if found not in DECODERS or not _is_plain(content, found):
        raise UserError(
            'it is a BMP file of a kind that TensorFlow does not decode, like one with a palette: save it as PNG'
        )
    return found


def _is_plain(bmp, found):
    """Whether a BMP file has no palette but the shades of grey, is not compressed, and has its
    colours in the usual order."""
    return bmp[30:34] == bytes(4) and (found != 'BMP, 8 bits' or _is_grey(bmp))


def _is_grey(bmp):
    """Whether the colours of a BMP file with a palette are the shades of grey in their order."""
    start = 14 + int.from_bytes(bmp[14:18], 'little')
    palette = np.frombuffer(
        bmp[start : start + 4 * (int.from_bytes(bmp[46:50], 'little') or 256)], np.uint8
    )
    return len(palette) % 4 == 0 and bool(
        (palette.reshape(-1, 4)[:, :3] == np.arange(len(palette) // 4)[:, None]).all()
    )


def _on_white(image):
    """Puts an image with an alpha channel on a white background."""
    alpha = tf.cast(image[:, :, 3:], tf.float32) / 255
    return tf.cast(tf.round(255 + (tf.cast(image[:, :, :3], tf.float32) - 255) * alpha), tf.uint8)


# From the bytes of a file of each kind, a scalar, to its image, uint8 [height, width, 3].
DECODERS = collections.OrderedDict(
    [
        ('JPEG', lambda content: tf.image.decode_jpeg(content, 3, dct_method='INTEGER_ACCURATE')),
        ('PNG', lambda content: tf.image.decode_png(content, 3)),
        ('PNG with alpha', lambda content: _on_white(tf.image.decode_png(content, 4))),
        ('GIF', lambda content: tf.image.decode_gif(content)[0]),
        ('BMP, 24 bits', lambda content: tf.image.decode_bmp(content, 3)),
        ('BMP, 32 bits', lambda content: tf.image.decode_bmp(content, 4)[:, :, :3]),
        ('BMP, 8 bits', lambda content: tf.tile(tf.image.decode_bmp(content), [1, 1, 3])),
    ]
)
