"""Flags of training and hyperparameters, and the resulting HParams and RunSettings."""

import dataclasses
import math
from typing import Optional

from absl import flags

from cifar10.cli import data_flags
from cifar10.config import CLASSIC, HPARAMS, RECIPES, VARIABLE_STRATEGIES, RunSettings
from cifar10.errors import UserError
from cifar10.system import directories

FLAGS = flags.FLAGS

MAX_DEVICES = 64
_LARGEST_FINITE = 1e9  # prevents overflow
_SETTINGS = {field.name: field for field in dataclasses.fields(RunSettings) if field.metadata}
_THREADS = ['intra_op_threads', 'inter_op_threads']


def define_one_tower():
    """Define the flags of cifar10_train.py."""
    define()
    define_variable_strategy(['cpu', 'first_device'])


def define_towers():
    """Define the flags of cifar10_multi_gpu_train.py."""
    define()
    define_num_gpus()
    define_placement()


def define():
    """Define the flags that all trainers have."""
    data_flags.define()
    data_flags.define_directory(
        'train_dir',
        '/tmp/cifar10_train',
        'Directory of checkpoints and summaries; an existing run is resumed.',
        directories.check_checkpoint_dir,
    )
    define_hparams()
    define_threads()
    data_flags.define_directory(
        'init_checkpoint',
        None,
        'Start a new run from the weights in this checkpoint, or in the newest one of this directory: all '
        'variables of the network whose shapes fit. A resumed run ignores the flag.',
        directories.check_no_wildcards,
    )
    flags.DEFINE_boolean(
        'fresh', False, 'Move an existing run to TRAIN_DIR.DATE-TIME and start a new one.'
    )
    for name in _SETTINGS:
        if name not in FLAGS:
            _define_setting(name)


def define_threads():
    """Define --intra_op_threads and --inter_op_threads."""
    for name in _THREADS:
        _define_setting(name)


def define_hparams():
    """Define the flags of HParams. Without a flag, the recipe decides."""
    for name, field in HPARAMS.items():
        if name == 'recipe':
            _define(field, field.default, '')
        else:
            _define(field, None, _condition(field) + _defaults(name))


def define_hparam(name):
    """Define the flag of a hyperparameter, for scripts without --recipe."""
    _define(HPARAMS[name], getattr(CLASSIC, name), '')


def _define_setting(name):
    field = _SETTINGS[name]
    _define(field, field.default, '')


def _define(field, default, appendix):
    """Define the flag of a field of HParams or RunSettings.

    Args:
      field: the field.
      default: the default of the flag.
      appendix: the end of the help.
    """
    name, metadata = field.name, field.metadata
    description = f'{metadata["help"]}.{appendix}'
    if field.type is bool:
        flags.DEFINE_boolean(name, default, description)
    elif field.type is str:
        flags.DEFINE_enum(name, default, metadata['choices'], description)
    else:
        is_int = field.type in (int, Optional[int])
        define_number = flags.DEFINE_integer if is_int else flags.DEFINE_float
        bounds = {'lower_bound': metadata['low'], 'upper_bound': metadata['high']}
        define_number(name, default, description, **bounds)
        if metadata['high'] == math.inf:
            hint = f'must be a number up to {_LARGEST_FINITE:g}, or inf for no limit'
            flags.register_validator(name, _is_valid_limit, hint)
        else:
            flags.register_validator(
                name, lambda value: value is None or not math.isnan(value), 'is not a number'
            )


def _is_valid_limit(value):
    """Return False for NaN, and for a large finite number."""
    return value is None or value <= _LARGEST_FINITE or value == math.inf


def _condition(field):
    """Return the part of the help about the hyperparameter that gives this one an effect."""
    if field.metadata['only_with'] is None:
        return ''
    other, values = field.metadata['only_with']
    return f' Only with --{other}={_alternatives(values)}.'


def _alternatives(values):
    texts = [f'{value:g}' if isinstance(value, float) else value for value in values]
    return ' or '.join([', '.join(texts[:-1])] * (len(texts) > 1) + texts[-1:])


def _defaults(name):
    defaults = ', '.join(
        f'{recipe} {getattr(hparams, name)}'
        for recipe, hparams in RECIPES.items()
        if hparams.has_effect(name)
    )
    return f' Default: {defaults}.'


def define_num_gpus():
    """Define --num_gpus."""
    data_flags.define_integer(
        'num_gpus',
        1,
        'Number of GPUs, one tower each. Towers share GPUs if the machine has fewer, and use CPU devices if it has none.',
        1,
        MAX_DEVICES,
    )


def define_placement(variable_strategy=None):
    """Define --devices_per_tower and, with a default or None, --variable_strategy."""
    data_flags.define_integer(
        'devices_per_tower',
        1,
        'Devices per tower (model parallelism), at most 5: one per layer. --num_gpus counts the devices of '
        'all towers.',
        1,
        MAX_DEVICES,
    )
    define_variable_strategy(VARIABLE_STRATEGIES, variable_strategy)


def define_variable_strategy(choices, default=None):
    """Define --variable_strategy. Without a default, it depends on the devices."""
    spread = ', or spread over all devices, balanced by bytes' if 'spread' in choices else ''
    flags.DEFINE_enum(
        'variable_strategy',
        default,
        choices,
        'Device of the variables, their moving averages and the optimizer: cpu (as in the books), or first_device, the '
        f'first device of the network{spread}.'
        + ('' if default else ' Default: first_device with a GPU, else cpu.'),
    )


def check():
    """Raise UserError if flags of `define` contradict each other or have no effect."""
    data_flags.check_directories_differ('train_dir', 'data_dir')
    if FLAGS.init_checkpoint:
        data_flags.check_directories_differ('train_dir', 'init_checkpoint')
    hparams_from_flags()
    for name in ('keep_best', 'target_precision'):
        if FLAGS[name].value and FLAGS.eval_every == 0:
            raise UserError(
                f'--{name} needs evaluations, but --eval_every=0 disables them',
                'leave out one flag',
            )
    if FLAGS.profile_step and FLAGS.profile_step > FLAGS.max_steps:
        raise UserError(
            f'--profile_step={FLAGS.profile_step} is after the last step, --max_steps={FLAGS.max_steps}',
            'give an earlier step',
        )
    if not FLAGS.deterministic:
        return
    if FLAGS.seed is None:
        raise UserError('--deterministic needs a seed', 'add --seed=1')
    if FLAGS.intra_op_threads > 1:
        raise UserError(
            f'--intra_op_threads={FLAGS.intra_op_threads} makes the order of sums random',
            'leave it out, or leave out --deterministic',
        )


def settings_from_flags():
    """Return the RunSettings of the flags; a script may lack some of them."""
    values = {name: FLAGS[name].value for name in _SETTINGS if name in FLAGS}
    evaluates = values.get('keep_best') or values.get('target_precision')
    if evaluates and values['eval_every'] is None:
        values['eval_every'] = values['save_checkpoint_steps']
    return RunSettings(**values)


def hparams_from_flags(recorded=CLASSIC):
    """Return the HParams of the flags.

    Without --warmup_epochs, a resumed run of the same recipe keeps the recorded value. Another run
    scales the value of the recipe with --epochs.

    Args:
      recorded: HParams of the resumed run; CLASSIC, without warm-up, for a new run.

    Raises:
      UserError: flags contradict each other or have no effect.
    """
    given = {name: FLAGS[name].value for name in HPARAMS if FLAGS[name].value is not None}
    recipe = RECIPES[given.pop('recipe')]
    combined = dataclasses.replace(recipe, **given)
    if combined.schedule_ends and 'warmup_epochs' not in given and math.isfinite(combined.epochs):
        combined = _with_warmup(combined, recorded)
    for name in given:
        if not combined.has_effect(name):
            other, values = HPARAMS[name].metadata['only_with']
            raise UserError(
                f'--{name} has no effect with --{other}={getattr(combined, other)}',
                f'leave it out, or give --{other}={_alternatives(values)}',
            )
    if combined.schedule_ends and not combined.warmup_epochs < combined.epochs < math.inf:
        raise UserError(
            f'--schedule={combined.schedule} does not work with --epochs={combined.epochs:g}',
            f'give a finite number, greater than --warmup_epochs={combined.warmup_epochs:g}',
        )
    if combined.moving_average_fraction and math.isinf(combined.epochs):
        raise UserError(
            f'--moving_average_fraction={combined.moving_average_fraction:g} needs a run with an end',
            'give a finite --epochs, or --moving_average_fraction=0',
        )
    return combined


def _with_warmup(hparams, recorded):
    """Return HParams with the warm-up of the resumed run, or a share of `epochs`."""
    recipe = RECIPES[hparams.recipe]
    if not (recorded.schedule_ends and recorded.recipe == hparams.recipe):
        share = recipe.warmup_epochs / recipe.epochs
        # removes the rounding error of 0.7 * 2 / 25
        return dataclasses.replace(hparams, warmup_epochs=round(share * hparams.epochs, 9))
    if recorded.warmup_epochs >= hparams.epochs:
        raise UserError(
            f'--epochs={hparams.epochs:g} ends the run within its recorded warm-up of {recorded.warmup_epochs:g} epochs',
            'give more --epochs, another --warmup_epochs, or --fresh to start a new run',
        )
    return dataclasses.replace(hparams, warmup_epochs=recorded.warmup_epochs)
