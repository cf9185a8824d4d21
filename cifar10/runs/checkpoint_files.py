"""Checkpoint files: names, order, saving, the best one, leftovers of a killed process."""

import contextlib
import math
import os
import re

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.system import files

PREFIX = 'model.ckpt'
CHECKPOINT_STATE_FILE = 'checkpoint'  # the file in which a tf.train.Saver lists what it has saved
_INDEX = re.compile(r'(model\.ckpt-(\d+))\.index')
_DATA = re.compile(r'(model\.ckpt-\d+)\.data-\d+-of-\d+')
_BEST = re.compile(r'(best\.ckpt-\d+)\.(index|data-\d+-of-\d+)(\.tempstate\d+)?')
# Leftovers of a process killed while it saved: names in TensorFlow's BundleWriter
# and atomic_write_string_to_file, and in files.atomic_write.
_UNFINISHED = re.compile(
    r'(checkpoint|model\.ckpt-\d+\..*)\.(tempstate\d+|tmp[0-9a-f]{32})|run\.json\.new(\.\d+)?'
)


def candidates(directory):
    """Return the paths of the checkpoints in `directory`, the preferred one first.

    The latest of the list there comes first, then the others by step. A checkpoint that was
    completed after the list was written comes before the latest of the list: the process that saved
    it was killed in between.

    Raises:
      UserError: the list is a directory, a FIFO or the like.
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
    """Return the path that the directory's list names as the latest.

    It is None if there is no list, or if it names none.

    Raises:
      UserError: the list is a directory, a FIFO or the like.
    """
    state = _state(directory)
    return state.model_checkpoint_path if state else None


def listed_checkpoints(directory, last=None):
    """Return the listed paths of a saver's existing checkpoints in the directory, oldest first.

    A list can name others elsewhere, as in a copy of a directory, or the best checkpoint; a saver
    that knew of it would delete it.

    Args:
      directory: the directory.
      last: a checkpoint that comes last, whether the list names it or not.

    Raises:
      UserError: the list is a directory, a FIFO or the like.
    """
    state = _state(directory)
    paths = [path for path in (state.all_model_checkpoint_paths if state else []) if path != last]
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
    files.check_regular_file(state_file, 'remove it, and the newest checkpoint is used')
    try:
        state = tf.train.get_checkpoint_state(directory)
        if state:
            files.check_name(state.model_checkpoint_path)
        return state
    except (ValueError, OSError, tf.errors.OpError, UserError):  # it names none
        return None


def modification_time(path):
    """Return the modification time of the file of a checkpoint that a saver completes last.

    It is 0 if there is none.
    """
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
    except (FileNotFoundError, NotADirectoryError):  # or it has just been moved
        return []


def fingerprint(directory):
    """Return a value that changes with the preferred checkpoint.

    It also changes if a new run has saved one under the same name.
    """
    return [(path, modification_time(path)) for path in candidates(directory)[:1]]


def save(saver, session, directory, step):
    """Save a checkpoint with a tf.train.Saver; return its path.

    Raises:
      UserError: it cannot be saved; nothing half-written is left.
      tf.errors.OpError: a parameter server is gone.
    """
    prefix = os.path.join(directory, PREFIX)
    try:
        return saver.save(session, prefix, step)
    except (tf.errors.OpError, OSError, RuntimeError, ValueError) as error:
        remove_unfinished(directory)
        if isinstance(
            error,
            (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError),
        ):
            raise
        raise UserError(
            f'Cannot save a checkpoint ({errors.reason(error)}): make room for {prefix}-{step}, and make sure that its '
            'directory can be written'
        )


def remove_unfinished(directory):
    """Remove leftovers of processes killed, or out of disk space, while they saved.

    They are files that were not yet renamed, and data without an index.
    """
    found = file_names(directory)
    for name in found:
        data = _DATA.fullmatch(name)
        if _UNFINISHED.fullmatch(name) or data and data.group(1) + '.index' not in found:
            _remove(directory, name)


def _remove(directory, name):
    """Remove a file that nobody needs, if possible."""
    with contextlib.suppress(OSError):
        os.remove(os.path.join(directory, name))


def keep_best(run, ckpt, precision):
    """Keep a checkpoint in place of the best one so far, if its precision is greater.

    The run's record names it. Whenever the process is killed, the record names one that is
    complete.

    Args:
      run: a RunDirectory.
      ckpt: the Checkpoint, with the very values that have been evaluated.
      precision: the share of the examples that are classified correctly.

    Raises:
      UserError: it cannot be saved; the best one so far is intact.
    """
    best = run.record.get('best')
    if best and precision <= best['precision']:
        return
    name = f'best.ckpt-{ckpt.step}'
    path = os.path.join(run.path, name)
    try:
        if best and best['checkpoint'] == name:  # A run that was killed has come here again.
            run.record['best'] = best = None
            run.write_record()
        _write(path, ckpt.values)
        run.record['best'] = {'checkpoint': name, 'precision': precision}
        run.write_record()
    except (tf.errors.OpError, OSError, UserError) as error:
        run.record['best'] = best
        _remove_other_best_files(run.path, best and best['checkpoint'])
        raise UserError(
            f'Cannot keep the best checkpoint ({errors.reason(error)}): make room for {path}'
        )
    _remove_other_best_files(run.path, name)
    print(f'Best so far: precision @ 1 = {precision:.3f}, kept as {path}')


def _write(path, values):
    """Write a checkpoint with the operation that a tf.train.Saver uses.

    The session's Saver would save the current values, which the workers of a cluster may have
    changed since the evaluation.
    """
    with tf.Graph().as_default(), tf.Session(
        config=tf.ConfigProto(device_count={'GPU': 0})
    ) as session:
        session.run(
            tf.raw_ops.SaveV2(
                prefix=path,
                tensor_names=list(values),
                shape_and_slices=[''] * len(values),
                tensors=list(values.values()),
            )
        )


def _remove_other_best_files(directory, kept_name):
    for name in file_names(directory):
        match = _BEST.fullmatch(name)
        if match and (match.group(1) != kept_name or match.group(3)):
            _remove(directory, name)
