"""The mistakes of which the network is most confident."""

from typing import NamedTuple

import numpy as np


class Mistake(NamedTuple):
    """An example that is taken for another class."""

    index: int  # of the example, from 0
    image: np.ndarray  # uint8 [3, 32, 32]
    label: int
    predicted: int
    probability: float  # of the predicted class


class Mistakes:
    """Collects the most confident mistakes, batch by batch."""

    def __init__(self, count):
        """Nothing is collected yet; `count` mistakes are kept at most."""
        self.found = []  # of Mistake, the most confident first; of equals the first example
        self._count = count

    def add(self, first_index, labels, images, log_probabilities):
        """Looks at a batch.

        Args:
          first_index: the number of its first example.
          labels: int32 [n].
          images: uint8 [n, 3, 32, 32]; the kept ones are copied.
          log_probabilities: float32 [n, classes].
        """
        predicted = log_probabilities.argmax(1)
        (wrong,) = np.nonzero(predicted != labels)
        most_confident = wrong[
            np.argsort(-log_probabilities[wrong, predicted[wrong]], kind='stable')[: self._count]
        ]
        least = self.found[-1].probability if len(self.found) == self._count and self.found else 0
        for i in most_confident:
            probability = float(np.exp(np.float64(log_probabilities[i, predicted[i]])))
            if probability < least:
                break
            self.found.append(
                Mistake(
                    first_index + int(i),
                    images[i].copy(),
                    int(labels[i]),
                    int(predicted[i]),
                    probability,
                )
            )
        self.found = sorted(self.found, key=lambda mistake: (-mistake.probability, mistake.index))[
            : self._count
        ]
