"""Checkpoints of a run: files, choice, reading, validation."""

import math
import os
import re
from typing import Dict, NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.runs import run_record

PREFIX = 'model.ckpt'
CHECKPOINT_STATE_FILE = 'checkpoint'  # list written by a tf.train.Saver
_INDEX = re.compile(r'(model\.ckpt-(\d+))\.index')
_CHECKPOINT_FILE = re.compile(r'\.(index|meta|data-\d+-of-\d+)$')
AVERAGE_SUFFIX = '/ExponentialMovingAverage'


class Checkpoint(NamedTuple):
    """A checkpoint in memory."""

    path: str  # for the directory of the run and for messages
    step: int  # the number of updates
    values: Dict[str, np.ndarray]  # by variable name
    notes: Sequence[str] = ()  # for the user: why a newer checkpoint was not read


def candidates(directory):
    """Return the paths of the checkpoints in `directory`, the preferred one first.

    The latest checkpoint of the list is first; the others follow by descending step. A checkpoint
    of a later step that is newer than the list precedes all: the trainer was killed before it
    updated the list.
    """
    found = filter(None, map(_INDEX.fullmatch, file_names(directory)))
    steps = {os.path.join(directory, match.group(1)): int(match.group(2)) for match in found}
    latest = latest_checkpoint(directory)
    listed_time = _modification_time(os.path.join(directory, CHECKPOINT_STATE_FILE))

    def preference(path):
        step = steps.get(path, 0)
        is_newer = step > steps.get(latest, math.inf) and modification_time(path) > listed_time
        return is_newer, path == latest, step

    return sorted({*steps, latest} - {None}, key=preference, reverse=True)


def latest_checkpoint(directory):
    """Return the path of the latest checkpoint in the directory's list, or None."""
    state = _state(directory)
    return state.model_checkpoint_path if state else None


def listed_checkpoints(directory, last=None):
    """Return the paths of the listed checkpoints that exist in the directory, oldest first.

    Without a list, all checkpoints count as listed. A saver deletes old checkpoints. So those of
    other names and in other directories are omitted.

    Args:
      directory: the directory.
      last: a path to append, listed or not.
    """
    state = _state(directory)
    known = state.all_model_checkpoint_paths if state else reversed(candidates(directory))
    paths = [path for path in known if path != last]
    return [
        path
        for path in paths + [last]
        if path
        and os.path.dirname(path) == directory
        and _INDEX.fullmatch(os.path.basename(path) + '.index')
        and modification_time(path)
    ]


def _state(directory):
    state_file = os.path.join(directory, CHECKPOINT_STATE_FILE)
    if not os.path.exists(state_file):
        return None
    try:
        return tf.train.get_checkpoint_state(directory)
    except (ValueError, OSError, tf.errors.OpError):  # a damaged list
        return None


def modification_time(path):
    """Return the modification time of a checkpoint's index, its last file; 0 without an index."""
    return _modification_time(path + '.index')


def _modification_time(path):
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0


def file_names(directory):
    """Return the names of the files in a directory; none if it does not exist."""
    try:
        return os.listdir(directory or '.')
    except (FileNotFoundError, NotADirectoryError):  # It may just have been moved.
        return []


def fingerprint(directory):
    """Return a value that changes with the path or time of the preferred checkpoint."""
    return [(path, modification_time(path)) for path in candidates(directory)[:1]]


def has_ended(directory, last_step=None):
    """Return True if the preferred checkpoint has reached the run's last step.

    Args:
      directory: the directory of the run.
      last_step: the last step; None reads it from the record.

    Raises:
      UserError: the record is damaged.
    """
    if last_step is None:
        last_step = run_record.read(directory).last_step
    return newest_step(directory) >= last_step


def newest_step(directory):
    """Return the step of the preferred checkpoint, by its name; 0 without a checkpoint."""
    numbers = [path.rsplit('-', 1)[-1] for path in candidates(directory)[:1]]
    return max((int(number) for number in numbers if number.isdigit()), default=0)


def read_latest(directory):
    """Read the newest intact checkpoint in `directory`, even while a trainer saves there.

    Returns:
      A Checkpoint, with a note if a newer one is damaged, or if the list of checkpoints is missing,
      damaged, or names another directory; None if there is neither a checkpoint nor a list.

    Raises:
      UserError: there is a checkpoint or a list, but no intact checkpoint.
    """
    state_file = os.path.join(directory, CHECKPOINT_STATE_FILE)
    before = fingerprint(directory)
    latest = latest_checkpoint(directory)
    problems = []
    if latest is None:
        problems = [f'{state_file} is missing or damaged']
    elif os.path.realpath(os.path.dirname(latest)) != os.path.realpath(directory):
        problems = [f'{state_file} names a checkpoint in another directory']
    for path in candidates(directory):
        try:
            ckpt = read(path)
        except UserError as error:
            # A trainer has saved another checkpoint, and may have deleted this one.
            if fingerprint(directory) != before:
                return read_latest(directory)
            problems.append(str(error))
            continue
        notes = [f'{". ".join(problems)}. Using {path}'] if problems else []
        return ckpt._replace(notes=notes)
    if before or os.path.exists(state_file):
        raise UserError(
            f'{". ".join(problems)}. There is no other intact checkpoint',
            'put back a copy of one, or use another directory',
        )
    return None


def read(path):
    """Read all values of a checkpoint and verify its checksums.

    The step is the global_step, else the number at the end of the name, else 0.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged, a value is not finite, or its step is not an
        integer >= 0.
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
        step = np.asarray(values.get('global_step', int(number) if number.isdigit() else 0))
        # In listings of books, the global_step can be float32.
        is_number = step.shape == () and step.dtype.kind in 'iuf'
        if not is_number or not 0 <= step < 2**62 or step != int(step):
            raise ValueError(f'its global_step is {np.array2string(step, threshold=3)}')
        return Checkpoint(path, int(step), values)
    except (tf.errors.OpError, RuntimeError, ValueError, IndexError, OSError) as error:
        raise UserError(f'The checkpoint {path} is damaged ({errors.reason(error)})')


def read_choice(directory, choice):
    """Read the checkpoint of a user's choice.

    Args:
      directory: directory of the checkpoints.
      choice: 'latest', or the path of a checkpoint or of one of its files.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged.
    """
    if choice == 'latest':
        latest = read_latest(directory)
        if latest is None:
            raise UserError(
                f'There is no checkpoint in {directory}',
                'train first, or give another {checkpoint_dir}',
                'checkpoint_dir',
            )
        return latest
    try:
        return read(_CHECKPOINT_FILE.sub('', choice))
    except UserError as error:
        raise UserError(
            error.cause,
            'give {checkpoint}=latest, or the path of another checkpoint; {checkpoint_dir} is for a directory',
            'checkpoint',
            'checkpoint_dir',
        )


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
        found = 'missing' if value is None else f'{value.dtype} {list(value.shape)}'
        if found != expected:
            return f'The checkpoint {ckpt.path} does not fit: its {name} is {found}, not {expected}'
    return None


def check_fits(ckpt, variables):
    """Raise UserError if a checkpoint of the user's choice does not fit, see `misfit`."""
    cause = misfit(ckpt, variables)
    if cause:
        remedy = 'give the {network} of its run, or another {checkpoint} or {checkpoint_dir}'
        raise UserError(cause, remedy, 'network', 'checkpoint', 'checkpoint_dir')
