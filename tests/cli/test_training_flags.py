"""Job and hyperparameters of the flags."""

from absl import flags
import pytest

from cifar10 import placement
from cifar10.cli import training_flags, training_job
from cifar10.config import BEST, CLASSIC, FAST, RECIPES, HParams, Intervals
from cifar10.data import dataset
from cifar10.system.machine import Threads
from cifar10.training import Job
from tests.helpers import messages, programs


@pytest.fixture(autouse=True)
def defined():
    """The flags of training."""
    with programs.own_flags():
        training_flags.define()
        yield


def test_without_flags_the_defaults_of_the_job(data_dir):
    flags.FLAGS(['a script', '--data_dir=' + data_dir])
    assert training_job.prepare() == Job(dataset.read(data_dir), devices=['/cpu:0'])


def test_the_variables_of_one_gpu(data_dir, monkeypatch):
    training_flags.define_variable_strategy()
    found = []
    for device, args in [('/gpu:0', []), ('/gpu:0', ['cpu']), ('/cpu:0', []), ('/cpu:0', ['cpu'])]:
        monkeypatch.setattr(placement, 'tower_devices', lambda _, device=device: [device])
        flags.FLAGS(
            ['a script', '--data_dir=' + data_dir, *(f'--variable_strategy={a}' for a in args)]
        )
        job = training_job.prepare(variable_strategy=flags.FLAGS.variable_strategy)
        found += job.variable_devices
        flags.FLAGS['variable_strategy'].unparse()
    assert found == ['/gpu:0', '/cpu:0', '/cpu:0', '/cpu:0']


def test_every_flag_reaches_the_job(data_dir):
    flags.FLAGS(
        [
            'a script',
            '--data_dir=' + data_dir,
            '--dataset=synthetic',
            '--recipe=fast',
            '--batch_size=5',
            '--intra_op_threads=2',
            '--inter_op_threads=3',
            '--num_preprocess_threads=4',
            '--max_steps=6',
            '--log_frequency=7',
            '--save_summaries_steps=8',
            '--save_checkpoint_steps=9',
            '--max_to_keep=10',
            '--eval_every=12',
            '--seed=11',
            '--log_device_placement',
            '--profile_step=6',
        ]
    )
    assert training_job.prepare(6, 3, 'spread') == Job(
        dataset=dataset.read(data_dir),
        hparams=FAST._replace(batch_size=5),
        devices=[f'/cpu:{i}' for i in range(6)],
        devices_per_tower=3,
        variable_strategy='spread',
        requested_threads=Threads(intra_op=2, inter_op=3, prefetch=4),
        max_steps=6,
        intervals=Intervals(
            log_frequency=7,
            save_summaries_steps=8,
            save_checkpoint_steps=9,
            max_to_keep=10,
            eval_every=12,
            profile_step=6,
        ),
        seed=11,
        log_device_placement=True,
    )


def test_the_best_is_chosen_of_all_checkpoints_by_default(data_dir):
    for args, eval_every in [([], 9), (['--eval_every=4'], 4)]:
        flags.FLAGS(
            ['a script', f'--data_dir={data_dir}', '--keep_best', '--save_checkpoint_steps=9']
            + args
        )
        intervals = training_job.prepare().intervals
        assert (intervals.keep_best, intervals.eval_every) == (True, eval_every)


@pytest.mark.parametrize(
    'args, complaint',
    [
        (['--keep_best', '--eval_every=0'], '--keep_best needs evaluations, but --eval_every=0 '),
        (['--max_steps=6', '--profile_step=7'], '--profile_step=7 is after the last step, '),
    ],
)
def test_outputs_that_would_be_missing(args, complaint):
    flags.FLAGS(['a script'] + args)
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
        max_to_keep=5,
        devices_per_tower=1,
        variable_strategy='cpu',
    )
    assert {name: flags.FLAGS[name].value for name in defaults} == defaults


def hparams(*args, recorded=CLASSIC):
    flags.FLAGS.unparse_flags()
    flags.FLAGS(['a script'] + list(args))
    return training_flags.hparams_from_flags(recorded)


def test_a_recipe_by_name():
    assert hparams() == CLASSIC
    for recipe in RECIPES:
        assert hparams('--recipe=' + recipe) == RECIPES[recipe] and RECIPES[recipe].recipe == recipe


# values of no recipe
OTHERS = dict(
    batch_size=7,
    optimizer='momentum',
    initial_learning_rate=0.7,
    lr_scaling='linear',
    momentum=0.7,
    matrix_learning_rate=0.7,
    matrix_weight_decay=0.7,
    schedule='staircase',
    num_epochs_per_decay=7.0,
    learning_rate_decay_factor=0.7,
    warmup_epochs=0.7,
    epochs=70.0,
    fc_weight_decay=0.7,
    label_smoothing=0.7,
    moving_average_decay=0.7,
    moving_average_fraction=0.7,
    contrast=0.7,
)


def test_every_number_has_a_flag():
    assert set(OTHERS) == set(HParams._fields) - {'recipe'}
    for name, value in OTHERS.items():
        with_it = {
            'num_epochs_per_decay': {'schedule': 'staircase'},
            'learning_rate_decay_factor': {'schedule': 'staircase'},
            'moving_average_decay': {'moving_average_fraction': 0.0},
        }.get(name, {})
        given = dict(with_it, **{name: value})
        follows = {'epochs': {'warmup_epochs': 70 * 3 / 32}}.get(name, {})
        args = [f'--{field}={value}' for field, value in given.items()]
        assert hparams('--recipe=fast', *args) == FAST._replace(**given, **follows), name


@pytest.mark.parametrize(
    'args, warmup_epochs',
    [
        (['--recipe=fast', '--epochs=10'], 0.9375),
        (['--recipe=fast', '--epochs=0.3'], 0.028125),
        (['--recipe=fast', '--epochs=10', '--warmup_epochs=1.5'], 1.5),
        (['--schedule=linear', '--epochs=10'], 0),
        (['--recipe=fast', '--schedule=staircase', '--epochs=10'], 3),
    ],
)
def test_the_warm_up_is_a_share_of_the_run(args, warmup_epochs):
    assert hparams(*args).warmup_epochs == warmup_epochs


@pytest.mark.parametrize(
    'args, recorded, warmup_epochs',
    [
        (['--epochs=40'], FAST._replace(warmup_epochs=1.5, epochs=10.0), 1.5),
        (['--epochs=10', '--warmup_epochs=0.5'], FAST, 0.5),
        (['--epochs=10'], BEST, 0.9375),
        (['--schedule=staircase'], FAST._replace(warmup_epochs=1.5), 3),
        (['--epochs=10'], FAST._replace(schedule='staircase'), 0.9375),
    ],
)
def test_a_resumed_run_keeps_its_warm_up(args, recorded, warmup_epochs):
    assert hparams('--recipe=fast', *args, recorded=recorded).warmup_epochs == warmup_epochs


def test_a_resumed_run_that_would_end_within_its_warm_up():
    with messages.raises('^--epochs=2 ends .* warm-up of 3 epochs: give more --epochs, '):
        hparams('--recipe=fast', '--epochs=2', recorded=FAST)


@pytest.mark.parametrize(
    'args, complaint',
    [
        (
            ['--momentum=0.5'],
            '--momentum has no effect with --optimizer=gradient_descent: leave it out, or give '
            '--optimizer=momentum or muon',
        ),
        (
            ['--recipe=fast', '--epochs=2', '--warmup_epochs=2'],
            '.*, greater than --warmup_epochs=2',
        ),
        (['--schedule=linear'], '--schedule=linear does not work with --epochs=inf: .*'),
        (['--epochs=1e300'], '--epochs=1e.300 is too large: .*'),
        (['--moving_average_fraction=0.1'], '.*=0.1 needs a run with an end: .*'),
    ],
)
def test_flags_without_effect_or_in_conflict(args, complaint):
    with messages.raises(f'^{complaint}$'):
        hparams(*args)
