"""ModelParams of a recipe."""

from cifar10 import multi_gpu


def from_hparams(hparams, num_sub_batches=1):
    """Return the ModelParams of ten classes with these hyperparameters."""
    return multi_gpu.ModelParams(
        10, num_sub_batches, hparams.fc_weight_decay, hparams.label_smoothing
    )
