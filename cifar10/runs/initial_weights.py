"""Initial weights of a new run, from a checkpoint of another run."""

import os
from typing import Dict, NamedTuple, Sequence

import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.runs import checkpoint


class InitialWeights(NamedTuple):
    """Values in a checkpoint, with which a new run starts."""

    path: str  # of the checkpoint
    names: Dict[str, str]  # from variable name to name in the checkpoint
    new_variables: Sequence[str]  # names of the variables without a value that fits
    notes: Sequence[str]  # for the user, about the choice of checkpoint and values

    def set_initializers(self):
        """Let the variables of the default graph, and their moving averages, start with the values.

        The initializers of the variables read the checkpoint. So another worker of a cluster never
        sees the random values.
        """
        for variable in tf.global_variables():
            name = self.names.get(variable.op.name.replace(checkpoint.AVERAGE_SUFFIX, ''))
            if name:
                tf.train.init_from_checkpoint(self.path, {name: variable})


def read(path, variables):
    """Return the InitialWeights of a network: moving averages, or else weights.

    Args:
      path: the path of a checkpoint, or a directory with checkpoints, whose newest one is used.
      variables: the variables of the network.

    Raises:
      UserError: the checkpoint is missing or damaged, or no value has the shape and dtype of its
        variable.
    """
    ckpt = checkpoint.read_choice(os.path.abspath(path))
    names, new_variables = {}, []
    for variable in variables:
        for name in (variable.op.name + checkpoint.AVERAGE_SUFFIX, variable.op.name):
            if not checkpoint.misfit(ckpt, {name: variable}):
                names[variable.op.name] = name
                break
        else:
            new_variables.append(variable.op.name)
    if not names:
        raise UserError(
            f'No value in {ckpt.path} fits the network: give another --init_checkpoint or --network'
        )
    notes = checkpoint.averages_notes(ckpt)
    return InitialWeights(ckpt.path, names, new_variables, [*ckpt.notes, *notes])
