"""Tables of hyperparameters and run settings; recipes, run length, constants of CIFAR-10.

A field of HParams or RunSettings is one line: name, type, default, help, bounds or choices. Its
flag with the checks of its value, its help and its row in docs/flags.md follow from the line. For a
hyperparameter, so do run.json with the checks of a resumed run, the plan, and TensorBoard's tables.
A hyperparameter without a help has no flag: recipes set it.

A value that switches something off leaves the formula unchanged: 0 for an amount
(label_smoothing), inf for a limit (epochs). A step, an interval or a seed that is not used is None.
As in TensorFlow, 0 keeps all checkpoints and chooses the number of threads.

This module does not import TensorFlow, because flags are parsed before that slow import.
"""

import dataclasses
import math
from typing import NamedTuple, Optional

# Bounds of a setting. They prevent overflow and division by zero.
_TINY, _HUGE, _MAX_INT = 1e-9, 1e9, 2**31 - 1
_POSITIVE, _AMOUNT, _FRACTION, _COUNT = (_TINY, _HUGE), (0, _HUGE), (0, 1), (1, _MAX_INT)

# CIFAR-10
HEIGHT = WIDTH = 32  # pixels
IMAGE_SIZE = 24  # height and width of the crops
DEPTH = 3  # red, green, blue
NUM_CLASSES = 10
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 50000
NUM_EXAMPLES_PER_EPOCH_FOR_EVAL = 10000

VARIABLE_STRATEGIES = ['cpu', 'first_device']  # placement of the variables


def setting(default, help=None, bounds=(None, None), choices=None, only_with=None):
    """Return a field of HParams or RunSettings.

    Args:
      default: the default; for a hyperparameter, that of the recipe classic.
      help: the help of the flag, without the default; None: no flag.
      bounds: the smallest and the largest value, for numbers.
      choices: the valid strings, or None.
      only_with: (other field, its values): with other values, this field has no effect.
    """
    low, high = bounds
    metadata = dict(help=help, low=low, high=high, choices=choices, only_with=only_with)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class HParams:
    """Hyperparameters of a run. The defaults are those of the TensorFlow CIFAR-10 tutorial."""

    recipe: str = setting(
        'classic',
        'Set of hyperparameters: classic or fast. The flag of a hyperparameter overrides it',
        choices=['classic', 'fast'],
    )
    optimizer: str = setting(
        'gradient_descent',
        'Optimizer: gradient_descent, momentum (Nesterov) or muon (orthogonalized momentum)',
        choices=['gradient_descent', 'momentum', 'muon'],
    )
    schedule: str = setting(
        'staircase',
        'Learning rate schedule: staircase decays at intervals, without end; linear rises, then falls to 0',
        choices=['staircase', 'linear'],
    )
    lr_scaling: str = setting(
        'none',
        'Scaling of the learning rates: none, or linear (factor: examples per step / batch size of the recipe)',
        choices=['none', 'linear'],
    )
    batch_size: int = setting(128, 'Examples per tower per step', (1, 2**20))
    compute_dtype: str = setting(
        'float32',
        'Type of the factors in the hidden layers: float32, auto (bfloat16 on a processor with AVX512_BF16 or AMX, else '
        'float32) or bfloat16',
        choices=['float32', 'auto', 'bfloat16'],
    )
    initial_learning_rate: float = setting(
        0.1, 'Highest learning rate; muon: only for the biases and the output layer', _POSITIVE
    )
    momentum: float = setting(
        0.9, 'Momentum', (0, 1 - 1e-7), only_with=('optimizer', ['momentum', 'muon'])
    )
    matrix_learning_rate: float = setting(
        6e-4,
        "Highest learning rate of the hidden layers' weights. It is the root mean square of an update",
        _POSITIVE,
        only_with=('optimizer', ['muon']),
    )
    # Each update scales the weights of a hidden layer to this root mean square.
    matrix_weight_rms: float = setting(0.04, only_with=('optimizer', ['muon']))
    num_epochs_per_decay: float = setting(
        350.0, 'Epochs between two decays', (1e-3, _HUGE), only_with=('schedule', ['staircase'])
    )
    learning_rate_decay_factor: float = setting(
        0.1, 'Factor of each decay', (_TINY, 1), only_with=('schedule', ['staircase'])
    )
    # Epochs of warm-up. With other `epochs`, the warm-up is the same fraction of the run.
    warmup_epochs: float = setting(0.0, only_with=('schedule', ['linear']))
    epochs: float = setting(
        math.inf,
        'Epochs of the run and of the linear schedule; inf means no end',
        (_TINY, math.inf),
    )
    fc_weight_decay: float = setting(
        0.004,
        'Factor of the weight decay in the loss, for the fully connected hidden layers',
        _AMOUNT,
    )
    label_smoothing: float = setting(
        0.0, 'Fraction of each label that is spread evenly over all classes', _FRACTION
    )
    moving_average_decay: float = setting(
        0.9999,
        'Decay of the moving averages',
        _FRACTION,
        only_with=('moving_average_fraction', [0.0]),
    )
    # If F > 0, the decay of the moving averages is 1 - 1 / (F * steps of the run).
    moving_average_fraction: float = setting(0.0)
    crop_range: float = setting(
        1.0,
        'Largest distance between the centers of a training image and its random crop, as a fraction of the '
        'possible distance',
        _FRACTION,
    )
    contrast: float = setting(
        0.8, 'Contrast factors are drawn from 1 - contrast to 1 + contrast', _FRACTION
    )

    def __post_init__(self):
        for name, field in HPARAMS.items():
            value, choices = getattr(self, name), field.metadata['choices']
            # A record may have a recipe of an earlier version.
            if choices and value not in choices and name != 'recipe':
                raise ValueError(f'{name} is {value!r}, not one of {", ".join(choices)}')

    def has_effect(self, name):
        """Return True if the other hyperparameters let `name` have an effect."""
        only_with = HPARAMS[name].metadata['only_with']
        return only_with is None or getattr(self, only_with[0]) in only_with[1]

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


HPARAMS = {field.name: field for field in dataclasses.fields(HParams)}

CLASSIC = HParams()
FAST = HParams(
    recipe='fast',
    optimizer='muon',
    compute_dtype='auto',
    initial_learning_rate=0.05,
    schedule='linear',
    warmup_epochs=2.0,
    epochs=25.0,
    fc_weight_decay=0.0,
    label_smoothing=0.1,
    moving_average_fraction=0.02,
    crop_range=0.75,
    contrast=0.0,
)
RECIPES = {recipe.recipe: recipe for recipe in (CLASSIC, FAST)}


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """Settings of a run that do not change what is learned: length, outputs, seed, threads."""

    max_steps: int = setting(
        1000000, 'Last step of the run. A resumed run continues the count', _COUNT
    )
    log_frequency: int = setting(10, 'Steps between two log lines', _COUNT)
    save_summaries_steps: int = setting(100, 'Steps between two summaries', _COUNT)
    save_checkpoint_steps: int = setting(1000, 'Steps between two checkpoints', _COUNT)
    intra_op_threads: int = setting(0, 'Threads within an operation; 0 means automatic', (0, 1024))
    inter_op_threads: int = setting(0, 'Threads across operations; 0 means automatic', (0, 1024))
    eval_every: Optional[int] = setting(
        None,
        'Steps between two evaluations on the test images; 0 disables evaluation. Default: only the '
        'last checkpoint is evaluated',
        (0, _MAX_INT),
    )
    profile_step: Optional[int] = setting(
        None, 'Step to trace. Perfetto and chrome://tracing show TRAIN_DIR/trace-STEP.json', _COUNT
    )
    seed: Optional[int] = setting(
        None,
        'Seed of initial values and distortions. The order of the examples depends on the timing of '
        'threads, unless --deterministic is set',
        (0, _MAX_INT),
    )
    deterministic: bool = setting(
        False,
        'Make runs of the same command on one machine equal, bit for bit, also if they are stopped and resumed. Needs '
        '--seed; CPU only',
    )
    log_device_placement: bool = setting(False, 'Print the device of every operation')


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
    batches_per_step: int = 1

    def epoch_at(self, step):
        """Return the number of epochs (a float) in `step` steps."""
        return step * (self.examples_per_step / self.examples_per_epoch)

    def num_steps(self, hparams):
        """Return the number of steps in hparams.epochs, rounded up, at least 1, or math.inf."""
        if math.isinf(hparams.epochs):
            return math.inf
        steps = hparams.epochs * self.examples_per_epoch / self.examples_per_step
        return max(1, math.ceil(round(steps, 6)))  # rounding error: 1.1 * 100 > 110

    def examples_per_decay(self, hparams):
        """Return the number of examples per decay of the staircase schedule, at least 1."""
        return max(1, int(round(self.examples_per_epoch * hparams.num_epochs_per_decay)))

    def peak_learning_rate(self, hparams):
        """Return the highest rate of the schedule: initial_learning_rate, scaled by lr_scaling."""
        if hparams.lr_scaling == 'none':
            return hparams.initial_learning_rate
        batch_factor = self.examples_per_step / RECIPES[hparams.recipe].batch_size
        return hparams.initial_learning_rate * batch_factor

    def max_average_decay(self, hparams):
        """Return moving_average_decay, or the decay for moving_average_fraction.

        If the fraction is not 0, the decay is 1 - 1 / (fraction * steps of the run). The averages
        then cover the same fraction of a run of any length.
        """
        if not hparams.moving_average_fraction:
            return hparams.moving_average_decay
        return max(0.0, 1 - 1 / (hparams.moving_average_fraction * self.num_steps(hparams)))
