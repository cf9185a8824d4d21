"""Trained network: the weights in a checkpoint as constants, and the names of its classes."""

import os
from typing import NamedTuple, Sequence

import tensorflow.compat.v1 as tf

from cifar10.config import NUM_CLASSES
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.runs import checkpoint, run_directory


class TrainedModel(NamedTuple):
    """Checkpoint of a network, and its class names."""

    ckpt: checkpoint.Checkpoint
    suffix: str  # of the names of the weights in it, see checkpoint.variable_suffix
    class_names: Sequence[str]  # in label order

    def constants_scope(self):
        """Return a scope that builds the network with the moving averages as constants.

        Networks built in it share them.

        Raises:
          UserError: the checkpoint does not fit the network.
        """
        constants = {}

        def constant(getter, name, shape, dtype, **unused_arguments):
            if name not in constants:
                source = name + self.suffix
                checkpoint.check_fits(self.ckpt, {source: tf.TensorSpec(shape, dtype)})
                constants[name] = tf.constant(self.ckpt.values[source], name=name)
            return constants[name]

        return tf.variable_scope('', custom_getter=constant)


def read(directory, choice):
    """Return the TrainedModel of a checkpoint.

    Args:
      directory: see run_directory.read_checkpoint.
      choice: see run_directory.read_checkpoint.

    Raises:
      UserError: there is no such checkpoint, it is damaged, it is of another network, or the record
        of its run is of other classes.
    """
    ckpt = run_directory.read_checkpoint(directory, choice)
    suffix = checkpoint.variable_suffix(ckpt)
    name = 'softmax_linear/biases' + suffix
    biases = ckpt.values.get(name)
    if biases is None or biases.ndim != 1:
        raise UserError(
            f'The checkpoint {ckpt.path} does not fit: it has no {name}. Give the directory of a run of this network'
        )
    return TrainedModel(ckpt, suffix, _read_class_names(os.path.dirname(ckpt.path), len(biases)))


def _read_class_names(train_dir, num_classes):
    """Return the class names in the run's record.

    Without them, return CIFAR-10's if there are as many classes, as in the tutorial's checkpoints.

    Raises:
      UserError: the record is of other classes, or damaged.
    """
    names = run_directory.read_record(train_dir).get('class_names')
    if names and len(names) != num_classes:
        raise UserError(
            f'{os.path.join(train_dir, run_directory.RECORD)} names {len(names)} classes, and the checkpoint has '
            f'{num_classes}: put the record of its run beside the checkpoint'
        )
    if names:
        return names
    names = [str(label) for label in range(num_classes)]
    if num_classes == NUM_CLASSES:
        names = dataset.CLASS_NAMES
    print(
        f'No record beside the checkpoint names its classes: using {dataset.format_class_names(names)}'
    )
    return names
