"""The most confident mistakes, batch by batch, against sorting all at once."""

import numpy as np
import pytest

from cifar10.report.mistakes import Mistakes
from tests.helpers import scored


def _collect(scores, images, count, batch_size):
    mistakes = Mistakes(count)
    for first in range(0, scores.num_examples, batch_size):
        batch = slice(first, first + batch_size)
        mistakes.add(first, scores.labels[batch], images[batch], scores.log_probabilities[batch])
    return mistakes.found


@pytest.mark.parametrize(
    'count, batch_size', [(5, 64), (5, 300), (1, 1), (40, 7), (1000, 64), (0, 64)]
)
def test_against_sorting(count, batch_size):
    """Many probabilities are the same: the first example is kept."""
    scores = scored.scores(300, 4)
    images = np.random.default_rng(1).integers(0, 256, [300, 3, 32, 32]).astype(np.uint8)
    found = _collect(scores, images, count, batch_size)
    wrong = [i for i in range(300) if not scores.is_correct[i]]
    assert 40 < len(wrong) < 300
    assert [mistake.index for mistake in found] == sorted(
        wrong, key=lambda i: (-scores.confidences[i], i)
    )[:count]
    for mistake in found:
        i = mistake.index
        assert (mistake.label, mistake.predicted, mistake.probability) == (
            scores.labels[i],
            scores.classes[i],
            scores.confidences[i],
        )
        assert mistake.image.dtype == np.uint8 and (mistake.image == images[i]).all()


def test_images_are_copied():
    """A view would keep every batch in memory, and change with it."""
    scores, images = scored.of_matrix([[0, 1], [0, 1]]), np.ones([2, 3, 32, 32], np.uint8)
    mistakes = Mistakes(3)
    mistakes.add(100, scores.labels, images, scores.log_probabilities)
    images[:] = 0
    (mistake,) = mistakes.found
    assert mistake.index == 100 and mistake.image.all() and mistake.image.base is None
