"""Hyperparameters, exact learning rates, optimizers, moving averages."""

import dataclasses
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import network, optimizer
from cifar10.config import CLASSIC, FAST, RunLength

RUN_LENGTH = RunLength(128, 50000)
LINEAR = dataclasses.replace(CLASSIC, schedule='linear', initial_learning_rate=0.5, epochs=5.0)


def _rates(run_length, hparams, steps):
    """Return the learning rate at these steps."""
    step = tf.placeholder(tf.int64, [])
    rate = optimizer.learning_rate(step, run_length, hparams)
    with tf.Session() as session:
        return [session.run(rate, {step: i}) for i in steps]


@pytest.mark.parametrize('towers, decays', [(1, 1), (4, 1), (4, 5)])
def test_the_rate_falls_after_350_epochs(towers, decays):
    boundary = -(-decays * 350 * 50000 // (128 * towers))  # 136719 for one tower, 34180 for four
    rates = _rates(
        RunLength(128 * towers, 50000), CLASSIC, [0, boundary - 1, boundary, boundary + 9999]
    )
    np.testing.assert_allclose(rates, 0.1 ** np.array([1, decays, decays + 1, decays + 1]), 1e-5)


@pytest.mark.parametrize(
    'hparams, name, has_effect',
    [
        (CLASSIC, 'momentum', False),
        (dataclasses.replace(CLASSIC, optimizer='momentum'), 'momentum', True),
        (dataclasses.replace(CLASSIC, optimizer='momentum'), 'matrix_learning_rate', False),
        (FAST, 'matrix_learning_rate', True),
        (FAST, 'warmup_epochs', True),
        (FAST, 'moving_average_decay', False),
    ],
)
def test_whether_a_hyperparameter_has_an_effect(hparams, name, has_effect):
    assert hparams.has_effect(name) == has_effect


def test_lengths():
    for num_epochs, examples in [(350.0, 17500000), (0.001, 50), (1e-9, 1)]:
        hparams = dataclasses.replace(CLASSIC, num_epochs_per_decay=num_epochs)
        assert RUN_LENGTH.examples_per_decay(hparams) == examples
    for examples, epochs, steps in [
        (128, np.inf, np.inf),
        (128, 256.0, 100000),
        (100, 1.1, 550),
        (128, 1e-9, 1),
    ]:
        hparams = dataclasses.replace(CLASSIC, epochs=epochs)
        assert RunLength(examples, 50000).num_steps(hparams) == steps


@pytest.mark.parametrize('towers, warmup', [(1, 0.0), (1, 0.5), (4, 2.0)])
def test_linear_schedule_at_every_step(towers, warmup):
    """Interpolate between the corners, with 100 examples per epoch and 8 per tower."""
    hparams, run_length = (
        dataclasses.replace(LINEAR, warmup_epochs=warmup),
        RunLength(8 * towers, 100),
    )
    steps = run_length.num_steps(hparams)
    assert steps == {1: 63, 4: 16}[towers]  # 62.5, 15.625
    rates = _rates(run_length, hparams, range(steps + 2))
    epochs = (np.arange(steps + 2) + 0.5) * 8 * towers / 100
    corners = ([0, warmup, 5], [0, 0.5, 0]) if warmup else ([0, 5], [0.5, 0])
    np.testing.assert_allclose(rates, np.interp(epochs, *corners), rtol=1e-6)
    assert rates[steps - 2] > 0 and rates[steps:] == [0, 0]


@pytest.mark.parametrize(
    'lr_scaling, examples, factor', [('none', 512, 1), ('linear', 512, 4), ('linear', 32, 0.25)]
)
def test_scaling_of_the_learning_rate(lr_scaling, examples, factor):
    hparams, run_length = (
        dataclasses.replace(CLASSIC, lr_scaling=lr_scaling),
        RunLength(examples, 50000),
    )
    np.testing.assert_allclose(_rates(run_length, hparams, [3]), 0.1 * factor, rtol=1e-6)
    assert run_length.peak_learning_rate(hparams) == pytest.approx(0.1 * factor)


@pytest.mark.parametrize(
    'first_step, hparams, limit',
    [
        (0, dataclasses.replace(CLASSIC, moving_average_decay=0.3), 0.3),
        (1000, dataclasses.replace(CLASSIC, moving_average_fraction=0.2, epochs=10.0), 0.95),
        (1000, dataclasses.replace(CLASSIC, moving_average_fraction=0.2, epochs=0.2), 0.0),
    ],
)
def test_averages_follow_the_updated_weights(first_step, hparams, limit):
    """A fraction covers that part of a run of 100 steps, or of 2.

    At step 1000 the warm-up of the decay, (1 + step) / (10 + step), is over.
    """
    weights = tf.get_variable('weights', initializer=np.array([1.0, -2.0], np.float32))
    global_step = tf.train.get_or_create_global_step()
    sgd = tf.train.GradientDescentOptimizer(0.25)
    train_op = optimizer.train_op(
        sgd, [(2 * weights, weights)], global_step, RunLength(10, 100), hparams
    )
    expected_weights = expected_average = np.array([1.0, -2.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        global_step.load(first_step, session)
        averages = {variable.op.name: variable for variable in tf.global_variables()}
        for step in range(first_step + 1, first_step + 6):
            session.run(train_op)
            expected_weights = expected_weights - 0.25 * 2 * expected_weights
            decay = min(limit, (1 + step) / (10 + step))
            expected_average = decay * expected_average + (1 - decay) * expected_weights
            average = averages['weights/ExponentialMovingAverage']
            np.testing.assert_allclose(session.run(weights), expected_weights, rtol=1e-6)
            np.testing.assert_allclose(session.run(average), expected_average, rtol=1e-5)
            assert session.run(global_step) == step


def _train_op(gradients):
    """Return the train op of gradient descent with rate 0.25."""
    opt = tf.train.GradientDescentOptimizer(0.25)
    global_step = tf.train.get_or_create_global_step()
    return optimizer.train_op(opt, gradients, global_step, RunLength(10, 100), CLASSIC)


def test_averages_of_all_trainable_variables():
    """Also of one without a gradient, by the names of tf.train.ExponentialMovingAverage."""
    weights, unused = [tf.get_variable(name, initializer=[1.0, 2.0]) for name in ('a/w', 'b/w')]
    expected = tf.train.ExponentialMovingAverage(0.9).variables_to_restore()
    with tf.name_scope('program'):
        train_op = _train_op([(2 * weights, weights), (None, unused)])
    names = {variable.op.name: variable for variable in tf.global_variables()}
    assert len(tf.trainable_variables()) == len(tf.moving_average_variables()) == 2
    assert sorted(names) == sorted(expected.keys() | {'a/w', 'b/w', 'global_step'})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        values = session.run(names)
    np.testing.assert_allclose(values['a/w'], [0.5, 1.0])
    np.testing.assert_allclose(values['a/w/ExponentialMovingAverage'], [0.5909091, 1.1818182])
    np.testing.assert_allclose(values['b/w/ExponentialMovingAverage'], [1.0, 2.0], rtol=1e-6)


def test_averages_of_the_statistics_of_a_network():
    """UPDATE_OPS run once per step; the averages are those of the updated statistics.

    Numbers that are not floating, and variables of others, have no averages.
    """
    weights = tf.get_variable('w', initializer=[8.0])
    statistics, count, other = [
        tf.get_variable(name, initializer=value, trainable=False)
        for name, value in [('mean', [2.0]), ('count', 0), ('other', [1.0])]
    ]
    for variable in (weights, statistics, count):
        tf.add_to_collection(network.VARIABLES, variable)
    for update in (statistics.assign_sub(0.5 * statistics), count.assign_add(1)):
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    train_op = _train_op([(2 * weights, weights)])
    names = {variable.op.name: variable for variable in tf.global_variables()}
    averaged = [name for name in names if name.endswith('/ExponentialMovingAverage')]
    assert sorted(averaged) == [f'{name}/ExponentialMovingAverage' for name in ('mean', 'w')]
    expected = {'w': 8.0, 'mean': 2.0}
    averages = dict(expected)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(1, 5):
            session.run(train_op)
            found, decay = session.run(names), (1 + step) / (10 + step)
            assert found['count'] == found['global_step'] == step and found['other'] == [1]
            for name in expected:
                expected[name] /= 2
                averages[name] = decay * averages[name] + (1 - decay) * expected[name]
                assert found[name] == [expected[name]]
                average = found[name + '/ExponentialMovingAverage']
                np.testing.assert_allclose(average, [averages[name]], rtol=1e-5)


def test_no_gradient_at_all_is_an_error():
    weights = tf.get_variable('w', initializer=[1.0])
    with pytest.raises(ValueError, match='No gradients provided for any variable'):
        _train_op([(None, weights)])


def test_average_starts_from_restored_weights():
    """A program may restore the weights, and initialize all other variables after it."""
    weights = tf.get_variable('w', initializer=tf.random_normal([3]))
    _train_op([(weights, weights)])
    (average,) = tf.global_variables('.*/ExponentialMovingAverage')
    with tf.Session() as session:
        weights.load([7.0, 8.0, 9.0], session)
        session.run(average.initializer)
        np.testing.assert_array_equal(session.run(average), [7, 8, 9])


def test_average_of_simultaneous_updates():
    """Four workers of a cluster update one average: it stays between the values of the weights."""
    weights = tf.get_variable('w', initializer=tf.ones([100000]))
    train_op = _train_op([(tf.zeros_like(weights), weights)])
    (average,) = tf.global_variables('.*/ExponentialMovingAverage')
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = [
            threading.Thread(target=lambda: [session.run(train_op) for _ in range(100)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_allclose(session.run(average), 1, rtol=1e-5)
