"""The most probable classes of image files."""

import contextlib
import sys
from typing import NamedTuple, Sequence

import numpy as np

from cifar10 import errors
from cifar10.data import decoding
from cifar10.data.progress_bar import ProgressBar
from cifar10.runs import machine
from cifar10.serving import image_paths

_MANY = 500  # files, for which progress is shown


class Prediction(NamedTuple):
    """What is told of an image."""

    path: str
    # the most probable ones, the most probable first; of equals the first class
    classes: Sequence[int]
    names: Sequence[str]  # of these classes
    probabilities: Sequence[float]


def predict(paths, predictor, class_names, top_k, failures):
    """Yields a list of Prediction, batch by batch, in the order of the files; tells on stderr what
    cannot be used, and the progress.

    Args:
      paths: of the files, and image_paths.STANDARD_INPUT.
      predictor: a function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes].
      class_names: in label order.
      top_k: the number of classes that are told.
      failures: a list, to which what cannot be used is appended: pairs of path and reason.
    """
    shown = ProgressBar('Predicting', len(paths), sys.stderr) if len(paths) >= _MANY else None
    with decoding.Decoder(machine.num_cores()) as decoder, contextlib.closing(
        decoder.decode(paths, image_paths.read)
    ) as chunks:
        for decoded in chunks:
            probabilities = predictor(decoded.images) if decoded.places else []
            if shown:
                shown.clear()
            yield [
                _prediction(paths[place], row, class_names, top_k)
                for place, row in zip(decoded.places, probabilities)
            ]
            for path, reason in decoded.failures:
                errors.warn('%s is left out: %s' % (path, reason))
            failures += decoded.failures
            if shown:
                shown.advance(len(decoded.places) + len(decoded.failures))


def _prediction(path, probabilities, class_names, top_k):
    classes = np.argsort(-probabilities, kind='stable')[:top_k].tolist()
    return Prediction(
        path, classes, [class_names[number] for number in classes], probabilities[classes].tolist()
    )
