"""Job, hyperparameters and settings of the flags."""

import dataclasses

from absl import flags
import pytest

from cifar10.cli import training_flags, training_job
from cifar10.config import CLASSIC, FAST, HPARAMS, RECIPES, RunSettings
from cifar10.data import dataset
from cifar10.runs import run_record
from cifar10.training import create_job
from tests.helpers import fields, messages, programs

SETTINGS = {field.name: field for field in dataclasses.fields(RunSettings) if field.metadata}
WITHOUT_FLAGS = {'matrix_weight_rms', 'warmup_epochs', 'moving_average_fraction'}


@pytest.fixture(autouse=True)
def defined():
    """The flags of training."""
    with programs.own_flags():
        training_flags.define()
        yield


def test_without_flags_the_defaults_of_the_job(data_dir):
    flags.FLAGS(['a script', '--data_dir=' + data_dir])
    assert training_job.job_from_flags() == create_job(dataset.read(data_dir), devices=['/cpu:0'])


def _parse(*args):
    flags.FLAGS.unparse_flags()
    # A run in the default directory would be resumed.
    flags.FLAGS(['a script', '--train_dir=/nowhere', *args])


@pytest.mark.parametrize('name', SETTINGS)
def test_every_setting_reaches_the_job(data_dir, name):
    value = fields.other_value(SETTINGS[name], SETTINGS[name].default)
    _parse('--data_dir=' + data_dir, f'--{name}={value}')
    assert training_job.job_from_flags().settings == RunSettings(**{name: value})


def test_fields_that_only_recipes_set():
    assert WITHOUT_FLAGS == set(HPARAMS) - set(flags.FLAGS)


@pytest.mark.parametrize('name', sorted(set(HPARAMS) - WITHOUT_FLAGS - {'recipe'}))
def test_every_flag_of_a_hyperparameter_reaches_the_job(data_dir, name):
    recipe = CLASSIC if name == 'moving_average_decay' else FAST
    value = fields.other_value(HPARAMS[name], getattr(recipe, name))
    expected, usual = fields.with_effect(recipe, name, value), dataclasses.asdict(recipe)
    given = [f'--{field}={x}' for field, x in vars(expected).items() if x != usual[field]]
    if name == 'epochs':
        expected = dataclasses.replace(expected, warmup_epochs=round(value * 2 / 25, 9))
    _parse('--data_dir=' + data_dir, f'--recipe={recipe.recipe}', *given)
    assert training_job.job_from_flags().hparams == expected


def test_defaults_of_the_books():
    training_flags.define_num_gpus()
    training_flags.define_variable_strategy()
    flags.FLAGS(['a script'])
    defaults = dict(
        num_gpus=1,
        train_dir='/tmp/cifar10_train',
        data_dir='/tmp/cifar10_data',
        max_steps=1000000,
        log_frequency=10,
        save_summaries_steps=100,
        save_checkpoint_steps=1000,
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
            f'--{field}={getattr(recipe, field)}'
            for field in set(HPARAMS) - WITHOUT_FLAGS
            if recipe.has_effect(field)
        ]
        assert hparams(*every) == recipe


@pytest.mark.parametrize(
    'args, warmup_epochs',
    [
        (['--recipe=fast', '--epochs=12.5'], 1),
        (['--recipe=fast', '--epochs=0.7'], 0.056),
        (['--schedule=linear', '--epochs=10'], 0),
        (['--recipe=fast', '--schedule=staircase', '--epochs=10'], 2),
    ],
)
def test_the_warm_up_is_a_share_of_the_run(args, warmup_epochs):
    assert hparams(*args).warmup_epochs == warmup_epochs


@pytest.mark.parametrize('recipe, kept', [('fast', True), ('classic', False)])
def test_a_resumed_run_keeps_what_has_no_flag(recipe, kept):
    """Another recipe has its own values; it cannot resume this run."""
    own = {name: getattr(FAST, name) + 0.25 for name in WITHOUT_FLAGS}
    recorded = dataclasses.replace(FAST, contrast=0.5, **own)
    own['warmup_epochs'] = FAST.warmup_epochs  # It depends on --epochs.
    expected = dataclasses.replace(RECIPES[recipe], **own if kept else {})
    assert hparams('--recipe=' + recipe, recorded=recorded) == expected


def test_a_flag_that_has_an_effect_with_the_recorded_values(tmp_path):
    hparams = dataclasses.replace(FAST, moving_average_fraction=0.0)
    run_record.write(str(tmp_path), run_record.RunRecord(hparams=hparams))
    _parse('--recipe=fast', '--moving_average_decay=0.99', f'--train_dir={tmp_path}')
    training_flags.check()
    _parse('--recipe=fast', '--moving_average_decay=0.99')
    with messages.raises('^--moving_average_decay has no effect with --recipe=fast: '):
        training_flags.check()


@pytest.mark.parametrize(
    'args, complaint',
    [
        (['--schedule=linear'], '--schedule=linear does not work with --epochs=inf: give .*'),
        (
            ['--recipe=fast', '--schedule=staircase', '--epochs=inf'],
            '--recipe=fast does not work with --epochs=inf: give a finite number',
        ),
        (
            ['--momentum=0.5'],
            '--momentum has no effect with --optimizer=gradient_descent: leave it out, or give '
            '--optimizer=momentum or muon',
        ),
        (
            ['--recipe=fast', '--moving_average_decay=0.5'],
            '--moving_average_decay has no effect with --recipe=fast: leave it out, or give '
            '--recipe=classic',
        ),
    ],
)
def test_hyperparameters_in_conflict(args, complaint):
    with messages.raises(f'^{complaint}$'):
        hparams(*args)
