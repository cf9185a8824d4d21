"""The pictures, by their pixels."""

import sys

import numpy as np
from PIL import ImageFont
import pytest

from cifar10.report import drawing, lettering
from cifar10.report.mistakes import Mistake
from tests.helpers import scored

NAMES = 'airplane automobile bird cat deer dog frog horse ship truck'.split()
ODD_NAMES = ['x' * 40, '猫科动物', 'größe élan', '\U0001f408', 'ไทย']


@pytest.fixture(params=[False, True], ids=['font', 'old_font'])
def _fonts(request, monkeypatch):
    """The font of this Pillow, and that of Pillow 9.5."""
    caches = lettering._font, lettering._has
    if request.param:
        old = getattr(ImageFont, 'load_default_imagefont', ImageFont.load_default)
        monkeypatch.setattr(ImageFont, 'load_default', lambda: old())  # takes no size
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


pytestmark = pytest.mark.usefixtures('_fonts')


def _strength(pixel):
    """0 for white, 1 for blue or red, and which of them it is."""
    red, _, blue = pixel.astype(int)
    return (
        ('right', (255 - red) / (255 - 8)) if blue > red else ('wrong', (255 - blue) / (255 - 29))
    )


def _cells(picture, num_classes):
    """The pixels of each cell: [classes, classes, cell, cell, 3]; the frame is around the first and
    behind the others."""
    gray = (picture == np.array([222, 226, 230], np.uint8)).all(2)
    rows, columns = [np.nonzero(gray.sum(axis) > 0.9 * gray.sum(axis).max())[0] for axis in (1, 0)]
    cell = (rows[-1] - rows[0]) // num_classes
    top, left = rows[0] + 1, columns[0] + 1
    return [
        [
            picture[
                top + row * cell : top + (row + 1) * cell - 1,
                left + column * cell : left + (column + 1) * cell - 1,
            ]
            for column in range(num_classes)
        ]
        for row in range(num_classes)
    ]


def test_colors_of_the_cells():
    """The square root of the share of the row, blue on the diagonal and red beside it."""
    matrix = np.array([[90, 9, 1], [0, 0, 0], [25, 25, 50]])
    cells = _cells(drawing.confusion(matrix, ['cat', 'dog', 'bird']), 3)
    for row in range(3):
        for column in range(3):
            hue, strength = _strength(cells[row][column][2, 2])
            expected = np.sqrt(matrix[row, column] / max(1, matrix[row].sum()))
            assert strength == pytest.approx(expected, abs=0.01)
            assert not expected or hue == ('right' if row == column else 'wrong')


def test_numbers_in_the_cells():
    """The number is in the middle, light on dark cells and dark on light ones; equal numbers look
    the same."""
    cells = _cells(drawing.confusion(np.array([[980, 20], [20, 980]]), None), 2)
    for (row, column), is_light in [((0, 0), True), ((0, 1), False)]:
        cell = cells[row][column].astype(int)
        ink = (cell != cell[2, 2]).any(2)
        assert (cell[ink].mean() > cell[2, 2].mean()) == is_light
        rows, columns = np.nonzero(ink)
        assert (
            abs((rows[0] + rows[-1]) / 2 - len(cell) / 2) < 3
            and abs((columns.min() + columns.max()) / 2 - len(cell) / 2) < 3
        )
        assert (cells[1 - row][1 - column] == cell).all()


def test_names_at_both_axes():
    """There is ink to the left of each row and below each column, and none where a name is
    empty."""
    names = ['cat', ' ', 'dog']
    picture = drawing.confusion(np.eye(3, dtype=np.int64), names)
    gray = (picture == np.array([222, 226, 230], np.uint8)).all(2)
    top, left = int(np.nonzero(gray.sum(1) > 200)[0][0]), int(np.nonzero(gray.sum(0) > 200)[0][0])
    is_dark = picture.max(2) < 80
    for number in range(3):
        row, column = top + 96 * number, left + 96 * number
        assert is_dark[row + 5 : row + 90, left - 40 : left - 3].any() == (number != 1)
        assert is_dark[top + 3 * 96 + 3 : top + 3 * 96 + 26, column + 5 : column + 90].any() == (
            number != 1
        )


@pytest.mark.parametrize('num_classes', [2, 10, 20, 21, 100, 200])
def test_nothing_is_cut_off(num_classes):
    """There is white all around, with the longest names, and the picture fits a screen."""
    names = ['%d %s' % (number, 'abcdefghij' * 4) for number in range(num_classes)]
    picture = drawing.confusion(scored.scores(1000, num_classes).confusion(), names)
    assert picture.dtype == np.uint8 and max(picture.shape) < 1600
    for edge in (picture[:8], picture[-8:], picture[:, :8], picture[:, -4:]):
        assert (edge == 255).all()


def test_too_many_classes():
    with pytest.raises(ValueError, match='201'):
        drawing.confusion(np.eye(201, dtype=np.int64), None)


def _mistakes(count):
    images = np.random.default_rng(0).integers(0, 256, [count, 3, 32, 32]).astype(np.uint8)
    return [Mistake(i, image, i % 5, (i + 1) % 5, 0.9) for i, image in enumerate(images)]


@pytest.mark.parametrize('count, columns', [(1, 1), (3, 3), (9, 4), (24, 6)])
def test_images_of_the_sheet(count, columns):
    """Each image is found, four times as large, byte for byte, in rows from the left; below it is
    ink."""
    found = _mistakes(count)
    sheet = drawing.mistakes(found, NAMES)
    row_height = 128 + 20 + 16 * 2  # a gap, and two lines because of the automobile
    for i, mistake in enumerate(found):
        enlarged = np.kron(mistake.image.transpose(1, 2, 0), np.ones([4, 4, 1], np.uint8))
        top, left = 82 + i // columns * row_height, 18 + i % columns * 148
        assert (sheet[top : top + 128, left : left + 128] == enlarged).all()
        below = sheet[top + 128 : top + 148, left : left + 140]
        assert below.min() < 60 and (below[:3] == 255).all()
    assert sheet.shape[0] == 82 + -(-count // columns) * row_height


def test_captions():
    """They tell names and probability: the ink is that of the text; a wide caption has two
    lines."""

    def caption(names, probability=0.98):
        return drawing.mistakes(
            [_mistakes(1)[0]._replace(predicted=0, label=1, probability=probability)], names
        )[82 + 128 :, 18:146]

    one = lettering.ink('cat, not dog 0.98', 13)
    found = 255 - caption(['cat', 'dog'])[:, :, 0].astype(int)
    rows, columns = np.nonzero(found > 0)
    ink_rows, ink_columns = np.nonzero(one > 0)
    assert np.ptp(rows) == np.ptp(ink_rows) and np.ptp(columns) == np.ptp(ink_columns)
    assert (caption(['cat', 'dog']) != caption(['cat', 'dog'], 0.97)).any()
    assert (caption(['automobile', 'airplane'])[20:].min() < 60) and np.ptp(rows) < 16


def test_no_mistakes():
    sheet = drawing.mistakes([], None)
    assert sheet.min() < 60 and (sheet[:8] == 255).all() and (sheet[:, -8:] == 255).all()


def test_reliability():
    """Bars up to the smaller of precision and confidence in blue, the gap in pink; the histogram
    below."""
    # all with a confidence of 0.9, 0.55 of them correct
    scores = scored.of_matrix([[55, 45], [0, 0]])
    picture = drawing.reliability(scores.calibration(5))
    bar, gap, histogram = [
        (picture == np.array(color, np.uint8)).all(2)
        for color in ((107, 154, 203), (246, 178, 178), (108, 117, 125))
    ]
    x = 84 + int(0.85 * 480)  # in the bin of 0.9
    blue, pink = np.nonzero(bar[60:, x])[0], np.nonzero(gap[60:, x])[0]
    assert len(blue) == pytest.approx(0.55 * 360, abs=4) and len(pink) == pytest.approx(
        0.35 * 360, abs=4
    )
    assert pink[-1] < blue[0] and histogram[-180:, x].sum() > 60
    assert not bar[60:, 84 : 84 + 380].any() and not gap[60:, 84 : 84 + 380].any()
    for edge in (picture[:8], picture[-8:], picture[:, :8], picture[:, -8:]):
        assert (edge == 255).all()


def test_odd_names():
    """What the font lacks is no error: the number is drawn, or the name without accents."""
    matrix, found = np.eye(5, dtype=np.int64), _mistakes(5)
    numbered = ['x' * 40, '1', ODD_NAMES[2], '3', '4']
    assert (drawing.confusion(matrix, ODD_NAMES) == drawing.confusion(matrix, numbered)).all()
    assert (drawing.mistakes(found, ODD_NAMES) == drawing.mistakes(found, numbered)).all()
    assert lettering.legible('élan') in ('élan', 'elan') and lettering.legible('猫') is None


def test_without_pillow(monkeypatch):
    assert drawing.is_available()
    monkeypatch.setitem(sys.modules, 'PIL', None)
    assert not drawing.is_available()
    with pytest.raises(ImportError):
        drawing.mistakes([], None)
