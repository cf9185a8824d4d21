"""Metrics of a network that is sometimes wrong with a high confidence."""

import numpy as np

from cifar10.report.metrics import Metrics


def metrics(num_examples, num_classes, seed=0):
    """Return Metrics with probabilities of few digits, so that some are equal."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, num_examples).astype(np.int32)
    weights = rng.integers(1, 5, [num_examples, num_classes]).astype(np.float64)
    weights[np.arange(num_examples), labels] += rng.integers(0, 8, num_examples)
    return Metrics(labels, np.log(weights / weights.sum(1, keepdims=True)).astype(np.float32))


def of_matrix(matrix):
    """Return Metrics with this confusion matrix; each prediction has probability 0.9."""
    num_classes = len(matrix)
    cells = [
        (label, predicted)
        for label in range(num_classes)
        for predicted in range(num_classes)
        for _ in range(matrix[label][predicted])
    ]
    probabilities = np.full([len(cells), num_classes], 0.1 / (num_classes - 1))
    probabilities[np.arange(len(cells)), [predicted for _, predicted in cells]] = 0.9
    return Metrics(
        np.array([label for label, _ in cells], np.int32), np.log(probabilities).astype(np.float32)
    )
