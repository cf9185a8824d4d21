"""Every number that shapes training, in one table."""
from typing import NamedTuple


class HParams(NamedTuple):
    """Hyperparameters of a run. The defaults are the classic recipe of the TensorFlow CIFAR-10 tutorial."""
    batch_size: int = 128  # examples a tower and step
    initial_learning_rate: float = 0.1
    num_epochs_per_decay: float = 350.0
    learning_rate_decay_factor: float = 0.1
    moving_average_decay: float = 0.9999


CLASSIC = HParams()
