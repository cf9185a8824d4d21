"""Hyperparameters, recipes (named sets of their values), run length and intervals of a run.

Nothing here needs TensorFlow: the flags are read before its import, which takes seconds.
"""

import math
from typing import NamedTuple, Optional

OPTIMIZERS = ['gradient_descent', 'momentum', 'muon']
SCHEDULES = ['staircase', 'linear']
LR_SCALINGS = ['none', 'linear']
VARIABLE_STRATEGIES = ['cpu', 'first_device', 'spread']  # where the variables live
NUM_VIEWS_CHOICES = [1, 2, 10]  # of an image in an evaluation
MAX_STEPS = 1000000
CONDITIONAL_HPARAMS = {  # a field: (another field, its values with which this one is used)
    'momentum': ('optimizer', ['momentum', 'muon']),
    'matrix_learning_rate': ('optimizer', ['muon']),
    'matrix_weight_decay': ('optimizer', ['muon']),
    'num_epochs_per_decay': ('schedule', ['staircase']),
    'learning_rate_decay_factor': ('schedule', ['staircase']),
    'warmup_epochs': ('schedule', ['linear']),
    'moving_average_decay': ('moving_average_fraction', [0.0]),
}


class HParams(NamedTuple):
    """Hyperparameters of a run.

    The defaults are the classic recipe of the TensorFlow CIFAR-10 tutorial.
    """

    recipe: str = 'classic'
    batch_size: int = 128  # examples per tower per step
    optimizer: str = 'gradient_descent'  # or momentum (Nesterov's), or muon
    initial_learning_rate: float = 0.1
    # or linear: times the examples per step, divided by the batch size of the recipe
    lr_scaling: str = 'none'
    momentum: float = 0.9  # with momentum and muon
    # with muon, for the weights of hidden layers: root mean square of an update's elements
    matrix_learning_rate: float = 6e-4
    # with muon: in each step these weights shrink by this times their learning rate
    matrix_weight_decay: float = 0.75
    schedule: str = 'staircase'  # or linear: up, then down to 0
    num_epochs_per_decay: float = 350.0
    learning_rate_decay_factor: float = 0.1
    warmup_epochs: float = 0.0
    epochs: float = math.inf  # the length of the run, and of a schedule that ends
    # times l2_loss(weights) in the loss, for each fully connected hidden layer
    fc_weight_decay: float = 0.004
    label_smoothing: float = 0.0
    moving_average_decay: float = 0.9999
    # decay = 1 - 1 / (fraction * steps of the run); with 0, moving_average_decay
    moving_average_fraction: float = 0.0
    contrast: float = 0.8  # contrast factors are drawn from 1 - contrast to 1 + contrast

    def has_effect(self, name):
        """Return whether anything reads the field `name`, given the other fields."""
        other, values = CONDITIONAL_HPARAMS.get(name, (None, None))
        return other is None or getattr(self, other) in values

    @property
    def schedule_ends(self):
        """Whether the schedule rises over warmup_epochs, and falls to 0 at the end of `epochs`."""
        return self.has_effect('warmup_epochs')

    @property
    def is_epoch_based(self):
        """Whether the learning rate or the end of the run depends on the examples per epoch."""
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
CHOICES = {  # the values of the hyperparameters that are names
    'recipe': list(RECIPES),
    'optimizer': OPTIMIZERS,
    'schedule': SCHEDULES,
    'lr_scaling': LR_SCALINGS,
}

# Of CIFAR-10.
HEIGHT = WIDTH = 32  # pixels
DEPTH = 3  # red, green, blue
NUM_CLASSES = 10
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 50000
NUM_EXAMPLES_PER_EPOCH_FOR_EVAL = 10000

# The classic recipe's numbers by the names that books use.
MOVING_AVERAGE_DECAY = CLASSIC.moving_average_decay
NUM_EPOCHS_PER_DECAY = CLASSIC.num_epochs_per_decay
LEARNING_RATE_DECAY_FACTOR = CLASSIC.learning_rate_decay_factor
INITIAL_LEARNING_RATE = CLASSIC.initial_learning_rate


class RunLength(NamedTuple):
    """Examples per step and per epoch, and the last step."""

    examples_per_step: int  # of all towers together
    examples_per_epoch: int  # in the training set
    last_step: float = math.inf
    steps_per_execution: int = 1  # that a session run of the train op makes

    def epoch_at(self, step):
        """Return the number of epochs, a fraction, in `step` steps."""
        return step * (self.examples_per_step / self.examples_per_epoch)


class Intervals(NamedTuple):
    """Steps between log lines, summaries, checkpoints and evaluations; checkpoints to keep."""

    log_frequency: int = 10
    save_summaries_steps: int = 100
    save_checkpoint_steps: int = 1000
    max_to_keep: int = 5  # checkpoints; 0 keeps all
    eval_every: Optional[int] = None  # None evaluates only the last checkpoint, 0 nothing at all
    keep_best: bool = False  # whether the checkpoint of the best precision is kept as well
    profile_step: Optional[int] = None  # the step that is traced
