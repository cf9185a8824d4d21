"""The confusion matrix as a picture."""

import numpy as np

from cifar10.report import lettering
from cifar10.report.canvas import DARK, GRAY, LIGHT, MARGIN, SMALL, TEXT, TITLE, WHITE, Canvas

_RIGHT, _WRONG = (8, 81, 156), (203, 24, 29)  # blue and red, where the share is 1
_LINES = (241, 243, 245)  # between small cells
_WIDEST = 160  # pixels of a name
_NOTE = 'Examples by label and predicted class; blue: right, red: wrong'
_KEY = 104  # pixels to the right of the matrix


def draw(matrix, names):
    """The heat map of a confusion matrix; see drawing.confusion.

    Args:
      matrix: int64 [classes, classes], rows: label, columns: predicted class.
      names: of the classes, a list.

    Returns:
      uint8 [height, width, 3].
    """
    num_classes = len(matrix)
    cell = min(96, max(760 // num_classes, 12 if num_classes <= 100 else 6))
    size, side = min(TEXT, max(9, cell - 2)), cell * num_classes
    names = [lettering.fitting(name, size, _WIDEST) for name in names]
    widest = max(lettering.width(name, size) for name in names)
    is_turned = widest > cell - 6
    left, top, below = MARGIN + 36 + widest, MARGIN + 64, 10 + (widest if is_turned else size)
    title = 'Confusion matrix: %d of %d correct' % (matrix.trace(), matrix.sum())
    title_width = max(lettering.width(title, TITLE), lettering.width(_NOTE, TEXT))
    canvas = Canvas(left + max(side + _KEY, title_width + MARGIN), top + side + below + 30 + MARGIN)
    canvas.text((left, MARGIN + 10), title, TITLE)
    canvas.text((left, MARGIN + 36), _NOTE, TEXT, GRAY)
    canvas.text_up((MARGIN + 8, top + side / 2), 'label', TEXT, GRAY, 'center')
    canvas.text((left + side / 2, top + side + below + 20), 'predicted class', TEXT, GRAY, 'center')
    step = -(-size // cell)  # of names that would overlap, every second one is left out, or more
    for number in range(0, num_classes, step):
        middle = (number + 0.5) * cell
        canvas.text((left - 8, top + middle), names[number], size, align='right')
        if is_turned:
            canvas.text_up((left + middle, top + side + 8), names[number], size, align='right')
        else:
            canvas.text(
                (left + middle, top + side + 8 + size / 2), names[number], size, align='center'
            )
    _draw_cells(canvas, (left, top), cell, matrix)
    _draw_key(canvas, (left + side + 24, top), min(side, 260))
    return canvas.pixels


def _color(share, hue):
    """White for 0, the hue for 1; the square root shows one confusion in a hundred beside the
    diagonal."""
    strength = np.sqrt(share)
    return tuple(int(round(255 + strength * (part - 255))) for part in hue)


def _draw_cells(canvas, place, cell, matrix):
    """Draws the cells from `place` on, with the numbers if the largest fits."""
    left, top = place
    side, line = cell * len(matrix), 1 if cell >= 12 else 0
    canvas.fill((left - 1, top - 1, side + 2 - line, side + 2 - line), LIGHT)
    canvas.fill((left, top, side - line, side - line), LIGHT if cell >= 24 else _LINES)
    shares = matrix / np.maximum(1, matrix.sum(1, keepdims=True))
    size = next(
        (size for size in (TEXT, SMALL, 9) if lettering.width(str(matrix.max()), size) <= cell - 5),
        None,
    )
    for (row, column), share in np.ndenumerate(shares):
        x, y = left + column * cell, top + row * cell
        color = _color(share, _RIGHT if row == column else _WRONG)
        canvas.fill((x, y, cell - line, cell - line), color)
        if size:
            ink = (
                LIGHT
                if not share
                else WHITE
                if np.dot(color, (0.299, 0.587, 0.114)) < 150
                else DARK
            )
            canvas.text(
                (x + (cell - line) / 2, y + (cell - line) / 2),
                str(matrix[row, column]),
                size,
                ink,
                'center',
            )


def _draw_key(canvas, place, height):
    """Draws which color means which share."""
    left, top = place
    canvas.text((left, top + 6), 'share of', SMALL, GRAY)
    canvas.text((left, top + 20), 'the label', SMALL, GRAY)
    top, height = top + 36, height - 42
    for pixel in range(height):
        share = (1 - pixel / (height - 1)) ** 2
        canvas.fill((left, top + pixel, 14, 1), _color(share, _RIGHT))
        canvas.fill((left + 16, top + pixel, 14, 1), _color(share, _WRONG))
    for percent in (0, 1, 10, 25, 50, 100):
        y = top + (1 - np.sqrt(percent / 100)) * (height - 1)
        canvas.fill((left + 32, y, 4, 1), GRAY)
        canvas.text((left + 40, y), '%d %%' % percent, SMALL, GRAY)
