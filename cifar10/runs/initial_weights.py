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
    """Return the InitialWeights of a network: the moving averages of a checkpoint, if it has them.

    Args:
      path: the path of a checkpoint, or a directory with checkpoints, whose newest one is used.
      variables: the variables of the network.

    Raises:
      UserError: the checkpoint is missing or damaged, or no value has the shape of its variable.
    """
    remedy = 'give {init_checkpoint} the directory of a run, or the path of a checkpoint'
    try:
        ckpt = checkpoint.read_choice(path, 'latest' if os.path.isdir(path) else path)
    except UserError as error:
        raise UserError(error.cause, remedy, 'init_checkpoint')
    suffix, _ = checkpoint.variable_suffix(ckpt)
    names, new_variables = {}, []
    for variable in variables:
        name = variable.op.name
        value = ckpt.values.get(name + suffix)
        if value is not None and variable.shape == value.shape:
            names[name] = name + suffix
        else:
            new_variables.append(name)
    if not names:
        raise UserError(f'No value in {ckpt.path} fits the network', remedy, 'init_checkpoint')
    return InitialWeights(ckpt.path, names, new_variables)
