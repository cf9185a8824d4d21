"""The hyperparameters, the learning rate at exact steps, the optimizers, the moving averages."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import optimizer
from cifar10.hparams import BEST, CLASSIC, FAST, RECIPES, HParams, Pace


@pytest.mark.parametrize('towers', [1, 4])
@pytest.mark.parametrize('decays', [1, 2, 5])
def test_the_rate_falls_after_350_epochs(towers, decays):
    step = tf.placeholder(tf.int64, [])
    rate = optimizer.learning_rate(step, Pace(128 * towers, 50000), CLASSIC)
    boundary = -(-decays * 350 * 50000 // (128 * towers))  # 136719 for one tower, 34180 for four
    with tf.Session() as session:
        before, after, much_later = [
            session.run(rate, {step: s}) for s in (boundary - 1, boundary, boundary + 30000)
        ]
    np.testing.assert_allclose(
        [before, after, much_later],
        [0.1**decays, 0.1 ** (decays + 1), 0.1 ** (decays + 1)],
        rtol=1e-5,
    )


def test_the_rate_starts_at_a_tenth():
    with tf.Session() as session:
        assert session.run(
            optimizer.learning_rate(tf.constant(0), Pace(128, 50000), CLASSIC)
        ) == np.float32(0.1)


def test_averages_follow_the_updated_weights():
    weights = tf.get_variable('weights', initializer=np.array([1.0, -2.0], np.float32))
    global_step = tf.train.get_or_create_global_step()
    sgd = tf.train.GradientDescentOptimizer(0.25)
    hparams = CLASSIC._replace(moving_average_decay=0.3)
    train_op = optimizer.train(
        sgd, [(2 * weights, weights)], global_step, Pace(128, 50000), hparams
    )
    expected_weights = expected_average = np.array([1.0, -2.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (average,) = [
            variable
            for variable in tf.global_variables()
            if variable.op.name == 'weights/ExponentialMovingAverage'
        ]
        for step in range(1, 6):
            session.run(train_op)
            expected_weights = expected_weights - 0.25 * 2 * expected_weights
            decay = min(0.3, (1 + step) / (10 + step))
            expected_average = decay * expected_average + (1 - decay) * expected_weights
            np.testing.assert_allclose(session.run(weights), expected_weights, rtol=1e-6)
            np.testing.assert_allclose(session.run(average), expected_average, rtol=1e-6)
            assert session.run(global_step) == step


def test_classic_recipe():
    assert CLASSIC._asdict() == {
        'recipe': 'classic',
        'batch_size': 128,
        'optimizer': 'gradient_descent',
        'initial_learning_rate': 0.1,
        'lr_scaling': 'none',
        'momentum': 0.9,
        'matrix_learning_rate': 6e-4,
        'matrix_weight_decay': 0.75,
        'schedule': 'staircase',
        'num_epochs_per_decay': 350.0,
        'learning_rate_decay_factor': 0.1,
        'warmup_epochs': 0.0,
        'epochs': np.inf,
        'fc_weight_decay': 0.004,
        'label_smoothing': 0.0,
        'moving_average_decay': 0.9999,
        'moving_average_fraction': 0.0,
        'contrast': 0.8,
    }


def test_recipes():
    assert RECIPES == {'classic': CLASSIC, 'fast': FAST, 'best': BEST} and HParams() == CLASSIC
    assert {name: recipe.recipe for name, recipe in RECIPES.items()} == {
        name: name for name in RECIPES
    }
    assert {name for name in HParams._fields if getattr(FAST, name) != getattr(BEST, name)} == {
        'recipe',
        'matrix_weight_decay',
        'warmup_epochs',
        'epochs',
    }


@pytest.mark.parametrize(
    'hparams, without_effect',
    [
        (CLASSIC, {'momentum', 'matrix_learning_rate', 'matrix_weight_decay', 'warmup_epochs'}),
        (
            CLASSIC._replace(optimizer='momentum', schedule='linear'),
            {
                'matrix_learning_rate',
                'matrix_weight_decay',
                'num_epochs_per_decay',
                'learning_rate_decay_factor',
            },
        ),
        (FAST, {'num_epochs_per_decay', 'learning_rate_decay_factor', 'moving_average_decay'}),
    ],
)
def test_hyperparameters_without_effect(hparams, without_effect):
    assert {name for name in HParams._fields if not hparams.has_effect(name)} == without_effect


def test_a_pace_has_no_end_of_its_own():
    assert Pace(128, 50000) == (128, 50000, np.inf, 1)


@pytest.mark.parametrize(
    'name, call',
    [
        ('optimizer', lambda pace, hparams: optimizer.create(tf.constant(0.1), hparams)),
        ('schedule', lambda pace, hparams: optimizer.learning_rate(tf.constant(0), pace, hparams)),
        (
            'lr_scaling',
            lambda pace, hparams: optimizer.learning_rate(tf.constant(0), pace, hparams),
        ),
        ('lr_scaling', optimizer.peak_learning_rate),
    ],
)
def test_an_unknown_name(name, call):
    with pytest.raises(ValueError, match='^Unknown %s: other$' % name):
        call(Pace(128, 50000), CLASSIC._replace(**{name: 'other'}))


@pytest.mark.parametrize('num_epochs, examples', [(350.0, 17500000), (0.001, 50), (1e-9, 1)])
def test_examples_per_decay(num_epochs, examples):
    assert (
        optimizer.examples_per_decay(
            Pace(128, 50000), CLASSIC._replace(num_epochs_per_decay=num_epochs)
        )
        == examples
    )


LINEAR = CLASSIC._replace(schedule='linear', initial_learning_rate=0.5, epochs=5.0)


@pytest.mark.parametrize('towers', [1, 4])
@pytest.mark.parametrize('warmup', [0.0, 0.5, 2.0])
def test_linear_schedule_at_every_step(towers, warmup):
    """Against interpolation between its corners, with 100 examples per epoch and 8 per tower."""
    hparams, pace = LINEAR._replace(warmup_epochs=warmup), Pace(8 * towers, 100)
    steps = optimizer.num_steps(pace, hparams)
    assert steps == {1: 63, 4: 16}[towers]  # 62.5, 15.625
    step = tf.placeholder(tf.int64, [])
    rate = optimizer.learning_rate(step, pace, hparams)
    with tf.Session() as session:
        rates = [session.run(rate, {step: i}) for i in range(steps + 2)]
    epochs = (np.arange(steps + 2) + 0.5) * 8 * towers / 100
    corners = ([0, warmup, 5], [0, 0.5, 0]) if warmup else ([0, 5], [0.5, 0])
    np.testing.assert_allclose(rates, np.interp(epochs, *corners), rtol=1e-6)
    assert rates[steps - 2] > 0 and rates[steps:] == [0, 0]


def test_linear_schedule_counts_far():
    """At step 10^8 float32 would no longer tell a step from the next."""
    hparams = LINEAR._replace(epochs=2e8)
    rates = [
        optimizer.learning_rate(tf.constant(10**8 + i), Pace(100, 100), hparams) for i in (0, 10**6)
    ]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(rates), [0.25, 0.2475], rtol=1e-6)


@pytest.mark.parametrize('schedule', ['staircase', 'linear'])
@pytest.mark.parametrize(
    'lr_scaling, examples, factor',
    [('none', 512, 1), ('linear', 512, 4), ('linear', 128, 1), ('linear', 32, 0.25)],
)
def test_scaling_of_the_learning_rate(schedule, lr_scaling, examples, factor):
    hparams = LINEAR._replace(schedule=schedule, lr_scaling=lr_scaling)
    plain = optimizer.learning_rate(
        tf.constant(3), Pace(examples, 50000), hparams._replace(lr_scaling='none')
    )
    scaled = optimizer.learning_rate(tf.constant(3), Pace(examples, 50000), hparams)
    with tf.Session() as session:
        plain, scaled = session.run([plain, scaled])
    np.testing.assert_allclose(scaled, plain * factor, rtol=1e-6)
    peak = optimizer.peak_learning_rate(Pace(examples, 50000), hparams)
    assert (peak, optimizer.batch_factor(Pace(examples, 50000), hparams)) == (
        0.5 * factor,
        examples / 128,
    )


def test_the_number_of_steps():
    assert optimizer.num_steps(Pace(128, 50000), CLASSIC) == np.inf
    assert optimizer.num_steps(Pace(128, 50000), CLASSIC._replace(epochs=256.0)) == 100000
    assert optimizer.num_steps(Pace(100, 50000), CLASSIC._replace(epochs=1.1)) == 550
    assert optimizer.num_steps(Pace(128, 50000), CLASSIC._replace(epochs=1e-9)) == 1


def test_momentum_is_nesterovs():
    """Sutskever et al., 2013: v <- m v + g, and the step is g + m v."""
    weights = tf.get_variable('weights', initializer=np.array([1.0, -2.0], np.float32))
    hparams = CLASSIC._replace(optimizer='momentum', momentum=0.8)
    update = optimizer.create(tf.constant(0.1), hparams).apply_gradients([(3 * weights, weights)])
    expected, velocity = np.array([1.0, -2.0]), 0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(update)
            gradient = 3 * expected
            velocity = 0.8 * velocity + gradient
            expected = expected - 0.1 * (gradient + 0.8 * velocity)
            np.testing.assert_allclose(session.run(weights), expected, rtol=1e-5)


@pytest.mark.parametrize('run_steps, decay', [(100, 0.95), (400, 0.9875), (2, 0.0)])
def test_averages_cover_a_part_of_the_run(run_steps, decay):
    """Watched from step 1000 on, where the warm-up of the decay, (1 + step) / (10 + step), is
    over."""
    weights = tf.get_variable('weights', initializer=0.0)
    global_step = tf.train.get_or_create_global_step()
    train_op = optimizer.train(
        tf.train.GradientDescentOptimizer(1.0),
        [(tf.constant(-1.0), weights)],
        global_step,
        Pace(10, 100),
        CLASSIC._replace(moving_average_fraction=0.2, epochs=run_steps / 10),
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(global_step.assign(1000))
        (average,) = [
            variable
            for variable in tf.global_variables()
            if variable.op.name == 'weights/ExponentialMovingAverage'
        ]
        expected = 0.0
        for i in range(1, 4):
            session.run(train_op)
            expected = decay * expected + (1 - decay) * i
            assert session.run(average) == pytest.approx(expected, rel=1e-5)
