"""Precision by confidence, against a loop."""

import numpy as np
import pytest

from cifar10.report import reliability
from tests.helpers import scored


@pytest.mark.parametrize('num_bins', [1, 4, 15])
def test_bins_by_a_loop(num_bins):
    found = scored.scores(400, 4)
    bins = found.calibration(num_bins)
    expected_error = 0
    for i in range(num_bins):
        inside = [
            (confidence, is_correct)
            for confidence, is_correct in zip(found.confidences, found.is_correct)
            if i / num_bins < confidence <= (i + 1) / num_bins
        ]
        assert bins.counts[i] == len(inside)
        if inside:
            confidence, precision = np.mean(inside, 0)
            np.testing.assert_allclose(
                [bins.confidences[i], bins.precisions[i]], [confidence, precision]
            )
            expected_error += len(inside) / 400 * abs(precision - confidence)
        else:
            assert np.isnan(bins.confidences[i]) and np.isnan(bins.precisions[i])
    assert bins.expected_error == pytest.approx(expected_error) and expected_error > 0.01
    assert bins.mean_confidence == pytest.approx(
        found.confidences.mean()
    ) and bins.precision == pytest.approx(found.precision)


def test_fifteen_bins_by_default():
    assert len(scored.scores(10, 3).calibration().counts) == 15


def test_ends_belong_to_the_lower_bin():
    """And what rounding has put above 1 is 1."""
    bins = reliability.bins(
        np.array([0.25, 0.5, 0.500001, 0.75, 1, 1.0000001]), np.array([1, 0, 1, 1, 1, 1]) > 0, 4
    )
    assert bins.counts.tolist() == [1, 1, 2, 2]
    assert bins.precisions.tolist() == [1, 0, 1, 1] and bins.confidences[3] == 1
    assert bins.expected_error == pytest.approx((0.75 + 0.5 + 0.499999 + 0.25) / 6)
