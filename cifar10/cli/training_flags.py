"""Flags of training and hyperparameters, and the resulting HParams and RunSettings."""

import dataclasses
import math
import os
from typing import Optional

from absl import flags

from cifar10 import networks
from cifar10.cli import data_flags
from cifar10.config import CLASSIC, HPARAMS, RECIPES, VARIABLE_STRATEGIES, RunSettings
from cifar10.errors import UserError
from cifar10.runs import run_record
from cifar10.system import directories

FLAGS = flags.FLAGS

MAX_DEVICES = 64
_HPARAMS = {name: field for name, field in HPARAMS.items() if field.metadata['help']}
_SETTINGS = {field.name: field for field in dataclasses.fields(RunSettings) if field.metadata}


def define_one_tower():
    """Define the flags of cifar10_train.py."""
    define()
    define_variable_strategy()


def define_towers():
    """Define the flags of cifar10_multi_gpu_train.py."""
    define_one_tower()
    define_num_gpus()


def define():
    """Define the flags that all trainers have."""
    data_flags.define()
    data_flags.define_network(networks.DEFAULT)
    data_flags.define_checkpoint_dir(
        'train_dir',
        'Directory of checkpoints and summaries; an existing run is resumed.',
        '--init_checkpoint takes a checkpoint',
    )
    define_hparams()
    data_flags.define_path(
        'init_checkpoint',
        None,
        'Start a new run from the weights in this checkpoint, or in the newest one of this directory: all '
        'variables of the network whose shapes fit. A resumed run ignores the flag.',
        directories.check_no_wildcards,
    )
    flags.DEFINE_boolean(
        'fresh', False, 'Move an existing run to TRAIN_DIR.DATE-TIME and start a new one.'
    )
    define_settings(_SETTINGS)


def define_settings(names):
    """Define the flags of fields of RunSettings."""
    for name in names:
        _define(_SETTINGS[name], _SETTINGS[name].default, '')


def define_hparams():
    """Define the flags of HParams. Without a flag, the recipe decides."""
    for name, field in _HPARAMS.items():
        if name == 'recipe':
            _define(field, field.default, '')
        else:
            _define(field, None, _condition(field) + _defaults(name))


def define_hparam(name):
    """Define the flag of a hyperparameter, for scripts without --recipe."""
    _define(HPARAMS[name], getattr(CLASSIC, name), '')


def _define(field, default, appendix):
    """Define the flag of a field of HParams or RunSettings; `appendix` is the end of its help."""
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


def _condition(field):
    """Return the part of the help about the hyperparameter that gives this one an effect."""
    if field.metadata['only_with'] is None:
        return ''
    flag, values = _flag_with_effect(field)
    return f' Only with --{flag}={_alternatives(values)}.'


def _flag_with_effect(field):
    """Return the flag, and its values, that give a hyperparameter an effect."""
    other, values = field.metadata['only_with']
    if other in _HPARAMS:
        return other, values
    return 'recipe', [name for name, recipe in RECIPES.items() if recipe.has_effect(field.name)]


def _alternatives(values):
    return ' or '.join([', '.join(values[:-1])] * (len(values) > 1) + values[-1:])


def _defaults(name):
    defaults = ', '.join(
        f'{recipe} {getattr(hparams, name)}'
        for recipe, hparams in RECIPES.items()
        if hparams.has_effect(name)
    )
    return f' Default: {defaults}.'


def define_num_gpus():
    """Define --num_gpus."""
    flags.DEFINE_integer(
        'num_gpus',
        1,
        'Number of GPUs, one tower each. Towers share GPUs if the machine has fewer, and use CPU devices if it has none.',
        1,
        MAX_DEVICES,
    )


def define_variable_strategy(default=None):
    """Define --variable_strategy. Without a default, it depends on the devices."""
    flags.DEFINE_enum(
        'variable_strategy',
        default,
        VARIABLE_STRATEGIES,
        'Device of the variables, their moving averages and the optimizer: cpu (as in the books), or first_device, the '
        'first device of the network.'
        + ('' if default else ' Default: first_device with a GPU, else cpu.'),
    )


def check():
    """Raise UserError if flags of `define` contradict each other or have no effect."""
    if os.path.realpath(FLAGS.train_dir) == os.path.realpath(data_flags.data_dir(FLAGS.dataset)):
        raise UserError('--train_dir is also --data_dir, and --fresh would move it: give another')
    hparams_from_flags(CLASSIC if FLAGS.fresh else run_record.read(FLAGS.train_dir).hparams)
    if FLAGS.deterministic and FLAGS.seed is None:
        raise UserError('--deterministic needs a seed: add --seed=1')


def settings_from_flags():
    """Return the RunSettings of the flags; a script may lack some of them."""
    return RunSettings(**{name: FLAGS[name].value for name in _SETTINGS if name in FLAGS})


def hparams_from_flags(recorded):
    """Return the HParams of the flags.

    A resumed run of the same recipe keeps the recorded values of the fields without a flag, except
    the warm-up, which scales with --epochs. Another run has those of the recipe.

    Args:
      recorded: HParams of the resumed run; CLASSIC for a new run.

    Raises:
      UserError: flags contradict each other or have no effect.
    """
    given = {name: FLAGS[name].value for name in _HPARAMS if FLAGS[name].value is not None}
    recipe = RECIPES[given.pop('recipe')]
    kept = recorded if recorded.recipe == recipe.recipe else recipe
    without_flags = {name: getattr(kept, name) for name in HPARAMS if name not in _HPARAMS}
    combined = dataclasses.replace(recipe, **without_flags, **given)
    if combined.schedule_ends and math.isfinite(combined.epochs):
        share = recipe.warmup_epochs / recipe.epochs
        # removes the rounding error of 0.7 * 2 / 25
        warmup = round(share * combined.epochs, 9)
        combined = dataclasses.replace(combined, warmup_epochs=warmup)
    for name in given:
        if not combined.has_effect(name):
            flag, values = _flag_with_effect(HPARAMS[name])
            raise UserError(
                f'--{name} has no effect with --{flag}={getattr(combined, flag)}: '
                f'leave it out, or give --{flag}={_alternatives(values)}'
            )
    if math.isinf(combined.epochs) and (combined.schedule_ends or combined.moving_average_fraction):
        flag = 'schedule' if combined.schedule_ends else 'recipe'
        raise UserError(
            f'--{flag}={getattr(combined, flag)} does not work with --epochs=inf: '
            'give a finite number'
        )
    return combined
