"""Job, hyperparameters and settings of the flags."""

import dataclasses

from absl import flags
import pytest

from cifar10.cli import training_flags, training_job
from cifar10.config import BEST, CLASSIC, FAST, HPARAMS, RECIPES, RunSettings
from cifar10.data import dataset
from cifar10.training import Job
from tests.helpers import fields, messages, programs

SETTINGS = {field.name: field for field in dataclasses.fields(RunSettings) if field.metadata}
FOLLOWS = dict.fromkeys(
    ['keep_best', 'target_precision'], {'eval_every': SETTINGS['save_checkpoint_steps'].default}
)


@pytest.fixture(autouse=True)
def defined():
    """The flags of training."""
    with programs.own_flags():
        training_flags.define()
        yield


def test_without_flags_the_defaults_of_the_job(data_dir):
    flags.FLAGS(['a script', '--data_dir=' + data_dir])
    assert training_job.job_from_flags() == Job(
        dataset.read(data_dir), devices=['/cpu:0'], dataset_name='cifar10'
    )


def _parse(*args):
    flags.FLAGS.unparse_flags()
    # A run in the default directory would be resumed.
    flags.FLAGS(['a script', '--train_dir=/nowhere', *args])


def test_the_devices_reach_the_job(data_dir):
    _parse('--data_dir=' + data_dir, '--dataset=synthetic', '--recipe=fast')
    assert training_job.job_from_flags(6, 3, 'spread') == Job(
        dataset=dataset.read(data_dir),
        hparams=FAST,
        devices=[f'/cpu:{i}' for i in range(6)],
        devices_per_tower=3,
        variable_strategy='spread',
        dataset_name='synthetic',
    )


@pytest.mark.parametrize('name', SETTINGS)
def test_every_setting_reaches_the_job(data_dir, name):
    value = fields.other_value(SETTINGS[name], SETTINGS[name].default)
    _parse('--data_dir=' + data_dir, f'--{name}={value}')
    expected = RunSettings(**{name: value}, **FOLLOWS.get(name, {}))
    assert training_job.job_from_flags().settings == expected


def test_the_best_is_chosen_of_all_checkpoints_by_default():
    for args, eval_every in [([], 9), (['--eval_every=4'], 4)]:
        _parse('--keep_best', '--save_checkpoint_steps=9', *args)
        expected = RunSettings(keep_best=True, eval_every=eval_every, save_checkpoint_steps=9)
        assert training_flags.settings_from_flags() == expected


@pytest.mark.parametrize('name', sorted(set(HPARAMS) - {'recipe'}))
def test_every_hyperparameter_reaches_the_job(data_dir, name):
    value = fields.other_value(HPARAMS[name], getattr(FAST, name))
    expected = dataclasses.asdict(fields.with_effect(FAST, name, value))
    fast = dataclasses.asdict(FAST)
    given = [f'--{field}={x}' for field, x in expected.items() if x != fast[field]]
    if name == 'epochs':
        expected['warmup_epochs'] = round(value * 2 / 25, 9)
    _parse('--data_dir=' + data_dir, '--recipe=fast', *given)
    assert dataclasses.asdict(training_job.job_from_flags().hparams) == expected


@pytest.mark.parametrize(
    'args, complaint',
    [
        (['--keep_best', '--eval_every=0'], '--keep_best needs evaluations, but --eval_every=0 '),
        (
            ['--target_precision=0.5', '--eval_every=0'],
            '--target_precision needs evaluations, but ',
        ),
        (['--max_steps=6', '--profile_step=7'], '--profile_step=7 is after the last step, '),
    ],
)
def test_contradictions(args, complaint):
    _parse(*args)
    with messages.raises('^' + complaint):
        training_flags.check()


def test_defaults_of_the_books():
    training_flags.define_num_gpus()
    training_flags.define_placement()
    flags.FLAGS(['a script'])
    defaults = dict(
        num_gpus=1,
        train_dir='/tmp/cifar10_train',
        data_dir='/tmp/cifar10_data',
        max_steps=1000000,
        log_frequency=10,
        save_summaries_steps=100,
        save_checkpoint_steps=1000,
        devices_per_tower=1,
        variable_strategy=None,  # depends on the devices
    )
    assert {name: flags.FLAGS[name].value for name in defaults} == defaults


def hparams(*args, recorded=CLASSIC):
    _parse(*args)
    return training_flags.hparams_from_flags(recorded)


def test_a_recipe_by_name():
    assert hparams() == CLASSIC
    for name, recipe in RECIPES.items():
        assert hparams('--recipe=' + name) == recipe and recipe.recipe == name
        every = [
            f'--{field}={getattr(recipe, field)}' for field in HPARAMS if recipe.has_effect(field)
        ]
        assert hparams(*every) == recipe


@pytest.mark.parametrize(
    'args, warmup_epochs',
    [
        (['--recipe=fast', '--epochs=12.5'], 1),
        (['--recipe=fast', '--epochs=0.7'], 0.056),
        (['--recipe=fast', '--epochs=10', '--warmup_epochs=1.5'], 1.5),
        (['--schedule=linear', '--epochs=10'], 0),
        (['--recipe=fast', '--schedule=staircase', '--epochs=10'], 2),
    ],
)
def test_the_warm_up_is_a_share_of_the_run(args, warmup_epochs):
    assert hparams(*args).warmup_epochs == warmup_epochs


@pytest.mark.parametrize(
    'args, recorded, warmup_epochs',
    [
        (['--epochs=40'], dataclasses.replace(FAST, warmup_epochs=1.5, epochs=10.0), 1.5),
        (['--epochs=10', '--warmup_epochs=0.5'], FAST, 0.5),
        (['--epochs=12.5'], BEST, 1),
        (['--schedule=staircase'], dataclasses.replace(FAST, warmup_epochs=1.5), 2),
        (['--epochs=12.5'], dataclasses.replace(FAST, schedule='staircase'), 1),
    ],
)
def test_a_resumed_run_keeps_its_warm_up(args, recorded, warmup_epochs):
    assert hparams('--recipe=fast', *args, recorded=recorded).warmup_epochs == warmup_epochs


def test_a_resumed_run_that_would_end_within_its_warm_up():
    with messages.raises('^--epochs=1 ends .* warm-up of 2 epochs: give more --epochs, '):
        hparams('--recipe=fast', '--epochs=1', recorded=FAST)


@pytest.mark.parametrize(
    'args, complaint',
    [
        (
            ['--recipe=fast', '--epochs=2', '--warmup_epochs=2'],
            '.*, greater than --warmup_epochs=2',
        ),
        (['--schedule=linear'], '--schedule=linear does not work with --epochs=inf: .*'),
        (
            ['--momentum=0.5'],
            '--momentum has no effect with --optimizer=gradient_descent: leave it out, or give '
            '--optimizer=momentum or muon',
        ),
        (
            ['--recipe=fast', '--moving_average_decay=0.5'],
            '--moving_average_decay has no effect with --moving_average_fraction=0.02: leave it out, '
            'or give --moving_average_fraction=0',
        ),
        (['--moving_average_fraction=0.1'], '.*=0.1 needs a run with an end: .*'),
    ],
)
def test_hyperparameters_in_conflict(args, complaint):
    with messages.raises(f'^{complaint}$'):
        hparams(*args)
