"""Comparison with the reference, from equal weights, batches and random numbers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import distortions
from cifar10.benchmark import measurements, reference
from cifar10.data import dataset
from cifar10.training import create_job
from tests.helpers import oracle
from tests.machine import comparisons

BATCH = 128


def _reference(raw, labels, draws):
    images = tf.map_fn(lambda args: reference.distort(*args), [raw, *draws], tf.float32)
    return reference.training_step(create_job(dataset.WITHOUT_FILES), [(images, labels)])


def _ours(raw, labels, draws):
    rows, columns, flip, _, contrast = draws
    raw = tf.transpose(raw, [0, 3, 1, 2])
    images = distortions.distort(raw, distortions.Distortions(rows, columns, flip, contrast))
    return measurements.training_step('ours', create_job(dataset.WITHOUT_FILES), [(images, labels)])


def _changes(build, values, *batch):
    """Return how a step changes each trainable variable."""
    with tf.Graph().as_default(), tf.device('/cpu:0'), tf.Session() as session:
        train_op = build(*tf.nest.map_structure(tf.constant, batch))
        variables = {variable.op.name: variable for variable in tf.trainable_variables()}
        session.run(tf.global_variables_initializer())
        for name, variable in variables.items():
            variable.load(values[name], session)
        session.run(train_op)
        return {name: session.run(variables[name]) - values[name] for name in variables}


@pytest.mark.slow
def test_a_step_equals_the_one_of_the_reference(data_dir):
    """The tolerance is for pooling, where rounding decides between nearly equal values."""
    labels, images = oracle.read_records(dataset.read(data_dir).train.paths)
    rng = np.random.RandomState(1)
    draws = [rng.randint(0, 9, BATCH, np.int32) for _ in range(2)] + [rng.rand(BATCH) < 0.5]
    draws += [rng.uniform(*ends, BATCH).astype(np.float32) for ends in [(-63, 63), (0.2, 1.8)]]
    batch = images[:BATCH], labels[:BATCH].astype(np.int32), draws
    values = comparisons.initial_values(rng)
    found, expected = (_changes(build, values, *batch) for build in (_ours, _reference))
    assert len(expected) == 10
    for name, change in expected.items():
        norm = np.linalg.norm(change)
        assert norm > 0 and np.linalg.norm(found[name] - change) <= 0.01 * norm, name
