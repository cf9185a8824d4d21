"""Figures of an evaluation, by the objects of matplotlib and the pixels of the files."""

import io

import numpy as np
from PIL import Image
import pytest

from cifar10.evaluation import Result
from cifar10.report import figures
from tests.helpers import scored


def _result(metrics, names=None, num_mistakes=24):
    images = np.random.default_rng(0).integers(0, 256, [metrics.num_examples, 3, 32, 32])
    mistakes = metrics.mistakes(images.astype(np.uint8), 0)[:num_mistakes]
    return Result(1, metrics, mistakes, names or list(map(str, range(metrics.num_classes))), {})


def _labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_confusion_matrix():
    """The square root of the fraction of the row, positive on the diagonal; the counts."""
    matrix = np.array([[90, 9, 1], [0, 0, 0], [25, 25, 50]])
    (axes,) = figures.confusion_matrix(matrix, ['cat', 'dog', 'bird']).axes
    (image,) = axes.images
    expected = [[0.9**0.5, -0.3, -0.1], [0, 0, 0], [-0.5, -0.5, 0.5**0.5]]
    np.testing.assert_allclose(image.get_array(), expected)
    assert [text.get_text() for text in axes.texts] == [str(count) for count in matrix.flat]
    assert _labels(axes.xaxis) == _labels(axes.yaxis) == ['cat', 'dog', 'bird']
    assert axes.get_title() == 'Confusion matrix: 140 of 200 correct'


def test_reliability():
    """Bars of accuracy, gaps above them, histogram below."""
    # All examples have confidence 0.9 (the last bin but one); 55 % are correct.
    drawn = figures.reliability_diagram(scored.of_matrix([[55, 45], [0, 0]]).calibration())
    above, below = drawn.axes
    accuracy, gap = above.patches[13], above.patches[15 + 13]
    assert accuracy.get_bbox().bounds == pytest.approx((13.05 / 15, 0, 0.9 / 15, 0.55))
    assert gap.get_bbox().bounds == pytest.approx((13.05 / 15, 0.55, 0.9 / 15, 0.35))
    assert [bar.get_height() for bar in below.patches] == 13 * [0] + [100, 0]
    assert above.get_title().endswith(' 0.350')


@pytest.mark.parametrize('count', [0, 7])
def test_mistakes(count):
    result = _result(scored.metrics(300, 3), ['cat', 'dog', 'bird'], count)
    (axes,) = figures.mistakes(result.mistakes, result.class_names).axes
    assert len(axes.images) == len(axes.texts) == count and not axes.axison
    for place, mistake in enumerate(result.mistakes):
        image, text = axes.images[place], axes.texts[place]
        assert (image.get_array() == mistake.image.transpose(1, 2, 0)).all()
        predicted, label = (
            result.class_names[number] for number in (mistake.predicted_class, mistake.label)
        )
        caption = f'predicted {predicted} ({mistake.probability:.2f}), label {label}'
        assert text.get_text().replace('\n', ' ') == caption
    title = axes.get_title()
    assert title == ('The most confident mistakes' if count else 'No mistakes')


@pytest.mark.filterwarnings('error')
def test_odd_names():
    """The class number replaces a name with characters that the font lacks. No name becomes a
    formula, causes a warning or is cut off."""
    names = ['x' * 40, '猫科动物', 'größe élan', 'costs $5 or $6_x^2', '\U0001f408']
    drawn = figures.draw(_result(scored.metrics(100, 5), names, 3))
    assert _labels(drawn['confusion_matrix'].axes[0].xaxis) == [
        'x' * 17 + '...',
        '1',
        'größe élan',
        r'costs \$5 or \$6_x^2',
        '4',
    ]
    for figure in drawn.values():
        assert b'</svg>' in figures.image_bytes(figure, 'svg')
        with Image.open(io.BytesIO(figures.image_bytes(figure, 'png'))) as image:
            pixels = np.asarray(image.convert('L'))
        assert pixels.min() < 60 and (pixels[[0, -1]] == 255).all()
