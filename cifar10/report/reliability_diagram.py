"""How often the network is right by how sure it is, as a picture."""

import numpy as np

from cifar10.report import lettering
from cifar10.report.canvas import DARK, GRAY, LIGHT, MARGIN, SMALL, TEXT, TITLE, Canvas

# blue, pink, and dark blue where the precision is
_BAR, _GAP, _EDGE = (107, 154, 203), (246, 178, 178), (8, 81, 156)
_WIDTH, _HEIGHT, _HISTOGRAM = 480, 360, 90  # pixels of the diagram, and of the histogram below it
_LEFT, _TOP = MARGIN + 66, MARGIN + 64


def draw(bins):
    """The diagram of a reliability.Bins: precision over confidence, and the number of examples
    below.

    Returns:
      uint8 [height, width, 3].
    """
    base = _TOP + _HEIGHT + 30 + _HISTOGRAM
    canvas = Canvas(_LEFT + _WIDTH + MARGIN + 8, base + 52 + MARGIN)
    canvas.text(
        (_LEFT, MARGIN + 10),
        'Reliability: expected calibration error %.3f' % bins.expected_error,
        TITLE,
    )
    _draw_key(canvas)
    for tenths in range(0, 11, 2):
        x, y = _LEFT + _WIDTH * tenths / 10, _TOP + _HEIGHT * (1 - tenths / 10)
        canvas.fill((_LEFT, y, _WIDTH, 1), LIGHT)
        canvas.fill((_LEFT - 4, y, 4, 1), GRAY)
        canvas.text((_LEFT - 9, y), '%.1f' % (tenths / 10), SMALL, align='right')
        canvas.fill((x, base, 1, 5), GRAY)
        canvas.text((x, base + 14), '%.1f' % (tenths / 10), SMALL, align='center')
    _draw_bins(canvas, bins)
    canvas.diagonal((_LEFT, _TOP, _WIDTH, _HEIGHT), DARK)
    _draw_histogram(canvas, bins.counts, base)
    for bottom, height in [(_TOP + _HEIGHT, _HEIGHT), (base, _HISTOGRAM)]:
        canvas.fill((_LEFT, bottom - height, 1, height), GRAY)
        canvas.fill((_LEFT, bottom, _WIDTH + 1, 1), GRAY)
    canvas.text_up((MARGIN + 8, _TOP + _HEIGHT / 2), 'precision', TEXT, GRAY, 'center')
    canvas.text_up((MARGIN + 8, base - _HISTOGRAM / 2), 'examples', TEXT, GRAY, 'center')
    canvas.text(
        (_LEFT + _WIDTH / 2, base + 38),
        'confidence: probability of the predicted class',
        TEXT,
        GRAY,
        'center',
    )
    return canvas.pixels


def _draw_key(canvas):
    x = _LEFT
    for color, text in [(_BAR, 'precision'), (_GAP, 'gap to the mean confidence')]:
        canvas.fill((x, MARGIN + 31, 11, 11), color)
        canvas.fill((x, MARGIN + 31, 11, 2), _EDGE if color == _BAR else color)
        canvas.text((x + 17, MARGIN + 36), text, TEXT, GRAY)
        x += 17 + lettering.width(text, TEXT) + 18
    for dash in (0, 9):
        canvas.fill((x + dash, MARGIN + 36, 6, 1), DARK)
    canvas.text((x + 21, MARGIN + 36), 'no gap', TEXT, GRAY)


def _ends(num_bins):
    """Yields the left end and the width of each bar, in pixels."""
    for i in range(num_bins):
        left, right = [int(round(_LEFT + _WIDTH * end / num_bins)) for end in (i, i + 1)]
        yield left + 1, max(1, right - left - 2)


def _draw_bins(canvas, bins):
    base = _TOP + _HEIGHT
    for (x, width), precision, confidence in zip(
        _ends(len(bins.counts)), bins.precisions, bins.confidences
    ):
        if not np.isnan(precision):
            canvas.fill((x, base - _HEIGHT * precision, width, _HEIGHT * precision), _BAR)
            low, high = sorted([precision, confidence])
            canvas.fill((x, base - _HEIGHT * high, width, _HEIGHT * (high - low)), _GAP)
            canvas.fill((x, base - _HEIGHT * precision, width, 2), _EDGE)


def _draw_histogram(canvas, counts, base):
    for (x, width), count in zip(_ends(len(counts)), counts):
        height = (_HISTOGRAM - 16) * count / counts.max()
        canvas.fill((x, base - height, width, height), GRAY)
        if count and lettering.width(str(counts.max()), SMALL) <= width + 2:
            canvas.text((x + width / 2, base - height - 8), str(count), SMALL, align='center')
