"""Comparison with the reference, from equal weights, batches and random numbers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import distortions, multi_gpu, optimizer
from cifar10.benchmark import reference
from cifar10.config import CLASSIC, RunLength
from cifar10.data import dataset
from cifar10.system import machine
from cifar10.training import Job
from tests.helpers import oracle, queues

BATCH = 128
RUN_LENGTH = RunLength(BATCH, 50000)


class _Trainer:
    """A session with the train op of build(images, labels, draws)."""

    def __init__(self, build):
        with tf.Graph().as_default(), tf.device('/cpu:0'):
            self._inputs = [
                tf.placeholder(tf.uint8, [BATCH, 32, 32, 3]),
                tf.placeholder(tf.int32, [BATCH]),
            ]
            self._inputs += [
                tf.placeholder(dtype, [BATCH])
                for dtype in (tf.int32, tf.int32, tf.bool, tf.float32, tf.float32)
            ]
            self._train_op = build(self._inputs[0], self._inputs[1], self._inputs[2:])
            self._variables = {variable.op.name: variable for variable in tf.global_variables()}
            self._session = tf.Session(config=machine.session_config(['/cpu:0', '/cpu:1']))
            self._session.run(tf.global_variables_initializer())

    def load(self, values):
        for name, value in values.items():
            self._variables[name].load(value, self._session)

    def values(self):
        return self._session.run(self._variables)

    def step(self, batch):
        self._session.run(self._train_op, dict(zip(self._inputs, batch)))


def _initial_values():
    rng = np.random.RandomState(0)
    values = {}
    for name, shape, stddev in [
        ('conv1', [5, 5, 3, 64], 0.05),
        ('conv2', [5, 5, 64, 64], 0.05),
        ('local3', [2304, 384], 0.04),
        ('local4', [384, 192], 0.04),
        ('softmax_linear', [192, 10], 1 / 192),
    ]:
        draws = rng.normal(size=[2] + shape)
        values[name + '/weights'] = stddev * np.where(
            np.abs(draws[0]) < 2, draws[0], 0.5 * draws[1]
        )
        values[name + '/weights/ExponentialMovingAverage'] = values[name + '/weights']
    return values


def _batches(data_dir):
    labels, images = oracle.read_records(dataset.read(data_dir).train.paths)
    rng = np.random.RandomState(1)
    for _ in range(2):
        batch = rng.choice(len(labels), BATCH, replace=False)
        yield (
            images[batch],
            labels[batch],
            rng.randint(0, 9, BATCH),
            rng.randint(0, 9, BATCH),
            rng.rand(BATCH) < 0.5,
            rng.uniform(-63, 63, BATCH),
            rng.uniform(0.2, 1.8, BATCH),
        )


def _reference(num_towers):
    def build(raw, labels, draws):
        images = tf.map_fn(lambda args: reference.distort(*args), [raw] + draws, tf.float32)
        batches = list(zip(tf.split(images, num_towers), tf.split(labels, num_towers)))
        job = Job(dataset.read(''), devices=['/cpu:0', '/cpu:1'][:num_towers])
        return reference.training_step(job, batches)

    return build


def _ours(num_towers, num_sub_batches):
    def build(raw, labels, draws):
        rows, columns, flip, _, contrast = draws
        images = distortions.distort(
            tf.transpose(raw, [0, 3, 1, 2]),
            distortions.Distortions(rows, columns, flip, contrast),
        )
        global_step = tf.train.get_or_create_global_step()
        sgd = tf.train.GradientDescentOptimizer(
            optimizer.learning_rate(global_step, RUN_LENGTH, CLASSIC)
        )
        batches = list(zip(tf.split(images, num_towers), tf.split(labels, num_towers)))
        _, tower_grads = multi_gpu.tower_gradients(
            ['/cpu:0', '/cpu:1'][:num_towers], batches, sgd, num_sub_batches=num_sub_batches
        )
        gradients = multi_gpu.average_gradients(tower_grads)
        return optimizer.train_op(sgd, gradients, global_step, RUN_LENGTH, CLASSIC)

    return build


@pytest.mark.slow
def test_each_step_equals_the_one_of_the_reference(data_dir):
    """Each step starts from the same weights. The first step also has one sub-batch and two towers.

    The moving averages are not compared: the reference may read the weights before the update. The
    tolerance is for pooling, where rounding decides between nearly equal values.
    """
    theirs = _Trainer(_reference(1))
    others = [_Trainer(build) for build in (_ours(1, 4), _ours(1, 1), _ours(2, 2), _reference(2))]
    theirs.load(_initial_values())
    after = theirs.values()
    for step, batch in enumerate(_batches(data_dir)):
        before = after
        theirs.step(batch)
        after = theirs.values()
        for i, other in enumerate(others[:1] if step else others):
            other.load(before)
            other.step(batch)
            values = other.values()
            for name, value in after.items():
                if not name.endswith('/ExponentialMovingAverage'):
                    change = np.linalg.norm(value - before[name])
                    assert change > 0, name
                    assert np.linalg.norm(values[name] - value) <= 0.01 * change, (name, i)


def test_input_draws_for_each_image(data_dir, monkeypatch):
    monkeypatch.setattr(
        reference,
        'distort',
        lambda image, *draws: tf.stack([tf.cast(draw, tf.float32) for draw in draws]),
    )
    batches = queues.run(reference.distorted_inputs(data_dir, 100), 40)
    draws, labels = (np.concatenate(parts) for parts in zip(*batches))
    rows, columns, flip, brightness, contrast = draws.T
    assert set(labels) == set(range(10))
    assert len(set(zip(rows, columns, flip))) == 9 * 9 * 2
    assert len(set(contrast)) > 3900 and contrast.min() < 0.21 and contrast.max() > 1.79
    assert len(set(brightness)) > 3900 and brightness.min() < -62 and brightness.max() > 62
