"""Classic graph-mode TensorFlow on CIFAR-10: the face that books import."""
from cifar10.cli import quiet  # first: it keeps TensorFlow's import quiet
from cifar10.data.dataset import NUM_CLASSES, NUM_EXAMPLES_PER_EPOCH_FOR_EVAL, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN
from cifar10.data.download import maybe_download_and_extract
from cifar10.hparams import CLASSIC as _CLASSIC
from cifar10.distortions import IMAGE_SIZE
from cifar10.input import distorted_inputs, inputs
from cifar10.model import inference, loss
from cifar10.multi_gpu import TOWER_NAME

MOVING_AVERAGE_DECAY = _CLASSIC.moving_average_decay
NUM_EPOCHS_PER_DECAY = _CLASSIC.num_epochs_per_decay
LEARNING_RATE_DECAY_FACTOR = _CLASSIC.learning_rate_decay_factor
INITIAL_LEARNING_RATE = _CLASSIC.initial_learning_rate
