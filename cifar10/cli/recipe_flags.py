"""The flag --recipe, and one flag for each hyperparameter in a recipe."""

import math

from absl import flags

from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, LR_SCALINGS, ONLY_WITH, OPTIMIZERS, RECIPES, SCHEDULES

FLAGS = flags.FLAGS

_TINY, _HUGE = 1e-9, 1e9  # so that nothing overflows, or divides by zero

_ENUMS = {
    'optimizer': (
        OPTIMIZERS,
        "gradient_descent; momentum (Nesterov's); muon (orthogonalised momentum).",
    ),
    'schedule': (
        SCHEDULES,
        'Schedule of the learning rate: staircase never ends; linear rises, then falls to 0.',
    ),
    'lr_scaling': (
        LR_SCALINGS,
        'Scaling of the learning rates: linear multiplies them by the examples per step, divided by the '
        'batch size of the recipe.',
    ),
}
_NUMBERS = {  # with lower and upper bounds
    'batch_size': ('Examples per tower per step', 1, 2**20),
    'initial_learning_rate': (
        'The highest learning rate; with muon, that of the biases and the output layer',
        _TINY,
        _HUGE,
    ),
    'momentum': ('Momentum of the optimizers momentum and muon', 0, 1 - _TINY),
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
        'Epochs in which the linear schedule rises; with --epochs alone, the same share of the run as in the recipe',
        0,
        _HUGE,
    ),
    'epochs': (
        'The length of the run and of the linear schedule; inf means no end',
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
    """Defines --recipe and a flag for each other field of HParams."""
    flags.DEFINE_enum(
        'recipe',
        CLASSIC.recipe,
        list(RECIPES),
        'A named set of hyperparameters; the flags below override single ones.',
    )
    for name, (values, description) in _ENUMS.items():
        flags.DEFINE_enum(name, None, values, description + _defaults(name))
    for name, (description, lower, upper) in _NUMBERS.items():
        kind = (
            flags.DEFINE_integer if isinstance(getattr(CLASSIC, name), int) else flags.DEFINE_float
        )
        kind(name, None, description + '.' + _defaults(name), lower_bound=lower, upper_bound=upper)
        if kind is flags.DEFINE_float:
            flags.register_validator(
                name, lambda value: value is None or not math.isnan(value), 'is not a number'
            )


def _defaults(name):
    return ' Default: %s.' % ', '.join(
        '%s %s' % (recipe, getattr(hparams, name))
        for recipe, hparams in RECIPES.items()
        if hparams.has_effect(name)
    )


def given_hparams(recorded=None):
    """Returns the HParams that the flags set.

    Without --warmup_epochs, a new run warms up for the same share of its epochs as the recipe, and
    a resumed run keeps its warm-up.

    Args:
      recorded: the HParams of the run that is resumed; None for a new run.

    Raises:
      UserError: flags contradict each other, or have no effect.
    """
    given = {
        name: FLAGS[name].value
        for name in list(_ENUMS) + list(_NUMBERS)
        if FLAGS[name].value is not None
    }
    recipe = RECIPES[FLAGS.recipe]
    combined = recipe._replace(**given)
    if (
        combined.schedule == 'linear'
        and 'warmup_epochs' not in given
        and math.isfinite(combined.epochs)
    ):
        if recorded and recorded.has_effect('warmup_epochs') and recorded.recipe == recipe.recipe:
            combined = combined._replace(warmup_epochs=recorded.warmup_epochs)
            if combined.warmup_epochs >= combined.epochs:
                raise UserError(
                    '--epochs=%g ends the run within its warm-up, recorded as %g epochs: give more --epochs, another '
                    '--warmup_epochs, or --fresh to start a new run'
                    % (combined.epochs, combined.warmup_epochs)
                )
        else:
            share = recipe.warmup_epochs / recipe.epochs
            # 0.3 * 3 / 32 has a rounding error.
            combined = combined._replace(warmup_epochs=round(share * combined.epochs, 9))
    for name in given:
        if not combined.has_effect(name):
            condition, values = ONLY_WITH[name]
            raise UserError(
                '--%s has no effect with --%s=%s: leave it out, or give --%s=%s'
                % (
                    name,
                    condition,
                    getattr(combined, condition),
                    condition,
                    ' or '.join(map(str, values)),
                )
            )
    if _HUGE < combined.epochs < math.inf:
        raise UserError(
            '--epochs=%g is too large: give inf for a run without end' % combined.epochs
        )
    if combined.schedule == 'linear' and not combined.warmup_epochs < combined.epochs < math.inf:
        raise UserError(
            '--schedule=linear needs an end after its warm-up, not --epochs=%g: give a finite number, greater than '
            '--warmup_epochs=%g' % (combined.epochs, combined.warmup_epochs)
        )
    if combined.moving_average_fraction and math.isinf(combined.epochs):
        raise UserError(
            '--moving_average_fraction=%g needs a run that has an end: give a finite --epochs, or '
            '--moving_average_fraction=0' % combined.moving_average_fraction
        )
    return combined
