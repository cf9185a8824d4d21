"""Losses of towers, and the average of their gradients."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from cifar10.config import CLASSIC
from cifar10.network import Network

IMAGES = np.random.RandomState(0).randn(8, 24, 24, 3).astype(np.float32)
LABELS = np.arange(8, dtype=np.int32)


def _variables():
    return [tf.get_variable(name, [2], tf.float32) for name in ('first', 'second', 'third')]


def test_average_gradients():
    first, second, third = _variables()
    averages = multi_gpu.average_gradients(
        [
            [(tf.constant(a), first), (None, second), (tf.constant(b), third)]
            for a, b in [
                ([1.0, 2.0], [0.0, 0.0]),
                ([3.0, 6.0], [1.0, 0.0]),
                ([2.0, 1.0], [5.0, 3.0]),
            ]
        ]
    )
    assert [variable for _, variable in averages] == [first, third]
    with tf.Session() as session:
        assert [session.run(gradient).tolist() for gradient, _ in averages] == [[2, 3], [2, 1]]


def test_towers_that_disagree():
    first, second, third = _variables()
    gradient = tf.constant([1.0, 2.0])
    for tower, complaint in [
        (
            [(gradient, first), (None, second)],
            r'The towers differ in .*: second, second\. A network must create',
        ),
        ([(gradient, first), (gradient, third)], 'The towers differ in .*: second, third'),
        (
            [(gradient, first), (tf.zeros([3]), second)],
            'shapes must be ',  # the message of TensorFlow
        ),
        ([(gradient, first)], 'The towers differ in .*: second, none'),
    ]:
        with pytest.raises(ValueError, match='(?i)' + complaint):
            multi_gpu.average_gradients([[(gradient, first), (gradient, second)], tower])


def test_tower_loss_is_that_of_its_own_images():
    with tf.name_scope('tower_0') as scope:
        alone = multi_gpu.tower_loss(scope, tf.constant(IMAGES[:4]), tf.constant(LABELS[:4]))
    with tf.name_scope('tower_1') as scope, tf.variable_scope('', reuse=True):
        second = multi_gpu.tower_loss(scope, tf.constant(IMAGES[:4]), tf.constant(LABELS[:4]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        alone, second = session.run([alone, second])
    assert alone == pytest.approx(second)


def test_tower_loss_follows_the_hyperparameters():
    tf.set_random_seed(1)  # with other seeds the smoothing can change almost nothing
    losses = []
    for i, hparams in enumerate(
        [
            CLASSIC,
            dataclasses.replace(CLASSIC, fc_weight_decay=0.0),
            dataclasses.replace(CLASSIC, label_smoothing=0.5),
        ]
    ):
        with tf.name_scope(f'tower_{i}') as scope, tf.variable_scope('', reuse=tf.AUTO_REUSE):
            losses.append(
                multi_gpu.tower_loss(
                    scope, tf.constant(IMAGES), tf.constant(LABELS), Network(hparams=hparams)
                )
            )
    decay = tf.add_n(tf.get_collection('losses', 'tower_0/')[:2])
    cross_entropies = [tf.get_collection('losses', f'tower_{i}/')[-1] for i in range(3)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses, decay, cross_entropies = session.run([losses, decay, cross_entropies])
    assert decay > 1 and abs(cross_entropies[2] - cross_entropies[0]) > 1e-4
    np.testing.assert_allclose(
        losses,
        [cross_entropies[0] + decay, cross_entropies[0], cross_entropies[2] + decay],
        rtol=1e-6,
    )
