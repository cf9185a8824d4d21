"""What gives the probabilities of images: a checkpoint, or an exported model."""

import os

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors, evaluation
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.runs import machine
from cifar10.serving import exporting

_DEVICE = '/cpu:0'
_IMAGE = [dataset.DEPTH, dataset.HEIGHT, dataset.WIDTH]


def of_checkpoint(trained, num_views, batch_size):
    """A predictor that sees images as an evaluation does.

    Args:
      trained: a Trained.
      num_views: per image, see evaluation.crop_and_mirror.
      batch_size: the number of images that is to be expected.

    Returns:
      A function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes].

    Raises:
      UserError: the checkpoint does not fit the network.
    """
    with tf.Graph().as_default() as graph, tf.device(_DEVICE), trained.constants():
        images = tf.placeholder(tf.uint8, [None] + _IMAGE)
        num_slices = machine.num_slices([_DEVICE], batch_size)
        probabilities = tf.exp(
            evaluation.mean_log_probabilities(
                images, num_views, len(trained.class_names), num_slices, fc_weight_decay=0.0
            )
        )
    session = tf.Session(
        graph=graph,
        config=machine.session_config([_DEVICE], machine.choose_threads([_DEVICE], batch_size)),
    )
    return session.make_callable(probabilities, [images])


def of_saved_model(path):
    """A predictor that runs an exported model, and its class names.

    Args:
      path: of a version, or of the directory of versions, of which the latest is taken.

    Returns:
      A function from uint8 [n, 3, 32, 32] to probabilities, float32 [n, classes]; and a list of
      names.

    Raises:
      UserError: there is no model that cifar10_export.py has written.
    """
    path = _latest_version(path)
    complaint = '%s is no model that cifar10_export.py has written (%s): export it again, or give another --saved_model'
    session = tf.Session(graph=tf.Graph(), config=machine.session_config([_DEVICE]))
    try:
        with open(os.path.join(path, *exporting.CLASS_NAMES_FILE), encoding='utf-8') as listing:
            class_names = listing.read().split('\n')[:-1]
        with session.graph.as_default():
            model = tf.saved_model.load(session, [tf.saved_model.SERVING], path)
        signature = model.signature_def[exporting.UINT8_SIGNATURE]
        num_classes = signature.outputs['probabilities'].tensor_shape.dim[1].size
        if num_classes != len(class_names):
            raise ValueError('it names %d classes, and has %d' % (len(class_names), num_classes))
        run = session.make_callable(
            signature.outputs['probabilities'].name, [signature.inputs['images'].name]
        )
    except (tf.errors.OpError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise UserError(
            complaint % (path, getattr(error, 'strerror', None) or errors.reason(error))
        )
    return lambda images: run(np.transpose(images, [0, 2, 3, 1])), class_names


def _latest_version(path):
    """The path of the highest version in a directory of versions; any other path as it is."""
    versions = exporting.versions(path)
    return os.path.join(path, str(max(versions))) if versions else path
