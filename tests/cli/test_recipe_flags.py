"""From flags to HParams, and from there to what the scripts build."""
import importlib
import signal

from absl import flags
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from cifar10.cli import program as command_line, recipe_flags
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, FAST, HParams, RECIPES

recipe_flags.define()


def hparams(*args):
    flags.FLAGS.unparse_flags()
    flags.FLAGS(['a script'] + list(args))
    return recipe_flags.hparams()


@pytest.mark.parametrize('recipe', RECIPES)
def test_a_recipe_by_name(recipe):
    assert hparams('--recipe=' + recipe) == RECIPES[recipe] and RECIPES[recipe].recipe == recipe
    assert hparams() == CLASSIC


# Values that no recipe has; those of the schedule that a recipe does not use need that schedule, and so on.
OTHERS = dict(batch_size=7, optimizer='momentum', initial_learning_rate=0.7, lr_scaling='linear', momentum=0.7,
              matrix_learning_rate=0.7, matrix_weight_decay=0.7, schedule='staircase', num_epochs_per_decay=7.0,
              learning_rate_decay_factor=0.7, warmup_epochs=0.7, epochs=70.0, fc_weight_decay=0.7, label_smoothing=0.7,
              moving_average_decay=0.7, moving_average_fraction=0.7, contrast=0.7)


@pytest.mark.parametrize('name', HParams._fields[1:])
def test_every_number_has_a_flag(name):
    with_it = {'num_epochs_per_decay': {'schedule': 'staircase'}, 'learning_rate_decay_factor': {'schedule': 'staircase'},
               'moving_average_decay': {'moving_average_fraction': 0.0}}.get(name, {})
    given = dict(with_it, **{name: OTHERS[name]})
    assert hparams('--recipe=fast', *['--%s=%s' % item for item in given.items()]) == FAST._replace(**given)


def test_the_help_gives_a_number_by_the_recipes_that_read_it():
    assert flags.FLAGS['matrix_weight_decay'].help.endswith('By the recipe: fast 0.75, best 1.5.')
    assert flags.FLAGS['epochs'].help.endswith('By the recipe: classic inf, fast 32.0, best 100.0.')


@pytest.mark.parametrize('args, complaint', [
    (['--momentum=0.5'], '--momentum has no effect with --optimizer=gradient_descent: leave it out, or give --optimizer=momentum or '
                         'muon'),
    (['--optimizer=momentum', '--matrix_weight_decay=1'], '--matrix_weight_decay has no effect with --optimizer=momentum: .*'),
    (['--warmup_epochs=1'], '--warmup_epochs has no effect with --schedule=staircase: .*'),
    (['--recipe=fast', '--num_epochs_per_decay=10'], '--num_epochs_per_decay has no effect with --schedule=linear: .*'),
    (['--recipe=fast', '--learning_rate_decay_factor=0.5'], '--learning_rate_decay_factor has no effect with --schedule=linear: .*'),
    (['--recipe=fast', '--moving_average_decay=0.9'], '--moving_average_decay has no effect with --moving_average_fraction=0.02: .*'),
    (['--recipe=fast', '--epochs=2'], '--schedule=linear needs an end after its warm-up, not --epochs=2: give a finite one, greater '
                                      'than --warmup_epochs=3'),
    (['--epochs=1e300'], '--epochs=1e.300 is too many to count: give inf for a run without end'),
    (['--schedule=linear'], '--schedule=linear needs an end after its warm-up, not --epochs=inf: .*'),
    (['--moving_average_fraction=0.1'], '--moving_average_fraction=0.1 is of a run that has an end: give a finite --epochs, or '
                                          '--moving_average_fraction=0')])
def test_flags_that_contradict_each_other_or_have_no_effect(args, complaint):
    with pytest.raises(UserError, match='^%s$' % complaint):
        hparams(*args)


@pytest.mark.parametrize('arg', ['--momentum=1', '--contrast=nan', '--num_epochs_per_decay=inf', '--num_epochs_per_decay=0',
                                 '--matrix_learning_rate=0', '--initial_learning_rate=inf', '--epochs=0', '--label_smoothing=1.1'])
def test_a_number_out_of_bounds(arg):
    with pytest.raises(flags.IllegalFlagValueError):
        hparams(arg)


@pytest.mark.parametrize('script', ['cifar10_train', 'cifar10_multi_gpu_train'])
def test_the_scripts_hand_the_recipe_to_the_input(monkeypatch, script):
    given = []

    def distorted_inputs(*args):
        given.extend(args)
        raise InterruptedError
    before = signal.getsignal(signal.SIGINT)
    module = importlib.import_module('scripts.' + script)
    signal.signal(signal.SIGINT, before)  # scripts turn it off while they import
    monkeypatch.setattr('cifar10.distorted_inputs', distorted_inputs)
    monkeypatch.setattr('cifar10.input.distorted_inputs', distorted_inputs)
    monkeypatch.setattr(command_line, 'set_seed', lambda unused_resumed: None)
    hparams = FAST._replace(batch_size=5)
    devices = '/cpu:0' if script == 'cifar10_train' else ['/cpu:0']
    with pytest.raises(InterruptedError):
        module.train(hparams, 'some data', 100, devices, None, type('RunDirectory', (), {'resumed': None}))
    assert given == ['some data', 5, hparams]


def test_the_loss_of_a_tower_is_by_the_recipe():
    """Against one of no decay and no smoothing, in NumPy."""
    images, labels = np.random.RandomState(0).randn(4, 24, 24, 3).astype(np.float32), np.array([1, 2, 3, 4])
    hparams = CLASSIC._replace(fc_weight_decay=0.25, label_smoothing=0.5)
    with tf.name_scope('tower_0') as scope:
        loss = multi_gpu.tower_loss(scope, tf.constant(images), tf.constant(labels), 1, hparams)
    logits, = [x for x in tf.get_collection(tf.GraphKeys.ACTIVATIONS) if 'softmax_linear' in x.op.name]
    weights = [variable for variable in tf.trainable_variables() if variable.op.name in ('local3/weights', 'local4/weights')]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        loss, logits, weights = session.run([loss, logits, weights])
    log_probabilities = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -(0.5 * log_probabilities[np.arange(4), labels] + 0.5 * log_probabilities.mean(1)).mean()
    np.testing.assert_allclose(loss, expected + 0.125 * sum((w.astype(float) ** 2).sum() for w in weights), rtol=1e-5)
