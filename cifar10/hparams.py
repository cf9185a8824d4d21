"""The numbers in which recipes may differ, in one table, and the recipes: named sets of them."""
from typing import NamedTuple

OPTIMIZERS = ['gradient_descent', 'momentum', 'muon']
SCHEDULES = ['staircase', 'linear']
LR_SCALINGS = ['none', 'linear']
ONLY_WITH = {  # the other field that a number has an effect with, and its values
    'momentum': ('optimizer', ['momentum', 'muon']), 'matrix_learning_rate': ('optimizer', ['muon']),
    'matrix_weight_decay': ('optimizer', ['muon']), 'num_epochs_per_decay': ('schedule', ['staircase']),
    'learning_rate_decay_factor': ('schedule', ['staircase']), 'warmup_epochs': ('schedule', ['linear']),
    'moving_average_decay': ('moving_average_fraction', [0.0]),
}


class HParams(NamedTuple):
    """Hyperparameters of a run. The defaults are the classic recipe of the TensorFlow CIFAR-10 tutorial."""
    recipe: str = 'classic'
    batch_size: int = 128  # examples a tower and step
    optimizer: str = 'gradient_descent'  # or momentum, Nesterov's; or muon
    initial_learning_rate: float = 0.1
    lr_scaling: str = 'none'  # or linear: in proportion to the examples a step, over the batch size of the recipe
    momentum: float = 0.9  # of momentum and muon
    matrix_learning_rate: float = 6e-4  # of muon, for the weights of hidden layers: root mean square of an update's elements
    matrix_weight_decay: float = 0.75  # of muon: these weights shrink by it times their learning rate
    schedule: str = 'staircase'  # or linear: up, then down to 0
    num_epochs_per_decay: float = 350.0  # of the staircase
    learning_rate_decay_factor: float = 0.1  # of the staircase
    warmup_epochs: float = 0.0  # of the linear schedule
    epochs: float = float('inf')  # until the end of the run, and of the linear schedule
    fc_weight_decay: float = 0.004  # times l2_loss(weights) in the loss, of each fully connected hidden layer
    label_smoothing: float = 0.0
    moving_average_decay: float = 0.9999
    moving_average_fraction: float = 0.0  # of the run, over which the averages reach back; 0 leaves it to moving_average_decay
    contrast: float = 0.8  # contrast factors are drawn from 1 - contrast to 1 + contrast

    def has_effect(self, name):
        """Whether anything reads the field, the other fields being what they are."""
        return name not in ONLY_WITH or getattr(self, ONLY_WITH[name][0]) in ONLY_WITH[name][1]


CLASSIC = HParams()
FAST = HParams(
    recipe='fast', optimizer='muon', initial_learning_rate=0.05, schedule='linear', warmup_epochs=3.0, epochs=32.0,
    fc_weight_decay=0.0, label_smoothing=0.1, moving_average_fraction=0.02, contrast=0.0)
BEST = FAST._replace(recipe='best', matrix_weight_decay=1.5, warmup_epochs=5.0, epochs=100.0)
RECIPES = {recipe.recipe: recipe for recipe in (CLASSIC, FAST, BEST)}
