"""Trained network: weights of a checkpoint as constants, and class names."""

import os
from typing import NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import network
from cifar10.config import NUM_CLASSES
from cifar10.data import dataset
from cifar10.runs import checkpoint, run_record


class TrainedModel(NamedTuple):
    """Checkpoint of a network and its class names."""

    ckpt: checkpoint.Checkpoint
    network: network.Network
    class_names: Sequence[str]  # in label order
    notes: Sequence[str]  # for the user: about the choice of checkpoint, weights and names

    def constants_scope(self):
        """Return a variable scope that replaces variables by constants from the checkpoint.

        Networks built in the scope share the constants.
        """
        constants = {}

        def constant(getter, name, **unused_arguments):
            if name not in constants:
                (source,) = checkpoint.sources(self.ckpt, {name: None})
                constants[name] = tf.constant(self.ckpt.values[source], name=name)
            return constants[name]

        return tf.variable_scope('', custom_getter=constant)


def read(path, network_name=None):
    """Return the TrainedModel of a checkpoint.

    Without a record, the class names are those of CIFAR-10 for ten classes, else the class numbers.

    Args:
      path: see checkpoint.read_choice.
      network_name: see network.of_run.

    Raises:
      UserError: the checkpoint is missing, damaged, or of another network or other classes than
        those of its run.json.
    """
    ckpt = checkpoint.read_choice(path)
    notes, train_dir = checkpoint.averages_notes(ckpt), os.path.dirname(ckpt.path)
    names = run_record.read(train_dir).class_names
    found = network.of_run(train_dir, network_name)
    notes += network.source_notes(train_dir, found)
    num_classes = len(names) if names else _num_classes(ckpt, found)
    found = found._replace(num_classes=num_classes)
    checkpoint.check_fits(ckpt, checkpoint.sources(ckpt, network.variables(found.graph())))
    if not names:
        is_cifar10 = num_classes == NUM_CLASSES
        names = dataset.CLASS_NAMES if is_cifar10 else list(map(str, range(num_classes)))
        notes.append(
            'The checkpoint has no record of its class names: using '
            + dataset.format_class_names(names)
        )
    return TrainedModel(ckpt, found, names, [*ckpt.notes, *notes])


def _num_classes(ckpt, found):
    """Return the number of columns of a Network's output weights; of 10 classes if unknown."""
    for variable in found.graph().get_collection(network.OUTPUT_WEIGHTS):
        (name,) = checkpoint.sources(ckpt, {variable.op.name: variable})
        if np.ndim(ckpt.values.get(name)):
            return ckpt.values[name].shape[-1]
    return NUM_CLASSES
