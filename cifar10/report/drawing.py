"""What an evaluation tells, as pictures: uint8 [height, width, 3].

Pillow draws the text. Where `is_available` says that it is missing, the other functions raise
ImportError. Where the font lacks a character of a class's name, the number of the class is drawn.
"""

import io
import math

from cifar10.report import captions, heat_map, lettering, reliability_diagram
from cifar10.report.canvas import GRAY, MARGIN, TEXT, TITLE, Canvas

MAX_CLASSES = 200  # of a confusion matrix, whose cells are then 6 pixels wide
is_available = lettering.is_available

_SCALE, _GAP = 4, 20  # pixels of the sheet for a pixel of an image, and between two images
_SHEET_TITLE, _SHEET_NOTE = (
    'The most confident mistakes',
    'predicted class, not label, probability of the predicted class',
)


def confusion(matrix, class_names):
    """The confusion matrix as a heat map: blue what is right, red what is wrong.

    The strength of the color is the square root of the share of the row. It depends on no other
    row: the pictures of two checkpoints can be compared.

    Args:
      matrix: int64 [classes, classes], rows: label, columns: predicted class.
      class_names: in label order, or None.

    Raises:
      ValueError: there are more than MAX_CLASSES.
    """
    if len(matrix) > MAX_CLASSES:
        raise ValueError('%d classes are too many for a picture' % len(matrix))
    return heat_map.draw(matrix, [_name(class_names, number) for number in range(len(matrix))])


def reliability(bins):
    """The precision and the number of examples by confidence, of a reliability.Bins."""
    return reliability_diagram.draw(bins)


def mistakes(found, class_names):
    """A sheet of a list of Mistake: the images, enlarged, and below each what it is taken for, and
    what it is."""
    size = _SCALE * (found[0].image.shape[1] if found else 0)
    told = [_caption(mistake, class_names, size) for mistake in found]
    # about as wide as a screen
    columns = max(1, min(4, len(found)), round(math.sqrt(1.6 * len(found))))
    row_height = size + 16 * max([1] + [len(lines) for lines in told]) + _GAP
    top = MARGIN + 64
    title_width = max(lettering.width(_SHEET_TITLE, TITLE), lettering.width(_SHEET_NOTE, TEXT))
    canvas = Canvas(
        2 * MARGIN + max(title_width, columns * (size + _GAP) - _GAP),
        top + math.ceil(len(found) / columns) * row_height,
    )
    canvas.text((MARGIN, MARGIN + 10), _SHEET_TITLE if found else 'No mistakes', TITLE)
    canvas.text((MARGIN, MARGIN + 36), _SHEET_NOTE, TEXT, GRAY)
    for i, (mistake, lines) in enumerate(zip(found, told)):
        x, y = MARGIN + i % columns * (size + _GAP), top + i // columns * row_height
        canvas.paste(x, y, mistake.image.transpose(1, 2, 0).repeat(_SCALE, 0).repeat(_SCALE, 1))
        for line, text in enumerate(lines):
            canvas.text((x, y + size + 12 + 16 * line), text, TEXT)
    return canvas.pixels


def encoded(picture):
    """A picture as the bytes of a PNG file."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(picture).save(content, 'PNG', optimize=True)
    return content.getvalue()


def _caption(mistake, class_names, pixels):
    """What is told of a mistake: a list of one line, or two if one is wider than so many pixels;
    names are shortened to fit."""
    names = [_name(class_names, number) for number in (mistake.predicted, mistake.label)]
    around = captions.mistake('', '', mistake.probability)
    fitting = [
        lettering.fitting(name, TEXT, pixels - lettering.width(part, TEXT))
        for name, part in zip(names, around)
    ]
    lines = captions.mistake(*names, mistake.probability)
    one = ' '.join(lines)
    return (
        [one]
        if lettering.width(one, TEXT) <= pixels
        else list(captions.mistake(*fitting, mistake.probability))
    )


def _name(class_names, number):
    return lettering.legible(captions.name(class_names, number)) or str(number)
