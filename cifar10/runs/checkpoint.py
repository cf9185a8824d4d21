"""Finding and reading checkpoints, and checking that one fits the graph before it is restored."""
import glob
import os
from typing import Dict, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError


class Checkpoint(NamedTuple):
    """A checkpoint in memory."""
    path: str
    step: int  # the number of updates in it
    values: Dict[str, np.ndarray]  # by variable name


def latest(directory):
    """The path of the newest checkpoint that `directory` lists, or None where it lists none.

    Raises:
      UserError: the list is damaged, or the checkpoint does not exist.
    """
    listing = os.path.join(directory, 'checkpoint')
    path = _listed(directory)
    if path is None:
        if os.path.exists(listing):
            raise UserError('%s is damaged: it must name a checkpoint, as in model_checkpoint_path: "model.ckpt-1000"' % listing)
        if glob.glob(os.path.join(glob.escape(directory), 'model.ckpt-*.index')):
            raise UserError('%s holds checkpoints, but not the file "checkpoint", which names the latest: write it, as in '
                            'model_checkpoint_path: "model.ckpt-1000", or use another directory' % directory)
    elif not tf.train.checkpoint_exists(path):
        if _listed(directory) != path:  # a trainer has just saved the next one
            return latest(directory)
        raise UserError('%s is missing, though %s names it as the latest checkpoint: put it back, or name another there'
                        % (path, listing))
    return path


def _listed(directory):
    """The path that the directory's list names as the latest, or None."""
    try:
        state = tf.train.get_checkpoint_state(directory)
    except ValueError:  # it names none
        return None
    return state.model_checkpoint_path if state else None


def read_latest(directory):
    """Reads the newest checkpoint in `directory`, also while a trainer works there, which may replace it at any time.

    Returns:
      A Checkpoint, or None where there is none.

    Raises:
      UserError: the list or the checkpoint is damaged, or the checkpoint does not exist.
    """
    path = latest(directory)
    try:
        return read(path) if path else None
    except UserError:
        if _listed(directory) == path:
            raise
    return read_latest(directory)


def read(path):
    """Reads a whole checkpoint, which verifies its checksums.

    Its step is its global_step; if it has none, the number at the end of its name.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is damaged.
    """
    try:
        reader = tf.train.load_checkpoint(path)
        values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    except (tf.errors.OpError, RuntimeError, ValueError, IndexError) as error:
        raise UserError('The checkpoint %s is damaged (%s): use an older one by naming it in %s' % (
            path, str(error).splitlines()[0], os.path.join(os.path.dirname(path), 'checkpoint')))
    number = path.rsplit('-', 1)[-1]
    return Checkpoint(path, int(values.get('global_step', number if number.isdigit() else 0)), values)


def check_fits(saved, variables):
    """Checks that a checkpoint has a value of the right type and shape for each variable.

    Args:
      saved: a Checkpoint.
      variables: dict from names in the checkpoint to variables.

    Raises:
      UserError: names the first variable that is missing in the checkpoint or has another type or shape there.
    """
    complaint = 'The checkpoint %s does not fit: %s. Give the directory of a run of this network'
    for name, variable in sorted(variables.items()):
        if name not in saved.values:
            raise UserError(complaint % (saved.path, 'it has no ' + name))
        value = saved.values[name]
        wanted = variable.dtype.base_dtype, variable.shape.as_list()
        if (value.dtype, list(value.shape)) != (wanted[0].as_numpy_dtype, wanted[1]):
            raise UserError(complaint % (saved.path, 'its %s is %s %s, not %s %s' % (
                name, value.dtype, list(value.shape), wanted[0].name, wanted[1])))
