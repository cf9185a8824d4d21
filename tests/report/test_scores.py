"""What follows from the scores, against loops and values by hand."""

import math

import numpy as np
import pytest

from cifar10.report import scores as report_scores
from cifar10.report.scores import Scores
from tests.helpers import scored

LOG = np.log(
    np.array([[0.5, 0.5, 0], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], np.float32)
    + np.float32(1e-30)
)


def _order(row):
    """The classes by probability, the most probable one first, and of equals the lower number."""
    return sorted(range(len(row)), key=lambda number: (-row[number], number))


def test_by_hand():
    found = Scores(np.array([1, 1, 2, 0], np.int32), LOG)
    assert found.classes.tolist() == [0, 1, 2, 2] and found.is_correct.tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert (found.num_examples, found.num_classes, found.num_correct, found.precision) == (
        4,
        3,
        2,
        0.5,
    )
    np.testing.assert_allclose(found.confidences, [0.5, 0.4, 0.7, 0.4], rtol=1e-6)
    np.testing.assert_allclose(np.exp(-found.cross_entropies), [0.5, 0.4, 0.7, 0.3], rtol=1e-6)
    assert [found.num_correct_at(k) for k in (1, 2, 3)] == [2, 4, 4]
    assert found.confusion().tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 1]]


def test_impossible_label():
    """The logarithm of the probability 0."""
    found = Scores(np.array([1], np.int32), np.array([[0, -np.inf]], np.float32))
    assert found.cross_entropies.tolist() == [math.inf] and [
        found.num_correct_at(k) for k in (1, 2)
    ] == [0, 1]


@pytest.mark.parametrize('chunk', [1, 70, 1 << 22])
def test_correct_at(monkeypatch, chunk):
    """Against sorting, with many equal probabilities; in chunks of any size."""
    monkeypatch.setattr(report_scores, '_CHUNK', chunk)
    found = scored.scores(300, 7)
    for k in range(1, 8):
        expected = sum(
            label in _order(row)[:k] for label, row in zip(found.labels, found.log_probabilities)
        )
        assert found.num_correct_at(k) == expected
    assert (
        found.num_correct_at(1)
        == found.num_correct
        < found.num_correct_at(2)
        < found.num_correct_at(7)
        == 300
    )


def test_correct_at_one_is_correct_where_all_are_equal():
    found = Scores(np.arange(4, dtype=np.int32), np.full([4, 4], np.log(np.float32(0.25))))
    assert [found.num_correct_at(k) for k in (1, 2, 3, 4)] == [
        1,
        2,
        3,
        4,
    ] and found.num_correct == 1


def test_confusion_and_classes_by_loops():
    found = scored.scores(200, 5)
    found = found._replace(labels=found.labels * (found.labels != 3))  # nothing has the label 3
    expected = np.zeros([5, 5], int)
    for label, row in zip(found.labels, found.log_probabilities):
        expected[label, _order(row)[0]] += 1
    assert found.confusion().dtype == np.int64 and (found.confusion() == expected).all()
    by_class = found.by_class()
    assert by_class.count.tolist() == expected.sum(1).tolist()
    for number in range(5):
        np.testing.assert_allclose(
            by_class.precision[number], expected[number, number] / expected[:, number].sum()
        )
        if number != 3:
            np.testing.assert_allclose(
                by_class.recall[number], expected[number, number] / expected[number].sum()
            )
    assert np.isnan(by_class.recall[3]) and not np.isnan(by_class.precision[3])


def test_a_class_that_is_never_predicted():
    by_class = scored.of_matrix([[2, 0], [3, 0]]).by_class()
    assert (
        by_class.recall.tolist() == [1, 0]
        and by_class.precision[0] == 0.4
        and np.isnan(by_class.precision[1])
    )


@pytest.mark.parametrize(
    'num_correct, num_examples', [(81, 100), (0, 10), (10, 10), (1, 2), (8619, 10000)]
)
def test_interval(num_correct, num_examples):
    """Its ends are the precisions that are 1.96 of their own standard errors away from the observed
    one."""
    found = scored.of_matrix([[num_correct, num_examples - num_correct], [0, 0]])
    low, high = found.interval
    for end, limit in [(low, 0), (high, 1)]:
        error = math.sqrt(end * (1 - end) / num_examples)
        assert end == pytest.approx(limit, abs=1e-12) or abs(
            end - found.precision
        ) == pytest.approx(1.959964 * error, rel=1e-5)
    assert (
        0 <= low < high <= 1 and low <= found.precision + 1e-12 and high >= found.precision - 1e-12
    )


def test_interval_by_hand():
    """81 of 100: (0.81 + 0.0192073 +- 1.959964 * sqrt(0.001539 + 0.0000960365)) / 1.0384146."""
    assert scored.of_matrix([[81, 19], [0, 0]]).interval == pytest.approx(
        (0.722212, 0.874854), abs=2e-6
    )


def test_many_classes_need_no_matrix():
    """A matrix of 30,000 classes would take 7 GB."""
    log_probabilities = np.zeros([20, 30000], np.float32)
    log_probabilities[:10, 29999] = 1
    found = Scores(np.full(20, 29999, np.int32), log_probabilities)
    by_class = found.by_class()
    assert (
        by_class.count[29999] == 20
        and by_class.recall[29999] == 0.5
        and by_class.precision[29999] == 1
    )
    assert found.num_correct_at(29999) == 10 and found.num_correct_at(30000) == 20
