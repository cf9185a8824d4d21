"""The flags of training, with one for each hyperparameter of a recipe."""

import math

from absl import flags

from cifar10.cli import data_flags
from cifar10.config import (
    CHOICES,
    CLASSIC,
    CONDITIONAL_HPARAMS,
    MAX_STEPS,
    RECIPES,
    VARIABLE_STRATEGIES,
    Intervals,
)
from cifar10.errors import UserError
from cifar10.system import directories

FLAGS = flags.FLAGS

MAX_DEVICES = 64
_TINY, _HUGE = 1e-9, 1e9  # so that nothing overflows, or divides by zero

_HPARAMS = {  # descriptions, and the lower and upper bounds of numbers
    'optimizer': ["gradient_descent; momentum (Nesterov's); muon (orthogonalised momentum)"],
    'schedule': [
        'Schedule of the learning rate: staircase never ends; linear rises, then falls to 0'
    ],
    'lr_scaling': [
        'Scaling of the learning rates: linear multiplies them by the examples per step, divided by the '
        'batch size of the recipe'
    ],
    'batch_size': ('Examples per tower per step', 1, 2**20),
    'initial_learning_rate': (
        'The highest learning rate; with muon, that of the biases and the output layer',
        _TINY,
        _HUGE,
    ),
    'momentum': ('Momentum of the optimizers momentum and muon', 0, 1 - 1e-7),
    'matrix_learning_rate': (
        "With muon, the highest learning rate of the hidden layers' weights: the root mean square of an update's "
        'elements',
        _TINY,
        _HUGE,
    ),
    'matrix_weight_decay': (
        "With muon, the hidden layers' weights shrink in each step by this times matrix_learning_rate",
        0,
        _HUGE,
    ),
    'num_epochs_per_decay': ('Epochs between two decays of the staircase', 1e-3, _HUGE),
    'learning_rate_decay_factor': ('The factor of each decay of the staircase', _TINY, 1),
    'warmup_epochs': (
        'Epochs in which the learning rate rises; with --epochs alone, the same share of the run as in the recipe',
        0,
        _HUGE,
    ),
    'epochs': (
        'The length of the run and of a schedule that ends; inf means no end',
        _TINY,
        math.inf,
    ),
    'fc_weight_decay': ('Weight decay of the fully connected hidden layers, in the loss', 0, _HUGE),
    'label_smoothing': ('The part of each label that is spread evenly over all classes', 0, 1),
    'moving_average_decay': ('Decay of the moving averages, if moving_average_fraction is 0', 0, 1),
    'moving_average_fraction': (
        'If not 0, the decay of the moving averages is 1 - 1 / (this * steps of the run)',
        0,
        1,
    ),
    'contrast': ('The greatest distance of the contrast factor from 1', 0, 1),
}


def define():
    """Define the flags of the training scripts, except --num_gpus."""
    data_flags.define()
    define_run()
    define_recipe()
    define_threads()
    flags.DEFINE_boolean(
        'fresh', False, 'Move an existing run in --train_dir aside and start a new one.'
    )
    data_flags.define_integer(
        'max_to_keep',
        Intervals().max_to_keep,
        'Checkpoints to keep, the latest ones; 0 keeps all.',
        0,
    )
    data_flags.define_integer(
        'eval_every',
        None,
        'Steps between two evaluations on the test images. By default only the last checkpoint '
        'is evaluated; with 0, not even that.',
        0,
    )
    flags.DEFINE_boolean(
        'keep_best',
        False,
        'Keep the checkpoint of the best precision too, as best.ckpt-STEP; evaluates every '
        '--save_checkpoint_steps unless --eval_every is given.',
    )
    data_flags.define_integer(
        'profile_step',
        None,
        'Trace this step: Perfetto and chrome://tracing open trace-N.json in --train_dir.',
        1,
    )
    data_flags.define_integer(
        'seed',
        None,
        'Seed of initial values and distortions. The order of the images still depends on the '
        'timing of threads, unless --deterministic is given.',
        0,
    )
    flags.DEFINE_boolean(
        'deterministic',
        False,
        'Let --seed fix everything: two runs on one machine give the same weights, bit for '
        'bit. Only without GPUs.',
    )
    flags.DEFINE_boolean('log_device_placement', False, 'Print the device of every operation.')


def define_run():
    """Define --train_dir, --max_steps and the intervals."""
    data_flags.define_directory(
        'train_dir',
        '/tmp/cifar10_train',
        'Directory of checkpoints and summaries; an existing run is resumed.',
        directories.check_checkpoint_dir,
    )
    intervals = Intervals()
    data_flags.define_integer(
        'max_steps', MAX_STEPS, 'End the run at this step; the steps of earlier starts count.', 1
    )
    for name, description in [
        ('log_frequency', 'log lines'),
        ('save_summaries_steps', 'summaries'),
        ('save_checkpoint_steps', 'checkpoints'),
    ]:
        data_flags.define_integer(
            name, getattr(intervals, name), f'Steps between two {description}.', 1
        )


def define_batch_size():
    """Define --batch_size, for scripts without --recipe."""
    data_flags.define_integer(
        'batch_size', CLASSIC.batch_size, 'Examples per tower per step.', 1, 2**20
    )


def define_num_gpus():
    """Define --num_gpus."""
    data_flags.define_integer(
        'num_gpus',
        1,
        'Number of towers; each has a GPU of its own if there are enough.',
        1,
        MAX_DEVICES,
    )


def define_placement():
    """Define --devices_per_tower and --variable_strategy."""
    data_flags.define_integer(
        'devices_per_tower',
        1,
        'Devices over which the layers of each tower '
        'are divided; --num_gpus then is the number of devices, and a multiple of this.',
        1,
        MAX_DEVICES,
    )
    flags.DEFINE_enum(
        'variable_strategy',
        VARIABLE_STRATEGIES[0],
        VARIABLE_STRATEGIES,
        'Where the variables live: on the CPU, on the first device, or spread over all devices, balanced by bytes.',
    )


def define_threads():
    """Define --intra_op_threads, --inter_op_threads and --num_preprocess_threads."""
    for name, description in [
        ('intra_op_threads', 'that share one operation'),
        ('inter_op_threads', 'for operations that run in parallel'),
        ('num_preprocess_threads', 'that fill the prefetch queue'),
    ]:
        data_flags.define_integer(
            name, 0, f'Threads {description}; 0 chooses by the number of cores.', 0, 1024
        )


def check_run():
    """Raise UserError if the flags of `define_run` contradict those of the data."""
    data_flags.check_directories_differ('train_dir', 'data_dir')


def check():
    """Raise UserError if the flags of `define` contradict each other, or have no effect."""
    check_run()
    hparams_from_flags()
    if FLAGS.keep_best and FLAGS.eval_every == 0:
        raise UserError(
            '--keep_best needs evaluations, and --eval_every=0 makes none: leave out one of them'
        )
    if FLAGS.profile_step and FLAGS.profile_step > FLAGS.max_steps:
        raise UserError(
            f'--profile_step={FLAGS.profile_step} is after the end of the run, --max_steps={FLAGS.max_steps}: give a step up to that'
        )
    if not FLAGS.deterministic:
        return
    if FLAGS.seed is None:
        raise UserError('--deterministic needs a seed: give --seed=1, say')
    for name in ('intra_op_threads', 'num_preprocess_threads'):
        if FLAGS[name].value > 1:
            raise UserError(
                f'--{name}={FLAGS[name].value} leaves the order of sums, or of images, to chance: leave it out with --deterministic'
            )


def define_recipe():
    """Define --recipe and a flag for each other field of HParams."""
    flags.DEFINE_enum(
        'recipe',
        CLASSIC.recipe,
        list(RECIPES),
        'A named set of hyperparameters; the flags below override single ones.',
    )
    for name, (description, *bounds) in _HPARAMS.items():
        _define_hparam(name, getattr(CLASSIC, name), description + '.' + _defaults(name), *bounds)


def _define_hparam(name, default, description, lower_bound=None, upper_bound=None):
    """Define the flag of a hyperparameter, with the type of its default value."""
    if isinstance(default, bool):
        flags.DEFINE_boolean(name, None, description)
    elif isinstance(default, str):
        flags.DEFINE_enum(name, None, CHOICES[name], description)
    else:
        define = flags.DEFINE_integer if isinstance(default, int) else flags.DEFINE_float
        define(name, None, description, lower_bound=lower_bound, upper_bound=upper_bound)
        flags.register_validator(
            name, lambda value: value is None or not math.isnan(value), 'is not a number'
        )


def _defaults(name):
    defaults = ', '.join(
        f'{recipe} {getattr(hparams, name)}'
        for recipe, hparams in RECIPES.items()
        if hparams.has_effect(name)
    )
    return f' Default: {defaults}.'


def hparams_from_flags(recorded=CLASSIC):
    """Return the HParams that the flags set.

    Without --warmup_epochs, a new run warms up for the same share of its epochs as the recipe, and
    a resumed run keeps its warm-up.

    Args:
      recorded: of the run that is resumed; CLASSIC, which has no warm-up, for a new run.

    Raises:
      UserError: flags contradict each other, or have no effect.
    """
    given = {name: FLAGS[name].value for name in _HPARAMS if FLAGS[name].value is not None}
    recipe = RECIPES[FLAGS.recipe]
    combined = recipe._replace(**given)
    if combined.schedule_ends and 'warmup_epochs' not in given and math.isfinite(combined.epochs):
        if recorded.schedule_ends and recorded.recipe == recipe.recipe:
            combined = combined._replace(warmup_epochs=recorded.warmup_epochs)
            if combined.warmup_epochs >= combined.epochs:
                raise UserError(
                    f'--epochs={combined.epochs:g} ends the run within its warm-up, recorded as {combined.warmup_epochs:g} '
                    'epochs: give more --epochs, another --warmup_epochs, or --fresh to start a new run'
                )
        else:
            share = recipe.warmup_epochs / recipe.epochs
            # 0.3 * 3 / 32 has a rounding error.
            combined = combined._replace(warmup_epochs=round(share * combined.epochs, 9))
    for name in given:
        if not combined.has_effect(name):
            condition, values = CONDITIONAL_HPARAMS[name]
            raise UserError(
                f'--{name} has no effect with --{condition}={getattr(combined, condition)}: leave it out, or give '
                f'--{condition}={" or ".join(map(str, values))}'
            )
    if _HUGE < combined.epochs < math.inf:
        raise UserError(
            f'--epochs={combined.epochs:g} is too large: give inf for a run without end'
        )
    if combined.schedule_ends and not combined.warmup_epochs < combined.epochs < math.inf:
        raise UserError(
            f'--schedule={combined.schedule} needs an end after its warm-up, not --epochs={combined.epochs:g}: '
            f'give a finite number, greater than --warmup_epochs={combined.warmup_epochs:g}'
        )
    if combined.moving_average_fraction and math.isinf(combined.epochs):
        raise UserError(
            f'--moving_average_fraction={combined.moving_average_fraction:g} needs a run that has an end: give a finite --epochs, or '
            '--moving_average_fraction=0'
        )
    return combined
