"""Flags of training and hyperparameters, and the resulting HParams."""

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
_TINY, _HUGE = 1e-9, 1e9  # prevent overflow and division by zero

_HPARAMS = {  # help, lower bound, upper bound
    'optimizer': [
        'Optimizer: gradient_descent, momentum (Nesterov) or muon (orthogonalized momentum)'
    ],
    'schedule': [
        'Learning rate schedule: staircase decays at intervals, without end; linear rises, then falls to 0'
    ],
    'lr_scaling': [
        'Scaling of the learning rates: none, or linear (factor: examples per step / batch size of the recipe)'
    ],
    'batch_size': ('Examples per tower per step', 1, 2**20),
    'initial_learning_rate': (
        'Highest learning rate; muon: only for the biases and the output layer',
        _TINY,
        _HUGE,
    ),
    'momentum': ('Momentum; only with --optimizer=momentum or muon', 0, 1 - 1e-7),
    'matrix_learning_rate': (
        "muon: highest learning rate of the hidden layers' weights. It is the root mean square of an update",
        _TINY,
        _HUGE,
    ),
    'matrix_weight_decay': (
        'muon: weight decay of the hidden layers per step, as a multiple of their learning rate',
        0,
        _HUGE,
    ),
    'num_epochs_per_decay': ('staircase: epochs between two decays', 1e-3, _HUGE),
    'learning_rate_decay_factor': ('staircase: factor of each decay', _TINY, 1),
    'warmup_epochs': (
        'linear: epochs of warm-up. --epochs without --warmup_epochs scales the default',
        0,
        _HUGE,
    ),
    'epochs': ('Epochs of the run and of the linear schedule; inf means no end', _TINY, math.inf),
    'fc_weight_decay': (
        'Factor of the weight decay in the loss, for the fully connected hidden layers',
        0,
        _HUGE,
    ),
    'label_smoothing': ('Fraction of each label that is spread evenly over all classes', 0, 1),
    'moving_average_decay': ('Decay of the moving averages, if moving_average_fraction is 0', 0, 1),
    'moving_average_fraction': (
        'If F > 0, the decay of the moving averages is 1 - 1 / (F * steps of the run)',
        0,
        1,
    ),
    'contrast': ('Contrast factors are drawn from 1 - contrast to 1 + contrast', 0, 1),
}


def define():
    """Define the flags of training on one device."""
    data_flags.define()
    define_run()
    define_recipe()
    define_threads()
    flags.DEFINE_boolean(
        'fresh', False, 'Move an existing run to TRAIN_DIR.DATE-TIME and start a new one.'
    )
    data_flags.define_integer(
        'max_to_keep',
        Intervals().max_to_keep,
        'Number of latest checkpoints to keep; 0 keeps all.',
        0,
    )
    data_flags.define_integer(
        'eval_every',
        None,
        'Steps between two evaluations on the test images; 0 disables evaluation. Default: only the '
        'last checkpoint is evaluated.',
        0,
    )
    flags.DEFINE_boolean(
        'keep_best',
        False,
        'Also keep the checkpoint with the best precision on the test images, as best.ckpt-STEP. The best of several '
        'precisions is partly luck: choose with a data set of `cifar10_dataset.py holdout`, then evaluate once on the '
        'test images. Without --eval_every, every checkpoint is evaluated.',
    )
    data_flags.define_integer(
        'profile_step',
        None,
        'Step to trace. Perfetto and chrome://tracing show TRAIN_DIR/trace-STEP.json.',
        1,
    )
    data_flags.define_integer(
        'seed',
        None,
        'Seed of initial values and distortions. The order of the examples depends on the timing of '
        'threads, unless --deterministic is given.',
        0,
    )
    flags.DEFINE_boolean(
        'deterministic',
        False,
        'Make runs of the same command on one machine equal, bit for bit. Needs --seed; CPU only.',
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
        'max_steps', MAX_STEPS, 'Last step of the run. A resumed run continues the count.', 1
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
        'Number of GPUs, one tower each. Towers share GPUs if the machine has fewer, and use CPU devices if it has none.',
        1,
        MAX_DEVICES,
    )


def define_placement():
    """Define --devices_per_tower and --variable_strategy."""
    data_flags.define_integer(
        'devices_per_tower',
        1,
        'Devices per tower (model parallelism), at most 5: one per layer. --num_gpus counts the devices of '
        'all towers.',
        1,
        MAX_DEVICES,
    )
    flags.DEFINE_enum(
        'variable_strategy',
        VARIABLE_STRATEGIES[0],
        VARIABLE_STRATEGIES,
        'Device of the variables: cpu, first_device, or spread (over all devices, balanced by bytes).',
    )


def define_variable_strategy():
    """Define --variable_strategy of the trainer on one device."""
    flags.DEFINE_enum(
        'variable_strategy',
        None,
        ['cpu', 'first_device'],
        'Device of the variables, their moving averages and the optimizer: cpu, or first_device for the '
        'device of the network. Default: first_device with a GPU, else cpu.',
    )


def define_threads():
    """Define --intra_op_threads, --inter_op_threads and --num_preprocess_threads."""
    for name, description in [
        ('intra_op_threads', 'within an operation'),
        ('inter_op_threads', 'across operations'),
        ('num_preprocess_threads', 'that fill the prefetch queue'),
    ]:
        data_flags.define_integer(name, 0, f'Threads {description}; 0 means automatic.', 0, 1024)


def check_run():
    """Raise UserError if --train_dir and --data_dir are the same directory."""
    data_flags.check_directories_differ('train_dir', 'data_dir')


def check():
    """Raise UserError if flags of `define` contradict each other or have no effect."""
    check_run()
    hparams_from_flags()
    if FLAGS.keep_best and FLAGS.eval_every == 0:
        raise UserError(
            '--keep_best needs evaluations, but --eval_every=0 disables them: leave out one flag'
        )
    if FLAGS.profile_step and FLAGS.profile_step > FLAGS.max_steps:
        raise UserError(
            f'--profile_step={FLAGS.profile_step} is after the last step, --max_steps={FLAGS.max_steps}: give an earlier step'
        )
    if not FLAGS.deterministic:
        return
    if FLAGS.seed is None:
        raise UserError('--deterministic needs a seed: add --seed=1')
    for name in ('intra_op_threads', 'num_preprocess_threads'):
        if FLAGS[name].value > 1:
            raise UserError(
                f'--{name}={FLAGS[name].value} makes the order of sums or examples random: leave it out, or leave out --deterministic'
            )


def define_recipe():
    """Define the flags of HParams, one per field."""
    flags.DEFINE_enum(
        'recipe',
        CLASSIC.recipe,
        list(RECIPES),
        'Set of hyperparameters: classic, fast or best. The flag of a hyperparameter overrides it.',
    )
    for name, (description, *bounds) in _HPARAMS.items():
        _define_hparam(name, getattr(CLASSIC, name), description + '.' + _defaults(name), *bounds)


def _define_hparam(name, default, description, lower_bound=None, upper_bound=None):
    """Define the flag of a hyperparameter, of the type of `default`."""
    if isinstance(default, str):
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
    """Return the HParams of the flags.

    Without --warmup_epochs, a resumed run of the same recipe keeps the recorded value. Another run
    scales the value of the recipe with --epochs.

    Args:
      recorded: HParams of the resumed run; CLASSIC, without warm-up, for a new run.

    Raises:
      UserError: flags contradict each other or have no effect.
    """
    given = {name: FLAGS[name].value for name in _HPARAMS if FLAGS[name].value is not None}
    recipe = RECIPES[FLAGS.recipe]
    combined = recipe._replace(**given)
    if combined.schedule_ends and 'warmup_epochs' not in given and math.isfinite(combined.epochs):
        if recorded.schedule_ends and recorded.recipe == recipe.recipe:
            combined = combined._replace(warmup_epochs=recorded.warmup_epochs)
            if combined.warmup_epochs >= combined.epochs:
                raise UserError(
                    f'--epochs={combined.epochs:g} ends the run within its recorded warm-up of {combined.warmup_epochs:g} '
                    'epochs: give more --epochs, another --warmup_epochs, or --fresh to start a new run'
                )
        else:
            share = recipe.warmup_epochs / recipe.epochs
            # removes the rounding error of 0.3 * 3 / 32
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
            f'--schedule={combined.schedule} does not work with --epochs={combined.epochs:g}: '
            f'give a finite number, greater than --warmup_epochs={combined.warmup_epochs:g}'
        )
    if combined.moving_average_fraction and math.isinf(combined.epochs):
        raise UserError(
            f'--moving_average_fraction={combined.moving_average_fraction:g} needs a run with an end: give a finite --epochs, or '
            '--moving_average_fraction=0'
        )
    return combined
