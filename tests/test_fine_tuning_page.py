"""docs/fine_tuning.md: its change of the package does what the page says."""

import types

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.config import CLASSIC
from tests.helpers import checkouts, pages

(CLASS_WEIGHTS,) = [item.text for item in pages.items('fine_tuning.md') if item.is_python]


def test_class_weights():
    """Against NumPy; without weight decay."""
    place = r"(?=    tf.add_to_collection\('losses', tf.reduce_mean\(cross_entropy)"
    source = checkouts.replace(checkouts.read_module('model.py'), [(place, CLASS_WEIGHTS)])
    model = types.ModuleType('model')
    exec(source, vars(model))
    logits = np.random.RandomState(0).normal(size=[8, 3]).astype(np.float32)
    labels = np.array([0, 1, 2, 2, 1, 0, 0, 0])
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(model.loss(tf.constant(logits), tf.constant(labels), hparams=CLASSIC))
    log_sums = np.log(np.exp(logits.astype(np.float64)).sum(1))
    cross_entropies = log_sums - logits[np.arange(8), labels]
    np.testing.assert_allclose(
        found, (np.array([0.5, 1.0, 3.0])[labels] * cross_entropies).mean(), rtol=1e-5
    )
