"""Is the network as often right as it says?

Bins of equal width over the confidence, and the expected calibration error: Guo et al., "On
calibration of modern neural networks", 2017, arXiv 1706.04599, section 2.
"""

from typing import NamedTuple

import numpy as np


class Bins(NamedTuple):
    """Examples by confidence; bin i of m has those with a confidence above i/m, up to and with
    (i+1)/m."""

    counts: np.ndarray  # int64 [bins]
    confidences: np.ndarray  # float64 [bins], the mean; nan in an empty bin
    # float64 [bins], the share that is classified correctly; nan in an empty bin
    precisions: np.ndarray

    @property
    def expected_error(self):
        """The expected calibration error: the mean over the examples of the gap between precision
        and confidence of their bin."""
        return float(
            np.nansum(self.counts * np.abs(self.precisions - self.confidences)) / self.counts.sum()
        )

    @property
    def mean_confidence(self):
        """The mean confidence of all examples."""
        return float(np.nansum(self.counts * self.confidences) / self.counts.sum())

    @property
    def precision(self):
        """The share of all examples that is classified correctly."""
        return float(np.nansum(self.counts * self.precisions) / self.counts.sum())


def bins(confidences, is_correct, num_bins):
    """Sorts examples into Bins.

    Args:
      confidences: float [n], the probability of the most probable class, n > 0. What rounding has
        put above 1 counts as 1.
      is_correct: bool [n], whether it is the right class.
      num_bins: the number of bins.
    """
    upper_ends = np.arange(1, num_bins) / num_bins  # of all bins but the last
    places = np.searchsorted(upper_ends, confidences, side='left')
    counts = np.bincount(places, minlength=num_bins)
    with np.errstate(invalid='ignore'):
        return Bins(
            counts,
            np.bincount(places, np.minimum(confidences, 1), num_bins) / counts,
            np.bincount(places, is_correct, num_bins) / counts,
        )
