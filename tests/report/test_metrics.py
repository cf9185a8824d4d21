"""Metrics, against loops and values computed by hand."""

import math

import numpy as np
import pytest

from tests.helpers import scored


def test_against_loops():
    """Precision @ k, confusions and classes, with many equal probabilities."""
    found = scored.metrics(200, 5)
    found = found._replace(labels=found.labels * (found.labels != 3))  # nothing has the label 3
    expected, ranks = np.zeros([5, 5], int), []
    for label, row in zip(found.labels, found.log_probabilities):
        order = sorted(range(5), key=lambda number: (-row[number], number))
        expected[label, order[0]] += 1
        ranks.append(order.index(label))
    for k in range(1, 6):
        assert found.precision_at_k(k) == pytest.approx(np.mean(np.array(ranks) < k))
    assert found.accuracy == found.precision_at_k(1) == found.num_correct / 200
    assert (found.confusion_matrix() == expected).all()
    with np.errstate(invalid='ignore'):
        precision, recall = [np.diag(expected) / expected.sum(axis) for axis in (0, 1)]
    assert np.isnan(recall[3])
    np.testing.assert_allclose(found.per_class_metrics(), [precision, recall, expected.sum(1)])


@pytest.mark.parametrize('num_correct', [81, 0, 100])
def test_interval(num_correct):
    """Each bound is 1.96 of its own standard errors away from the observed accuracy."""
    found = scored.of_matrix([[num_correct, 100 - num_correct], [0, 0]])
    low, high = found.confidence_interval
    assert 0 <= low < high <= 1
    for end, limit in [(low, 0), (high, 1)]:
        if num_correct == 100 * limit:
            assert end == limit
        else:
            distance = 1.959964 * math.sqrt(end * (1 - end) / 100)
            assert abs(end - found.accuracy) == pytest.approx(distance, rel=1e-5)


def test_calibration_by_a_loop():
    found = scored.metrics(400, 4)
    calibration = found.calibration()
    expected, error = [], 0
    for i in range(15):
        inside = (i / 15 < found.confidences) & (found.confidences <= (i + 1) / 15)
        values = np.nan, np.nan
        if inside.any():
            values = found.confidences[inside].mean(), found.is_correct[inside].mean()
            error += inside.mean() * abs(values[0] - values[1])
        expected.append((inside.sum(),) + values)
    np.testing.assert_allclose(np.transpose(calibration), expected)
    assert calibration.expected_calibration_error == pytest.approx(error) and error > 0.01


def test_mistakes():
    """Images are copied: a view would keep the batch in memory and change with it."""
    metrics = scored.of_matrix([[2, 0, 0], [0, 1, 1], [0, 0, 0]])
    images = np.ones([4, 3, 32, 32], np.uint8)
    (mistake,) = metrics.mistakes(images, 100)
    images[:] = 0
    assert (mistake.index, mistake.label, mistake.predicted_class) == (103, 1, 2)
    assert mistake.probability == pytest.approx(0.9)
    assert mistake.image.all() and mistake.image.base is None
