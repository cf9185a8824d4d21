"""Hyperparameters, recipes, run length and intervals of a run.

This module does not import TensorFlow, because flags are parsed before that slow import.
"""

import math
from typing import NamedTuple, Optional

OPTIMIZERS = ['gradient_descent', 'momentum', 'muon']
SCHEDULES = ['staircase', 'linear']
LR_SCALINGS = ['none', 'linear']
VARIABLE_STRATEGIES = ['cpu', 'first_device', 'spread']  # placement of the variables
NUM_VIEWS_CHOICES = [1, 2, 10]  # views per evaluated image
MAX_STEPS = 1000000
CONDITIONAL_HPARAMS = {  # hyperparameter: (parent hyperparameter, enabling parent values)
    'momentum': ('optimizer', ['momentum', 'muon']),
    'matrix_learning_rate': ('optimizer', ['muon']),
    'matrix_weight_decay': ('optimizer', ['muon']),
    'num_epochs_per_decay': ('schedule', ['staircase']),
    'learning_rate_decay_factor': ('schedule', ['staircase']),
    'warmup_epochs': ('schedule', ['linear']),
    'moving_average_decay': ('moving_average_fraction', [0.0]),
}


class HParams(NamedTuple):
    """Hyperparameters of a run. The defaults are those of the TensorFlow CIFAR-10 tutorial."""

    recipe: str = 'classic'
    batch_size: int = 128  # examples per tower per step
    optimizer: str = 'gradient_descent'  # or momentum (Nesterov), or muon
    initial_learning_rate: float = 0.1
    # linear: the rate is multiplied by examples per step / batch size of the recipe
    lr_scaling: str = 'none'
    momentum: float = 0.9  # of momentum and muon
    # muon: root mean square of the update of hidden weights, at initial_learning_rate
    matrix_learning_rate: float = 6e-4
    # muon: a step multiplies these weights by 1 - matrix_weight_decay * matrix_learning_rate
    matrix_weight_decay: float = 0.75
    schedule: str = 'staircase'  # or linear: warm-up, then linear decay to 0
    num_epochs_per_decay: float = 350.0
    learning_rate_decay_factor: float = 0.1
    warmup_epochs: float = 0.0
    epochs: float = math.inf  # length of the run and of the linear schedule
    # factor of l2_loss(weights) in the loss, for the fully connected hidden layers
    fc_weight_decay: float = 0.004
    label_smoothing: float = 0.0
    moving_average_decay: float = 0.9999
    # unless 0, the decay is 1 - 1 / (moving_average_fraction * steps of the run)
    moving_average_fraction: float = 0.0
    contrast: float = 0.8  # contrast factors are drawn from 1 - contrast to 1 + contrast

    def has_effect(self, name):
        """Return True if the other hyperparameters let `name` have an effect."""
        other, values = CONDITIONAL_HPARAMS.get(name, (None, None))
        return other is None or getattr(self, other) in values

    @property
    def schedule_ends(self):
        """True if the learning rate falls to 0 at the end of `epochs`."""
        return self.has_effect('warmup_epochs')

    @property
    def is_epoch_based(self):
        """True if the learning rate or the end of the run depends on the examples per epoch."""
        return (
            self.schedule_ends or self.learning_rate_decay_factor != 1 or math.isfinite(self.epochs)
        )


CLASSIC = HParams()
FAST = HParams(
    recipe='fast',
    optimizer='muon',
    initial_learning_rate=0.05,
    schedule='linear',
    warmup_epochs=3.0,
    epochs=32.0,
    fc_weight_decay=0.0,
    label_smoothing=0.1,
    moving_average_fraction=0.02,
    contrast=0.0,
)
BEST = FAST._replace(recipe='best', matrix_weight_decay=1.5, warmup_epochs=5.0, epochs=100.0)
RECIPES = {recipe.recipe: recipe for recipe in (CLASSIC, FAST, BEST)}
CHOICES = {  # values of the enum hyperparameters
    'recipe': list(RECIPES),
    'optimizer': OPTIMIZERS,
    'schedule': SCHEDULES,
    'lr_scaling': LR_SCALINGS,
}

# CIFAR-10
HEIGHT = WIDTH = 32  # pixels
DEPTH = 3  # red, green, blue
NUM_CLASSES = 10
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 50000
NUM_EXAMPLES_PER_EPOCH_FOR_EVAL = 10000

# The hyperparameters of `classic` under their names in books
MOVING_AVERAGE_DECAY = CLASSIC.moving_average_decay
NUM_EPOCHS_PER_DECAY = CLASSIC.num_epochs_per_decay
LEARNING_RATE_DECAY_FACTOR = CLASSIC.learning_rate_decay_factor
INITIAL_LEARNING_RATE = CLASSIC.initial_learning_rate


class RunLength(NamedTuple):
    """Examples per step and per epoch, and the last step."""

    examples_per_step: int  # of all towers
    examples_per_epoch: int
    last_step: float = math.inf
    steps_per_execution: int = 1  # per session.run of the train op

    def epoch_at(self, step):
        """Return the number of epochs (a float) in `step` steps."""
        return step * (self.examples_per_step / self.examples_per_epoch)


class Intervals(NamedTuple):
    """Steps between log lines, summaries, checkpoints and evaluations; checkpoints to keep."""

    log_frequency: int = 10
    save_summaries_steps: int = 100
    save_checkpoint_steps: int = 1000
    max_to_keep: int = 5  # checkpoints; 0 keeps all
    eval_every: Optional[int] = None  # None: evaluate only the last checkpoint; 0: never
    keep_best: bool = False  # also keep the checkpoint with the best precision
    profile_step: Optional[int] = None  # step to trace
