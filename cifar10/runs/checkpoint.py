"""Reading and validation of checkpoints."""

import os
import re
from typing import Dict, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.runs import checkpoint_files, run_record

_CHECKPOINT_FILE = re.compile(r'\.(index|meta|data-\d+-of-\d+)$')
_AVERAGE_SUFFIX = '/ExponentialMovingAverage'


class Checkpoint(NamedTuple):
    """A checkpoint in memory."""

    path: str  # for the directory of the run and for messages
    step: int  # the number of updates
    values: Dict[str, np.ndarray]  # by variable name


def read_latest(directory):
    """Read the newest intact checkpoint in `directory`, even while a trainer saves there.

    Print a line if a newer checkpoint is damaged, or if the list of checkpoints is missing,
    damaged, or names another directory.

    Returns:
      A Checkpoint; None if there is neither a checkpoint nor a list.

    Raises:
      UserError: there is a checkpoint or a list, but no intact checkpoint.
    """
    state_file = os.path.join(directory, checkpoint_files.CHECKPOINT_STATE_FILE)
    before = checkpoint_files.fingerprint(directory)
    latest = checkpoint_files.latest_checkpoint(directory)
    problems = []
    if latest is None:
        problems = [f'{state_file} is missing or damaged']
    elif os.path.realpath(os.path.dirname(latest)) != os.path.realpath(directory):
        problems = [f'{state_file} names a checkpoint in another directory']
    for path in checkpoint_files.candidates(directory):
        try:
            ckpt = read(path)
        except UserError as error:
            # A trainer has saved another checkpoint, and may have deleted this one.
            if checkpoint_files.fingerprint(directory) != before:
                return read_latest(directory)
            problems.append(str(error))
            continue
        if problems:
            print(f'{". ".join(problems)}. Using {path}')
        return ckpt
    if before or os.path.exists(state_file):
        raise UserError(
            f'{". ".join(problems)}. There is no other intact checkpoint: put back a copy of one, or use another directory'
        )
    return None


def read(path):
    """Read all values of a checkpoint and verify its checksums.

    The step is the global_step, else the number at the end of the name, else 0.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged, or its step is not an integer >= 0.
    """
    directory, name = os.path.split(path)
    # Before TensorFlow 0.12, a checkpoint was one file, without a suffix.
    found = {name, name + '.index'} & set(checkpoint_files.file_names(directory))
    if not found or os.path.isdir(path):  # TensorFlow would read the newest one in a directory.
        raise UserError(f'The checkpoint {path} is missing')
    try:
        reader = tf.train.load_checkpoint(path)
        values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        number = name.rsplit('-', 1)[-1]
        step = np.asarray(values.get('global_step', int(number) if number.isdigit() else 0))
        # In listings of books, the global_step can be float32.
        is_number = step.shape == () and step.dtype.kind in 'iuf'
        if not is_number or not 0 <= step < 2**62 or step != int(step):
            raise ValueError(f'its global_step is {np.array2string(step, threshold=3)}')
        return Checkpoint(path, int(step), values)
    except (
        tf.errors.OpError,
        RuntimeError,
        ValueError,
        IndexError,
        OSError,
    ) as error:
        raise UserError(f'The checkpoint {path} is damaged ({errors.reason(error)})')


def read_choice(directory, choice):
    """Read the checkpoint of a user's choice.

    Args:
      directory: directory of the checkpoints.
      choice: 'latest'; 'best', see Run.keep_best; or the path of a checkpoint or of one of its
        files.

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
    path = _CHECKPOINT_FILE.sub('', choice)
    if choice == 'best':
        best = run_record.read(directory).best
        if not best:
            raise UserError(
                f'The run in {directory} has kept no best checkpoint',
                'train with {keep_best}',
                'keep_best',
            )
        path = os.path.join(directory, best['checkpoint'])
    try:
        return read(path)
    except UserError as error:
        if choice == 'best' and run_record.read(directory).best != best:
            return read_choice(directory, choice)  # A trainer replaced it.
        raise UserError(
            error.cause,
            'give {checkpoint}=latest, or the path of another checkpoint; {checkpoint_dir} is for a directory',
            'checkpoint',
            'checkpoint_dir',
        )


def variable_suffix(ckpt):
    """Return the suffix of the variable names to load from a Checkpoint.

    Without moving averages, print a line and return ''.
    """
    if any(name.endswith(_AVERAGE_SUFFIX) for name in ckpt.values):
        return _AVERAGE_SUFFIX
    print(f'{ckpt.path} has no moving averages: using the weights')
    return ''


def check_fits(ckpt, variables):
    """Check that a checkpoint has a finite value of the same dtype and shape for each variable.

    Args:
      ckpt: a Checkpoint.
      variables: dict from names in the checkpoint to variables, or to tf.TensorSpecs.

    Raises:
      UserError: a variable is missing, has another dtype or shape, or is not finite.
    """
    for name, variable in sorted(variables.items()):
        value = ckpt.values.get(name)
        expected = f'{variable.dtype.base_dtype.name} {variable.shape.as_list()}'
        found = 'missing' if value is None else f'{value.dtype} {list(value.shape)}'
        if found != expected:
            raise UserError(
                f'The checkpoint {ckpt.path} does not fit: its {name} is {found}, not {expected}',
                'give the directory of a run of this network and optimizer, or set {fresh} to train a new run',
                'fresh',
            )
        if not np.isfinite(value).all():
            raise UserError(
                f'The checkpoint {ckpt.path} cannot be used: its {name} is not finite. Name an older checkpoint in '
                f'the file {checkpoint_files.CHECKPOINT_STATE_FILE}'
            )
