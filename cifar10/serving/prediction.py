"""Prediction of the classes of image files, by a checkpoint or an exported model."""

import csv
import io
import json
import os
import sys
from typing import NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors, evaluation
from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.data import decoding
from cifar10.data.progress import ProgressBar
from cifar10.errors import UserError
from cifar10.serving import export
from cifar10.system import machine

STANDARD_INPUT = '-'
_MANY = 500  # files, for which progress is shown
_DEVICE = '/cpu:0'


class Prediction(NamedTuple):
    """The most probable classes of an image, the most probable first; of equals the first class."""

    path: str
    classes: Sequence[int]
    names: Sequence[str]  # of these classes
    probabilities: Sequence[float]


def find_files(names, is_recursive, failures):
    """The paths of the files, in the order of the names and then of the alphabet; hidden ones in
    directories do not count.

    Args:
      names: of files and directories; STANDARD_INPUT stays as it is.
      is_recursive: whether directories in directories count.
      failures: a list, to which directories that cannot be read are appended: pairs of path and
        reason.

    Raises:
      UserError: a directory holds no file.
    """
    paths = []
    for name in names:
        paths += _in_directory(name, is_recursive, failures) if os.path.isdir(name) else [name]
    return paths


def _in_directory(directory, is_recursive, failures):
    def note(error):
        errors.warn('%s is left out: %s' % (error.filename, error.strerror))
        failures.append((error.filename, error.strerror))

    paths, before = [], len(failures)
    for place, folders, names in os.walk(directory, onerror=note):
        folders[:] = sorted(name for name in folders if is_recursive and not name.startswith('.'))
        names = sorted(name for name in names if not name.startswith('.'))
        paths += [os.path.join(place, name) for name in names]
    if not paths and len(failures) == before:
        raise UserError(
            '%s holds no file%s: name another directory'
            % (directory, '' if is_recursive else ' (directories in it count with --recursive)')
        )
    return paths


def _read(path):
    """As decoding.read, of a file or of the standard input."""
    if path != STANDARD_INPUT:
        return decoding.read(path)
    return decoding.read_opened(sys.stdin.buffer if sys.stdin else io.BytesIO())


def predict(paths, predictor, class_names, top_k, failures):
    """Yields a list of Prediction, batch by batch, in the order of the files; tells on stderr what
    cannot be used, and the progress of many files.

    Args:
      paths: of the files, and STANDARD_INPUT.
      predictor: a function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes].
      class_names: in label order.
      top_k: the number of classes that are told.
      failures: a list, to which what cannot be used is appended: pairs of path and reason.
    """
    # On a terminal the lines themselves show the progress.
    is_shown = len(paths) >= _MANY and not sys.stdout.isatty()
    progress = ProgressBar('Predicting', len(paths), stream=sys.stderr) if is_shown else None
    for decoded in decoding.decode(paths, machine.num_cores(), _read):
        probabilities = predictor(decoded.images) if decoded.places else []
        predictions = []
        for place, row in zip(decoded.places, probabilities):
            classes = np.argsort(-row, kind='stable')[:top_k].tolist()
            names = [class_names[number] for number in classes]
            predictions.append(Prediction(paths[place], classes, names, row[classes].tolist()))
        yield predictions
        for path, reason in decoded.failures:
            errors.warn('%s is left out: %s' % (path, reason))
        failures += decoded.failures
        if progress:
            progress.advance(len(decoded.places) + len(decoded.failures))


def text_line(prediction):
    """A line like 'cat.jpg: cat 0.912, dog 0.053'."""
    pairs = ['%s %.3f' % pair for pair in zip(prediction.names, prediction.probabilities)]
    return '%s: %s\n' % (errors.printable(prediction.path), ', '.join(pairs))


def json_line(prediction):
    """A line with an object: the file, and for each of its predictions class, name and
    probability."""
    path, *columns = prediction
    told = [
        {'class': number, 'name': name, 'probability': float('%.7g' % probability)}
        for number, name, probability in zip(*columns)
    ]
    return json.dumps({'file': path, 'predictions': told}) + '\n'


def csv_header(top_k):
    """The line that names the columns of csv_line."""
    columns = ['name_%d,probability_%d' % (i, i) for i in range(1, top_k + 1)]
    return ','.join(['file'] + columns) + '\n'


def csv_line(prediction):
    """A line with the file, and name and probability of each class."""
    row = [errors.printable(prediction.path)]
    for name, probability in zip(prediction.names, prediction.probabilities):
        row += [name, '%.7g' % probability]
    line = io.StringIO()
    csv.writer(line, lineterminator='\n').writerow(row)
    return line.getvalue()


def checkpoint_predictor(trained, num_views, batch_size):
    """A predictor that sees images as an evaluation does.

    Args:
      trained: a Trained.
      num_views: per image, see evaluation.crop_and_flip.
      batch_size: the number of images that is to be expected.

    Returns:
      A function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes].

    Raises:
      UserError: the checkpoint does not fit the network.
    """
    with tf.Graph().as_default() as graph, tf.device(_DEVICE), trained.constants():
        images = tf.placeholder(tf.uint8, [None, DEPTH, HEIGHT, WIDTH])
        num_sub_batches = machine.num_sub_batches([_DEVICE], batch_size)
        log_probabilities = evaluation.mean_log_probabilities(
            images, num_views, len(trained.class_names), num_sub_batches, fc_weight_decay=0.0
        )
        probabilities = tf.exp(log_probabilities)
    config = machine.session_config([_DEVICE], machine.choose_threads([_DEVICE], batch_size))
    return tf.Session(graph=graph, config=config).make_callable(probabilities, [images])


def saved_model_predictor(path):
    """A predictor that runs an exported model, and its class names.

    Args:
      path: of a version, or of the directory of versions, of which the latest is taken.

    Returns:
      A function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes]; and a list of
      names.

    Raises:
      UserError: there is no model that cifar10_export.py has written.
    """
    path = os.path.join(path, *map(str, sorted(export.versions(path))[-1:]))
    session = tf.Session(graph=tf.Graph(), config=machine.session_config([_DEVICE]))
    try:
        with open(os.path.join(path, *export.CLASS_NAMES_FILE), encoding='utf-8') as listing:
            class_names = listing.read().split('\n')[:-1]
        with session.graph.as_default():
            model = tf.saved_model.load(session, [tf.saved_model.SERVING], path)
        signature = model.signature_def[export.UINT8_SIGNATURE]
        probabilities = signature.outputs['probabilities']
        num_classes = probabilities.tensor_shape.dim[1].size
        if num_classes != len(class_names):
            raise ValueError('it names %d classes, and has %d' % (len(class_names), num_classes))
        run = session.make_callable(probabilities.name, [signature.inputs['images'].name])
    except (tf.errors.OpError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise UserError(
            '%s is no model that cifar10_export.py has written (%s): export it again, or give another --saved_model_dir'
            % (path, errors.reason(error))
        )
    return lambda images: run(np.transpose(images, [0, 2, 3, 1])), class_names
