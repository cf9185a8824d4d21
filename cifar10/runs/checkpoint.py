"""Checkpoints of a run: files, choice, reading, validation."""

import contextlib
import os
import re
from typing import Dict, NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.errors import UserError

PREFIX = 'model.ckpt'
_INDEX = re.compile(r'model\.ckpt-(\d+)\.index')  # the last file of a checkpoint
_CHECKPOINT_FILE = re.compile(r'\.(index|meta|data-\d+-of-\d+)$')
AVERAGE_SUFFIX = '/ExponentialMovingAverage'


class Checkpoint(NamedTuple):
    """A checkpoint in memory."""

    path: str  # for the directory of the run and for messages
    step: int  # the number of updates
    values: Dict[str, np.ndarray]  # by variable name
    notes: Sequence[str] = ()  # for the user: why a newer checkpoint was not read


class Saved(NamedTuple):
    """A checkpoint on disk."""

    step: int  # by its name
    time: float  # the modification time
    path: str


def find(directory):
    """Return the checkpoints in a directory, a list of Saved, the highest step first.

    The list of tf.train.Saver, the file `checkpoint`, is not read. It can name a deleted file, or
    lack the last checkpoint of a killed process.
    """
    found = []
    for match in filter(None, map(_INDEX.fullmatch, file_names(directory))):
        path = os.path.join(directory, match.group())
        with contextlib.suppress(FileNotFoundError):  # A trainer has just deleted it.
            found.append(Saved(int(match.group(1)), os.path.getmtime(path), path[: -len('.index')]))
    return sorted(found, reverse=True)


def newest_step(directory):
    """Return the highest step of the checkpoints in a directory, or 0."""
    return next((saved.step for saved in find(directory)), 0)


def file_names(directory):
    """Return the names of the files in a directory; none if it does not exist."""
    try:
        return os.listdir(directory or '.')
    except (FileNotFoundError, NotADirectoryError):  # It may just have been moved.
        return []


def read_latest(directory):
    """Read the newest intact checkpoint in `directory`, even while a trainer saves there.

    Returns:
      A Checkpoint, with a note about damaged newer ones; None if there is no checkpoint.

    Raises:
      UserError: all checkpoints are damaged.
    """
    found, problems = find(directory), []
    for saved in found:
        try:
            ckpt = read(saved.path)
        except UserError as error:
            # A trainer has saved another checkpoint, and may have deleted this one.
            if find(directory) != found:
                return read_latest(directory)
            problems.append(str(error))
            continue
        return ckpt._replace(notes=[f'{". ".join(problems)}. Using {saved.path}'] * bool(problems))
    if problems:
        raise UserError(
            f'{". ".join(problems)}. There is no other intact checkpoint: '
            'put back a copy of one, or use another directory'
        )
    return None


def read(path):
    """Read all values of a checkpoint and verify its checksums.

    The step is the global_step, else the number at the end of the name, else 0.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged, or a value is not finite.
    """
    directory, name = os.path.split(path)
    # Before TensorFlow 0.12, a checkpoint was one file, without a suffix.
    found = {name, name + '.index'} & set(file_names(directory))
    if not found or os.path.isdir(path):  # TensorFlow would read the newest one in a directory.
        raise UserError(f'The checkpoint {path} is missing')
    try:
        reader = tf.train.load_checkpoint(path)
        values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        for variable, value in values.items():
            if np.asarray(value).dtype.kind == 'f' and not np.isfinite(value).all():
                raise ValueError(f'its {variable} is not finite')
        number = name.rsplit('-', 1)[-1]
        # In listings of books, the global_step can be float32.
        step = int(values.get('global_step', number if number.isdigit() else 0))
        return Checkpoint(path, step, values)
    except (tf.errors.OpError, RuntimeError, ValueError, TypeError, IndexError, OSError) as error:
        raise UserError(f'The checkpoint {path} is damaged ({errors.reason(error)})')


def read_choice(path):
    """Read the checkpoint of a user's choice.

    Args:
      path: a directory, whose newest checkpoint is read, or the path of a checkpoint or of one of
        its files.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged.
    """
    remedy = 'give the directory of a run, or the path of another checkpoint'
    if os.path.basename(path) == 'checkpoint':  # the list of the checkpoints in the directory
        path = os.path.dirname(path)
    if os.path.isdir(path):
        latest = read_latest(path)
        if latest is None:
            raise UserError(f'There is no checkpoint in {path}: train first, or {remedy}')
        return latest
    try:
        return read(_CHECKPOINT_FILE.sub('', path))
    except UserError as error:
        raise UserError(f'{error}: {remedy}')


def averages_notes(ckpt):
    """Return a note for the user, in a list, if a Checkpoint has no moving averages."""
    if any(name.endswith(AVERAGE_SUFFIX) for name in ckpt.values):
        return []
    return [f'{ckpt.path} has no moving averages: using the weights']


def sources(ckpt, variables):
    """Return a dict from names in a Checkpoint to variables: moving averages, or else values.

    Args:
      ckpt: a Checkpoint.
      variables: dict from names to variables.
    """
    averages = {name: name + AVERAGE_SUFFIX for name in variables}
    return {
        averages[name] if averages[name] in ckpt.values else name: variable
        for name, variable in variables.items()
    }


def misfit(ckpt, variables):
    """Return the reason if a checkpoint does not fit, else None.

    Args:
      ckpt: a Checkpoint.
      variables: dict from names in the checkpoint to variables. Each needs a value of its dtype and
        shape.
    """
    for name, variable in sorted(variables.items()):
        value = ckpt.values.get(name)
        expected = f'{variable.dtype.base_dtype.name} {variable.shape.as_list()}'
        if value is None:
            return f'The checkpoint {ckpt.path} does not fit: it has no {name}'
        found = f'{value.dtype} {list(value.shape)}'
        if found != expected:
            return f'The checkpoint {ckpt.path} does not fit: its {name} is {found}, not {expected}'
    return None


def check_fits(ckpt, variables):
    """Raise UserError if a checkpoint of the user's choice does not fit, see `misfit`."""
    cause = misfit(ckpt, variables)
    if cause:
        remedy = 'give the --network of its run, or another --checkpoint or --checkpoint_dir'
        raise UserError(f'{cause}: {remedy}')
