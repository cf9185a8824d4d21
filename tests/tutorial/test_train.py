"""The tutorial's train op."""

import dataclasses

import numpy as np
import tensorflow.compat.v1 as tf

import cifar10
from cifar10.config import CLASSIC, RunLength


def test_three_steps_by_numpy():
    """Loss (w - 3)^2 / 2 + w: the learning rate decays after two steps; the averages follow the
    update."""
    global_step = tf.train.get_or_create_global_step()
    weight = tf.get_variable('weight', [], initializer=tf.constant_initializer(1.0))
    tf.add_to_collection('losses', tf.multiply(0.5, tf.square(weight - 3), name='distance'))
    tf.add_to_collection('losses', tf.identity(weight, name='linear'))
    total_loss = tf.add_n(tf.get_collection('losses'), name='total_loss')
    hparams = dataclasses.replace(
        CLASSIC,
        num_epochs_per_decay=1.0,
        initial_learning_rate=0.5,
        learning_rate_decay_factor=0.25,
        moving_average_decay=0.3,
    )
    train_op = cifar10.train(
        total_loss, global_step, RunLength(examples_per_step=100, examples_per_epoch=250), hparams
    )
    names = [
        'weight',
        'weight/ExponentialMovingAverage',
        'distance/avg',
        'linear/avg',
        'total_loss/avg',
        'global_step',
    ]
    w = average = 1.0
    loss_averages = np.zeros(3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        # int(250 / 100 * 1) = 2 steps between two decays
        for step, rate in enumerate([0.5, 0.5, 0.125], 1):
            summary = tf.Summary.FromString(session.run([train_op, tf.summary.merge_all()])[1])
            losses = np.array([(w - 3) ** 2 / 2, w, (w - 3) ** 2 / 2 + w])
            loss_averages = 0.9 * loss_averages + 0.1 * losses  # from 0, as in the tutorial
            w -= rate * (w - 3 + 1)
            decay = min(0.3, (1 + step) / (10 + step))
            average = decay * average + (1 - decay) * w
            found = session.run([variables[name] for name in names])
            expected = [w, average] + list(loss_averages) + [step]
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            values = {value.tag: value.simple_value for value in summary.value}
            assert values['learning_rate'] == rate
            expected = (
                'weight_1 weight/gradients distance_1 distance__raw_ total_loss_1 total_loss__raw_'
            )
            assert set(expected.split()) <= set(values)
