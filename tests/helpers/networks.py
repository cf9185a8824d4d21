"""The network of a recipe."""

from cifar10 import multi_gpu


def of(hparams, num_slices=1):
    """The Network of ten classes with these hyperparameters."""
    return multi_gpu.Network(10, num_slices, hparams.fc_weight_decay, hparams.label_smoothing)
