"""Metrics against loops and values by hand."""

import math

import numpy as np
import pytest

from cifar10.report.scores import Scores
from tests.helpers import scored

PROBABILITIES = [[0.5, 0.5, 0], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]


def _order(row):
    """The classes by probability, the most probable one first, and of equals the lower number."""
    return sorted(range(len(row)), key=lambda number: (-row[number], number))


def test_by_hand():
    with np.errstate(divide='ignore'):
        found = Scores(np.array([1, 1, 2, 0], np.int32), np.log(np.float32(PROBABILITIES)))
    assert found.classes.tolist() == [0, 1, 2, 2]
    assert found.is_correct.tolist() == [False, True, True, False]
    assert (found.num_examples, found.num_classes) == (4, 3)
    assert (found.num_correct, found.precision) == (2, 0.5)
    np.testing.assert_allclose(found.confidences, [0.5, 0.4, 0.7, 0.4], rtol=1e-6)
    np.testing.assert_allclose(np.exp(-found.cross_entropies), [0.5, 0.4, 0.7, 0.3], rtol=1e-6)
    assert [found.precision_at(k) for k in (1, 2, 3)] == [0.5, 1, 1]
    assert found.confusion().tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 1]]
    impossible = found._replace(labels=np.array([2, 1, 2, 0], np.int32))
    assert impossible.cross_entropies[0] == math.inf and impossible.precision_at(2) == 0.75


def test_precision_at_by_sorting():
    """With many equal probabilities."""
    found = scored.scores(300, 7)
    for k in range(1, 8):
        expected = np.mean(
            [label in _order(row)[:k] for label, row in zip(found.labels, found.log_probabilities)]
        )
        assert found.precision_at(k) == pytest.approx(expected, abs=1e-9)
    assert found.precision_at(1) == found.precision < found.precision_at(7) == 1


def test_confusion_and_classes_by_loops():
    found = scored.scores(200, 5)
    found = found._replace(labels=found.labels * (found.labels != 3))  # nothing has the label 3
    expected = np.zeros([5, 5], int)
    for label, row in zip(found.labels, found.log_probabilities):
        expected[label, _order(row)[0]] += 1
    assert (found.confusion() == expected).all()
    with np.errstate(invalid='ignore'):
        precision = np.diag(expected) / expected.sum(0)
        recall = np.diag(expected) / expected.sum(1)
    assert np.isnan(recall).tolist() == [False, False, False, True, False]
    for values, wanted in zip(found.by_class(), (precision, recall, expected.sum(1))):
        np.testing.assert_allclose(values, wanted)


@pytest.mark.parametrize('num_correct, num_examples', [(81, 100), (0, 10), (10, 10), (8619, 10000)])
def test_interval(num_correct, num_examples):
    """Its ends are the precisions that are 1.96 of their own standard errors away from the observed
    one."""
    found = scored.of_matrix([[num_correct, num_examples - num_correct], [0, 0]])
    low, high = found.interval
    assert 0 <= low < high <= 1
    for end, limit, distance in [
        (low, 0, found.precision - low),
        (high, 1, high - found.precision),
    ]:
        error = math.sqrt(end * (1 - end) / num_examples)
        assert end == pytest.approx(limit, abs=1e-12) or distance == pytest.approx(
            1.959964 * error, rel=1e-5
        )
    if num_examples == 100:
        # (0.81 + 0.0192073 +- 1.959964 * sqrt(0.001539 + 0.0000960365)) / 1.0384146
        assert found.interval == pytest.approx((0.722212, 0.874854), abs=2e-6)


def test_many_classes_need_no_matrix():
    """A matrix of 30,000 classes would take 7 GB."""
    log_probabilities = np.zeros([20, 30000], np.float32)
    log_probabilities[:10, 29999] = 1
    found = Scores(np.full(20, 29999, np.int32), log_probabilities)
    assert [values[29999] for values in found.by_class()] == [1, 0.5, 20]
    assert (found.precision_at(29999), found.precision_at(30000)) == (0.5, 1)


def test_calibration_by_a_loop():
    found = scored.scores(400, 4)
    calibration = found.calibration()
    expected_error = 0
    assert len(calibration.counts) == 15
    for i in range(15):
        inside = (i / 15 < found.confidences) & (found.confidences <= (i + 1) / 15)
        assert calibration.counts[i] == inside.sum()
        if inside.any():
            confidence, precision = (
                found.confidences[inside].mean(),
                found.is_correct[inside].mean(),
            )
            assert calibration.confidences[i] == pytest.approx(confidence)
            assert calibration.precisions[i] == pytest.approx(precision)
            expected_error += inside.mean() * abs(precision - confidence)
        else:
            assert np.isnan(calibration.confidences[i]) and np.isnan(calibration.precisions[i])
    assert calibration.expected_error == pytest.approx(expected_error) and expected_error > 0.01


def test_ends_belong_to_the_lower_bin():
    """And what rounding has put above 1 is in the last bin."""
    found = Scores(np.zeros(3, np.int32), np.full([3, 2], [0, -9], np.float32))
    assert found.calibration().counts.tolist() == 14 * [0] + [3]
    found.log_probabilities[0] = 1e-7
    # 3/5, which float64 gives back
    found.log_probabilities[1] = np.nextafter(np.log(np.float32(0.6)), np.float32(-1))
    found.log_probabilities[2] = np.nextafter(np.log(np.float32(0.6)), np.float32(0))
    assert found.calibration().counts.tolist() == 8 * [0] + [1, 1] + 4 * [0] + [1]


def test_mistakes():
    """Their images are copied: a view would keep every batch in memory, and change with it."""
    scores = scored.scores(60, 4)
    images = np.random.default_rng(1).integers(0, 256, [60, 3, 32, 32]).astype(np.uint8)
    before = images.copy()
    found = scores.mistakes(images, 100)
    images[:] = 0
    wrong = [i for i in range(60) if not scores.is_correct[i]]
    assert [mistake.index for mistake in found] == [100 + i for i in wrong] and 5 < len(wrong) < 60
    for mistake, i in zip(found, wrong):
        assert mistake.label == scores.labels[i] and mistake.predicted == scores.classes[i]
        assert mistake.probability == scores.confidences[i]
        assert (mistake.image == before[i]).all() and mistake.image.base is None
