"""Text as pixels, by Pillow, which today's TensorBoard brings; where it is missing, everything but
is_available raises ImportError."""

import functools
import unicodedata

import numpy as np

# Unicode keeps it free: what a font draws for it, it draws for each character that it lacks
_NO_CHARACTER = '\uffff'


def is_available():
    """Whether text can be drawn: Pillow is there, and is not older than 9.2."""
    try:
        from PIL import ImageFont
    except ImportError:
        return False
    return hasattr(ImageFont.ImageFont, 'getbbox')


@functools.lru_cache(maxsize=None)
def _font(size):
    from PIL import ImageFont

    try:
        return ImageFont.load_default(size)
    except (TypeError, ImportError):
        # before Pillow 10.1, or without FreeType: there is a font of 11 pixels alone
        return ImageFont.load_default()


def ink(text, size):
    """The text in one line.

    Args:
      text: a character that the font lacks is drawn as a box or '?'.
      size: of the font, in pixels.

    Returns:
      uint8 [height, width], 255 where everything is ink; the height is the same for each text.
    """
    from PIL import Image, ImageDraw

    image = Image.new('L', (width(text, size), int(np.ceil(_box('|gÅ', size)[3]))))
    try:
        ImageDraw.Draw(image).text((0, 0), text, 255, _font(size))
    except UnicodeEncodeError:
        ImageDraw.Draw(image).text((0, 0), _latin(text), 255, _font(size))
    return np.array(image)


def _box(text, size):
    """Left, top, right and bottom of the text."""
    try:
        return _font(size).getbbox(text)
    except UnicodeEncodeError:  # the font of older Pillows ends with Latin-1
        return _font(size).getbbox(_latin(text))


def _latin(text):
    return text.encode('latin-1', 'replace').decode('latin-1')


def middle(size):
    """The row of `ink` that is half as high as the digits."""
    (rows,) = np.nonzero(ink('0', size).any(1))
    return (rows[0] + rows[-1] + 1) // 2


def width(text, size):
    """The pixels that the text needs across."""
    return max(1, int(np.ceil(_box(text, size)[2])))


def fitting(text, size, pixels):
    """The text, or so much of its beginning that it and '...' are at most so many pixels wide; at
    least one character."""
    if width(text, size) <= pixels:
        return text
    fitting_length, too_long = 1, len(text)
    while too_long - fitting_length > 1:
        length = (fitting_length + too_long) // 2
        if width(text[:length] + '...', size) <= pixels:
            fitting_length = length
        else:
            too_long = length
    return text[:fitting_length].rstrip() + '...'


def legible(text):
    """The text, without its accents if the font lacks them; None if it lacks other characters."""
    decomposed = unicodedata.normalize('NFKD', text)
    plain = ''.join(character for character in decomposed if not unicodedata.combining(character))
    return next(
        (form for form in (text, plain) if all(_has(character) for character in form)), None
    )


@functools.lru_cache(maxsize=None)
def _has(character):
    size = 20
    return character < '\x7f' or not np.array_equal(ink(character, size), ink(_NO_CHARACTER, size))
