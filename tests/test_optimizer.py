"""The learning rate at exact steps, and the moving averages."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import optimizer
from cifar10.hparams import CLASSIC


@pytest.mark.parametrize('towers', [1, 4])
@pytest.mark.parametrize('decays', [1, 2, 5])
def test_learning_rate_falls_in_the_first_step_after_350_epochs(towers, decays):
    step = tf.placeholder(tf.int64, [])
    rate = optimizer.learning_rate(step, 128 * towers, 50000, CLASSIC)
    boundary = -(-decays * 350 * 50000 // (128 * towers))  # 136719 for one tower, 34180 for four
    with tf.Session() as session:
        before, after, much_later = [session.run(rate, {step: s}) for s in (boundary - 1, boundary, boundary + 30000)]
    np.testing.assert_allclose([before, after, much_later], [0.1 ** decays, 0.1 ** (decays + 1), 0.1 ** (decays + 1)], rtol=1e-5)


def test_learning_rate_starts_at_a_tenth():
    with tf.Session() as session:
        assert session.run(optimizer.learning_rate(tf.constant(0), 128, 50000, CLASSIC)) == np.float32(0.1)


def test_averages_follow_the_weights_after_the_update():
    weights = tf.get_variable('weights', initializer=np.array([1.0, -2.0], np.float32))
    global_step = tf.train.get_or_create_global_step()
    sgd = tf.train.GradientDescentOptimizer(0.25)
    train_op = optimizer.train(sgd, [(2 * weights, weights)], global_step, CLASSIC._replace(moving_average_decay=0.3))
    expected_weights = expected_average = np.array([1.0, -2.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        average, = [variable for variable in tf.global_variables() if variable.op.name == 'weights/ExponentialMovingAverage']
        for step in range(1, 6):
            session.run(train_op)
            expected_weights = expected_weights - 0.25 * 2 * expected_weights
            decay = min(0.3, (1 + step) / (10 + step))
            expected_average = decay * expected_average + (1 - decay) * expected_weights
            np.testing.assert_allclose(session.run(weights), expected_weights, rtol=1e-6)
            np.testing.assert_allclose(session.run(average), expected_average, rtol=1e-6)
            assert session.run(global_step) == step


def test_classic_recipe():
    assert CLASSIC == (128, 0.1, 350.0, 0.1, 0.9999)
