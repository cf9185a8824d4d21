"""The flags --recipe and one for each number in a recipe."""
import math

from absl import flags

from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, HParams, LR_SCALINGS, ONLY_WITH, OPTIMIZERS, RECIPES, SCHEDULES

FLAGS = flags.FLAGS

_TINY, _HUGE = 1e-9, 1e9  # so that nothing overflows, or divides by zero

_ENUMS = {
    'optimizer': (OPTIMIZERS, "Gradient descent; momentum is Nesterov's; muon is momentum made orthogonal."),
    'schedule': (SCHEDULES, 'Of the learning rate: a staircase without end; linear up, then down to 0.'),
    'lr_scaling': (LR_SCALINGS, 'Of the learning rates, where a step takes other than the batch size of the recipe: linear '
                                'multiplies them by the ratio.'),
}
_NUMBERS = {  # with the lower and the upper bound
    'batch_size': ('Examples a tower and step', 1, 2 ** 20),
    'initial_learning_rate': ('The highest learning rate; under muon, that of biases and output layer', _TINY, _HUGE),
    'momentum': ('Of the optimizers momentum and muon', 0, 1 - _TINY),
    'matrix_learning_rate': ("The highest one of muon for hidden layers' weights, the root mean square of an update's elements",
                             _TINY, _HUGE),
    'matrix_weight_decay': ('By which, times matrix_learning_rate, these weights shrink in a step', 0, _HUGE),
    'num_epochs_per_decay': ('Epochs between two steps of the staircase', 1e-3, _HUGE),
    'learning_rate_decay_factor': ('Of a step of the staircase', _TINY, 1),
    'warmup_epochs': ('Epochs in which the linear schedule rises', 0, _HUGE),
    'epochs': ('The length of the run, and of the linear schedule; inf for no end', _TINY, math.inf),
    'fc_weight_decay': ('Of the weights of fully connected hidden layers, in the loss', 0, _HUGE),
    'label_smoothing': ('The part of a label that is spread evenly over all classes', 0, 1),
    'moving_average_decay': ('Of the moving averages, where moving_average_fraction is 0', 0, 1),
    'moving_average_fraction': ('The part of the run over which the moving averages reach back', 0, 1),
    'contrast': ('How far the contrast factor may lie from 1', 0, 1),
}


def define():
    """Defines --recipe and a flag for each field of HParams."""
    flags.DEFINE_enum('recipe', CLASSIC.recipe, list(RECIPES), 'Chooses the values "by the recipe" of the flags that say so.')
    for name, (values, description) in _ENUMS.items():
        flags.DEFINE_enum(name, None, values, description + _by_recipe(name))
    for name, (description, lower, upper) in _NUMBERS.items():
        kind = flags.DEFINE_integer if HParams.__annotations__[name] is int else flags.DEFINE_float
        kind(name, None, description + '.' + _by_recipe(name), lower_bound=lower, upper_bound=upper)
        if kind is flags.DEFINE_float:
            flags.register_validator(name, lambda value: value is None or not math.isnan(value), 'is not a number')


def _by_recipe(name):
    return ' By the recipe: %s.' % ', '.join(
        '%s %s' % (recipe, getattr(numbers, name)) for recipe, numbers in RECIPES.items() if numbers.has_effect(name))


def hparams():
    """The HParams that the flags set.

    Raises:
      UserError: some of them contradict each other, or have no effect.
    """
    given = {name: FLAGS[name].value for name in list(_ENUMS) + list(_NUMBERS) if FLAGS[name].value is not None}
    chosen = RECIPES[FLAGS.recipe]._replace(**given)
    for name in given:
        if not chosen.has_effect(name):
            condition, values = ONLY_WITH[name]
            raise UserError('--%s has no effect with --%s=%s: leave it out, or give --%s=%s' % (
                name, condition, getattr(chosen, condition), condition, ' or '.join(map(str, values))))
    if _HUGE < chosen.epochs < math.inf:
        raise UserError('--epochs=%g is too many to count: give inf for a run without end' % chosen.epochs)
    if chosen.schedule == 'linear' and not chosen.warmup_epochs < chosen.epochs < math.inf:
        raise UserError('--schedule=linear needs an end after its warm-up, not --epochs=%g: give a finite one, greater than '
                        '--warmup_epochs=%g' % (chosen.epochs, chosen.warmup_epochs))
    if chosen.moving_average_fraction and math.isinf(chosen.epochs):
        raise UserError('--moving_average_fraction=%g is of a run that has an end: give a finite --epochs, or '
                        '--moving_average_fraction=0' % chosen.moving_average_fraction)
    return chosen
