"""Prediction of image files with a checkpoint."""

import io
import json
import os
import sys
from typing import NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, distortions, errors
from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.data import decoding
from cifar10.errors import UserError
from cifar10.system import machine

STDIN = '-'
_DEVICE = '/cpu:0'


class Prediction(NamedTuple):
    """Most probable classes of an image in descending order; ties in label order."""

    path: str
    classes: Sequence[int]
    names: Sequence[str]  # of the classes
    probabilities: Sequence[float]


def find_files(names, recursive):
    """Replace directories by the sorted paths of their files; return all paths.

    Args:
      names: files and directories; STDIN is kept.
      recursive: True to include subdirectories; see decoding.find.

    Raises:
      UserError: a directory has no files.
    """
    paths, hidden = [], []
    for name in names:
        found = decoding.find(name, hidden, recursive) if os.path.isdir(name) else [name]
        if not found:
            hint = '' if recursive else ' (--recursive includes its subdirectories)'
            raise UserError(f'{name} has no files{hint}: give another directory')
        paths += found
    decoding.warn_of_hidden(hidden)
    return paths


def predict(paths, predictor, class_names, top_k, failures):
    """Yield a list of Prediction per DecodedImages, in the order of the files.

    A warning names each unusable file.

    Args:
      paths: paths of the files; may include STDIN.
      predictor: a function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes].
      class_names: class names in label order.
      top_k: number of classes per image.
      failures: a list. (path, reason) of each unusable file is appended.
    """
    content = sys.stdin.buffer.read() if STDIN in paths and sys.stdin else b''

    def open_file(path):
        return io.BytesIO(content) if path == STDIN else open(path, 'rb')

    for decoded in decoding.decode(paths, open_file):
        probabilities = predictor(decoded.images) if decoded.indices else []
        predictions = []
        for index, row in zip(decoded.indices, probabilities):
            classes = np.argsort(-row, kind='stable')[:top_k].tolist()
            names = [class_names[number] for number in classes]
            predictions.append(Prediction(paths[index], classes, names, row[classes].tolist()))
        yield predictions
        for path, reason in decoded.failures:
            errors.warn(f'{path} is left out: {reason}')
        failures += decoded.failures


def text_line(prediction):
    """Return a line like 'cat.jpg: cat 0.912, dog 0.053'."""
    pairs = zip(prediction.names, prediction.probabilities)
    predicted = ', '.join(f'{name} {probability:.3f}' for name, probability in pairs)
    return f'{errors.escape_unprintable(prediction.path)}: {predicted}\n'


def json_line(prediction):
    """Return a line of JSON: file, and class, name and probability of each prediction."""
    path, *columns = prediction
    predictions = [
        {'class': number, 'name': name, 'probability': float(f'{probability:.7g}')}
        for number, name, probability in zip(*columns)
    ]
    return json.dumps({'file': path, 'predictions': predictions}) + '\n'


def checkpoint_predictor(trained_model, batch_size):
    """Return a predictor with the preprocessing of the evaluation.

    Args:
      trained_model: a TrainedModel.
      batch_size: expected number of images, to choose sub-batches and threads.

    Returns:
      A function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes].

    Raises:
      UserError: the checkpoint does not fit the network.
    """
    with tf.Graph().as_default() as graph, tf.device(_DEVICE), trained_model.constants_scope():
        images = tf.placeholder(tf.uint8, [None, DEPTH, HEIGHT, WIDTH])
        number = machine.num_sub_batches([_DEVICE], batch_size)
        divided = trained_model.network._replace(num_sub_batches=number)
        probabilities = tf.nn.softmax(divided.inference(distortions.crop(images)))
    threads = machine.resources([_DEVICE], cpu_kernels.num_sub_batches(graph)).threads
    config = machine.session_config([_DEVICE], threads)
    return tf.Session(graph=graph, config=config).make_callable(probabilities, [images])
