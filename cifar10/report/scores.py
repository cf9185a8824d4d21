"""What the network says of each example, and the numbers that follow from it."""

import math
from typing import NamedTuple

import numpy as np

from cifar10.report import reliability

# 95 % of the standard normal distribution lie between minus this and this
_NORMAL_QUANTILE = 1.959963984540054
_CHUNK = 1 << 22  # probabilities that are compared at once


class ByClass(NamedTuple):
    """How well each class is recognised."""

    # float64 [classes]: share of the examples taken for this class that belong to it; nan if there
    # are none
    precision: np.ndarray
    # float64 [classes]: share of the examples of this class that are taken for it; nan if there are
    # none
    recall: np.ndarray
    count: np.ndarray  # int64 [classes]: examples of this class


class Scores(NamedTuple):
    """What the network says of each example, in order."""

    labels: np.ndarray  # int32 [n], n > 0
    log_probabilities: np.ndarray  # float32 [n, classes]

    @property
    def num_examples(self):
        """The number of examples."""
        return len(self.labels)

    @property
    def num_classes(self):
        """The number of classes."""
        return self.log_probabilities.shape[1]

    @property
    def classes(self):
        """The most probable class of each example, the first one of equals: int64 [n]."""
        return self.log_probabilities.argmax(1)

    @property
    def confidences(self):
        """The probability of the most probable class: float64 [n]."""
        return np.exp(self.log_probabilities.max(1).astype(np.float64))

    @property
    def is_correct(self):
        """Whether each example is classified correctly: bool [n]."""
        return self.classes == self.labels

    @property
    def num_correct(self):
        """The number of examples that are classified correctly."""
        return int(self.is_correct.sum())

    @property
    def precision(self):
        """The share of the examples that are classified correctly."""
        return self.num_correct / self.num_examples

    @property
    def cross_entropies(self):
        """Minus the logarithm of the probability of the label: float32 [n]."""
        return -self.log_probabilities[np.arange(self.num_examples), self.labels]

    @property
    def interval(self):
        """The ends of the 95 % confidence interval of the precision.

        The score interval of E. B. Wilson, "Probable inference, the law of succession, and
        statistical inference", Journal of the American Statistical Association 22 (1927). Unlike
        precision +- 1.96 standard errors, it stays between 0 and 1, and has a width if everything
        is correct.
        """
        square = _NORMAL_QUANTILE**2 / self.num_examples
        middle = (self.precision + square / 2) / (1 + square)
        half = math.sqrt(square * (self.precision * (1 - self.precision) + square / 4)) / (
            1 + square
        )
        return max(0.0, middle - half), min(1.0, middle + half)

    def num_correct_at(self, k):
        """The number of examples whose label is among the k most probable classes; of equals, the
        first class comes first."""
        return sum(int((rank < k).sum()) for rank in self._ranks())

    def _ranks(self):
        """Yields, chunk by chunk, how many classes come before the label of each example."""
        numbers, rows = np.arange(self.num_classes), max(1, _CHUNK // self.num_classes)
        for first in range(0, self.num_examples, rows):
            chunk, labels = (
                self.log_probabilities[first : first + rows],
                self.labels[first : first + rows, np.newaxis],
            )
            own = np.take_along_axis(chunk, labels.astype(np.int64), 1)
            yield ((chunk > own) | (chunk == own) & (numbers < labels)).sum(1)

    def confusion(self):
        """The number of examples by label (rows) and most probable class (columns): int64 [classes,
        classes]."""
        cells = self.labels.astype(np.int64) * self.num_classes + self.classes
        return np.bincount(cells, minlength=self.num_classes**2).reshape(self.num_classes, -1)

    def by_class(self):
        """How well each class is recognised, a ByClass; it needs no matrix, so that there may be
        many classes."""
        count, predicted, correct = [
            np.bincount(numbers, minlength=self.num_classes)
            for numbers in (self.labels, self.classes, self.labels[self.is_correct])
        ]
        with np.errstate(invalid='ignore'):
            return ByClass(correct / predicted, correct / count, count)

    def calibration(self, num_bins=15):
        """How often the network is right by how sure it is, a reliability.Bins."""
        return reliability.bins(self.confidences, self.is_correct, num_bins)
