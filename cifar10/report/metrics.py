"""Metrics and mistakes of an evaluation."""

import math
from typing import Dict, Mapping, NamedTuple, Sequence

import numpy as np

_NUM_BINS = 15  # of the calibration


class Calibration(NamedTuple):
    """Confidence and accuracy in bins of equal width.

    Bin i of m has the confidences in (i/m, (i+1)/m]. Source: Guo et al., "On calibration of modern
    neural networks", 2017, arXiv 1706.04599, section 2.
    """

    counts: np.ndarray  # int64 [bins]
    confidences: np.ndarray  # float64 [bins], means; nan in an empty bin
    accuracies: np.ndarray  # float64 [bins]; nan in an empty bin

    @property
    def expected_calibration_error(self):
        """Mean gap between accuracy and confidence, weighted by the examples of each bin."""
        gaps = np.abs(self.accuracies - self.confidences)
        return np.nansum(self.counts * gaps) / self.counts.sum()


class Mistake(NamedTuple):
    """A misclassified example."""

    index: int  # of the example, from 0
    image: np.ndarray  # uint8 [3, 32, 32]
    label: int
    predicted_class: int
    probability: float  # of the predicted class


class ClassMetrics(NamedTuple):
    """Columns of the table of classes: precision, recall, count.

    Precision is nan without predictions, recall is nan without examples.
    """

    precision: np.ndarray  # float64 [classes]
    recall: np.ndarray  # float64 [classes]
    count: np.ndarray  # int64 [classes], examples of the class


class Metrics(NamedTuple):
    """Metrics of labels and predictions."""

    labels: np.ndarray  # int32 [n], n > 0
    log_probabilities: np.ndarray  # float32 [n, classes]

    @property
    def num_examples(self):
        """Number of examples."""
        return len(self.labels)

    @property
    def num_classes(self):
        """Number of classes."""
        return self.log_probabilities.shape[1]

    @property
    def predicted_classes(self):
        """Most probable class of each example, the lower number in a tie: int64 [n]."""
        return self.log_probabilities.argmax(1)

    @property
    def confidences(self):
        """Probability of the most probable class: float64 [n]."""
        return np.exp(self.log_probabilities.max(1).astype(np.float64))

    @property
    def is_correct(self):
        """True for each correctly classified example: bool [n]."""
        return self.predicted_classes == self.labels

    @property
    def num_correct(self):
        """Number of correctly classified examples."""
        return int(self.is_correct.sum())

    @property
    def accuracy(self):
        """Fraction of correctly classified examples: the books' precision @ 1."""
        return self.num_correct / self.num_examples

    @property
    def cross_entropies(self):
        """Negative log probability of the label: float32 [n]."""
        return -self.log_probabilities[np.arange(self.num_examples), self.labels]

    @property
    def confidence_interval(self):
        """Bounds of the 95 % confidence interval of the accuracy.

        Score interval of E. B. Wilson, "Probable inference, the law of succession, and statistical
        inference", Journal of the American Statistical Association 22 (1927). Unlike accuracy
        +- 1.96 standard errors, it stays between 0 and 1, and its width is never 0.
        """
        # the 0.975 quantile of the standard normal distribution
        square = 1.959963984540054**2 / self.num_examples
        middle = self.accuracy + square / 2
        half = math.sqrt(square * (self.accuracy * (1 - self.accuracy) + square / 4))
        return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))

    def precision_at_k(self, k):
        """Return the fraction of examples with the label among the k most probable classes.

        In a tie, the lower class number comes first.
        """
        most_probable = np.argsort(-self.log_probabilities, kind='stable')[:, :k]
        return (most_probable == self.labels[:, np.newaxis]).any(1).mean()

    def confusion_matrix(self):
        """Return int64 [classes, classes]: counts by label (rows) and predicted class."""
        matrix = np.zeros([self.num_classes] * 2, np.int64)
        np.add.at(matrix, (self.labels, self.predicted_classes), 1)
        return matrix

    def per_class_metrics(self):
        """Return the ClassMetrics."""
        count, predicted, correct = [
            np.bincount(numbers, minlength=self.num_classes)
            for numbers in (self.labels, self.predicted_classes, self.labels[self.is_correct])
        ]
        with np.errstate(invalid='ignore'):
            return ClassMetrics(precision=correct / predicted, recall=correct / count, count=count)

    def calibration(self):
        """Return the Calibration."""
        bins = np.digitize(self.confidences, np.arange(1, _NUM_BINS) / _NUM_BINS, right=True)
        counts = np.bincount(bins, minlength=_NUM_BINS)
        with np.errstate(invalid='ignore'):
            return Calibration(
                counts,
                np.bincount(bins, self.confidences, _NUM_BINS) / counts,
                np.bincount(bins, self.is_correct, _NUM_BINS) / counts,
            )

    def mistakes(self, images, first_index):
        """Return a list of Mistake, in the order of the examples.

        Args:
          images: uint8 [n, 3, 32, 32]; the images of mistakes are copied.
          first_index: the index of the first example.
        """
        classes, confidences = self.predicted_classes, self.confidences
        return [
            Mistake(first_index + i, images[i].copy(), self.labels[i], classes[i], confidences[i])
            for i in np.flatnonzero(~self.is_correct)
        ]


class Result(NamedTuple):
    """Result of an evaluation."""

    step: int
    metrics: Metrics
    mistakes: Sequence[Mistake]  # the most confident mistakes
    class_names: Sequence[str]  # in label order; numbers if the classes have no names
    # From summary tag to loss. The cross entropy is a mean over examples without label smoothing.
    losses: Dict[str, float]
    image_files: Mapping[int, str] = {}  # by index of the example; {} if unknown
