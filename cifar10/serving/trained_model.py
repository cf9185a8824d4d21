"""Trained network: weights of a checkpoint as constants, and class names."""

import os
from typing import NamedTuple, Sequence

import tensorflow.compat.v1 as tf

from cifar10.config import NUM_CLASSES
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.runs import checkpoint, run_record


class TrainedModel(NamedTuple):
    """Checkpoint of a network and its class names."""

    ckpt: checkpoint.Checkpoint
    suffix: str  # of the variable names, see checkpoint.variable_suffix
    class_names: Sequence[str]  # in label order
    notes: Sequence[str]  # for the user: about the choice of checkpoint, weights and names

    def constants_scope(self):
        """Return a variable scope that replaces variables by constants from the checkpoint.

        Networks built in the scope share the constants.

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

    Without a record, the class names are those of CIFAR-10 for ten classes, else the class numbers.

    Args:
      directory: see checkpoint.read_choice.
      choice: see checkpoint.read_choice.

    Raises:
      UserError: the checkpoint is missing, damaged or of another network, or its run.json has
        another number of classes.
    """
    ckpt = checkpoint.read_choice(directory, choice)
    suffix, notes = checkpoint.variable_suffix(ckpt)
    name = 'softmax_linear/biases' + suffix
    biases = ckpt.values.get(name)
    if biases is None or biases.ndim != 1:
        raise UserError(
            f'The checkpoint {ckpt.path} does not fit: it has no {name}',
            'give {checkpoint} or {checkpoint_dir} of a run of this network',
            'checkpoint',
            'checkpoint_dir',
        )
    train_dir, num_classes = os.path.dirname(ckpt.path), len(biases)
    names = run_record.read(train_dir).class_names
    if names and len(names) != num_classes:
        raise UserError(
            f'{os.path.join(train_dir, run_record.RECORD_FILE)} has {len(names)} class names, but the checkpoint has {num_classes} classes',
            f'restore the {run_record.RECORD_FILE} of its run',
        )
    if not names:
        is_cifar10 = num_classes == NUM_CLASSES
        names = dataset.CLASS_NAMES if is_cifar10 else list(map(str, range(num_classes)))
        notes.append(
            'The checkpoint has no record of its class names: using '
            + dataset.format_class_names(names)
        )
    return TrainedModel(ckpt, suffix, names, [*ckpt.notes, *notes])
