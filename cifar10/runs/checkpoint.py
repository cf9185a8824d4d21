"""Finding and reading checkpoints, and checking what they hold before it is used."""
import math
import os
import re
from typing import Dict, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import files
from cifar10.errors import UserError

PREFIX = 'model.ckpt'
LISTING = 'checkpoint'  # the file in which a tf.train.Saver lists what it has saved
_INDEX = re.compile(r'%s-(\d+)\.index' % re.escape(PREFIX))
# What a process that was killed while it saved leaves behind: names in TensorFlow's BundleWriter and atomic_write_string_to_file.
_UNFINISHED = re.compile(r'%s-\d+\.(data-\d+-of-\d+|index)\.tempstate\d+|(%s|%s-\d+\.meta)\.tmp[0-9a-f]{32}'
                         % (re.escape(PREFIX), LISTING, re.escape(PREFIX)))


class Checkpoint(NamedTuple):
    """A checkpoint in memory."""
    path: str
    step: int  # the number of updates in it
    values: Dict[str, np.ndarray]  # by variable name


def check_directory(directory):
    """Checks that TensorFlow reads the name of a directory of checkpoints as what it is.

    To it `*`, `?`, `[`, `]` and a backslash in the name of a checkpoint are a pattern: it would read, or delete, what lies in other
    directories.

    Raises:
      UserError: it does not.
    """
    files.check_name(directory)
    path = os.path.abspath(directory)
    files.check_name(path)
    if any(character in path for character in '*?[]\\'):
        raise UserError('%s has one of the characters * ? [ ] \\, which TensorFlow reads as a pattern: rename it, or give another '
                        'directory' % path)


def candidates(directory):
    """The paths of the checkpoints in `directory`, the one to use first: the latest of the list there, then by step.

    A checkpoint that was completed after the list was written comes before the latest of the list: the process that saved it was
    killed in between.

    Raises:
      UserError: the list is a directory, a FIFO or the like.
    """
    found = filter(None, map(_INDEX.fullmatch, _names(directory)))
    steps = {os.path.join(directory, '%s-%s' % (PREFIX, match.group(1))): int(match.group(1)) for match in found}
    paths = sorted(steps, key=steps.get, reverse=True)
    first = listed_latest(directory)
    if first is None:
        return paths
    listed_time = _modification_time(os.path.join(directory, LISTING))
    newer = [path for path in paths if steps[path] > steps.get(first, math.inf) and saved_time(path) > listed_time]
    return newer + [first] + [path for path in paths if path != first and path not in newer]


def listed_latest(directory):
    """The path that the directory's list names as the latest; None if there is no list, or if it names none.

    Raises:
      UserError: the list is a directory, a FIFO or the like.
    """
    state = _state(directory)
    return state.model_checkpoint_path if state else None


def listed(directory):
    """The paths of the existing checkpoints that the directory's list names and that are in the directory itself, oldest first.

    A list can name what is elsewhere, as in a copy of a directory; a saver that knew of it would delete it there.

    Raises:
      UserError: the list is a directory, a FIFO or the like.
    """
    state = _state(directory)
    return [path for path in (state.all_model_checkpoint_paths if state else [])
            if os.path.dirname(path) == directory and _INDEX.fullmatch(os.path.basename(path) + '.index') and saved_time(path)]


def _state(directory):
    listing = os.path.join(directory, LISTING)
    if not os.path.exists(listing):
        return None
    files.check_regular(listing, 'remove it, and the newest checkpoint is used')
    try:
        return tf.train.get_checkpoint_state(directory)
    except (ValueError, tf.errors.OpError):  # it names none, or has just been removed
        return None


def saved_time(path):
    """The modification time of the file of a checkpoint that a saver completes last; 0 where there is none."""
    return _modification_time(path + '.index')


def _modification_time(path):
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0


def _names(directory):
    try:
        return os.listdir(directory or '.')
    except OSError:  # it does not exist, or has just been moved
        return []


def stamp(directory):
    """A value that differs as soon as another checkpoint is to be used first, even if a new run has saved it under the same name."""
    return [(path, saved_time(path)) for path in candidates(directory)[:1]]


def read_latest(directory):
    """Reads the newest intact checkpoint in `directory`, also while a trainer works there, which may replace it at any time.

    If it is not the one that the directory's list names as the latest, a line says so.

    Returns:
      A Checkpoint, or None where there is none.

    Raises:
      UserError: there is a checkpoint or a list, but no intact checkpoint.
    """
    check_directory(directory)
    listing = os.path.join(directory, LISTING)
    before = stamp(directory)
    complaints = [] if listed_latest(directory) else ['%s %s' % (
        listing, 'is damaged: it names no checkpoint' if os.path.exists(listing) else 'is missing')]
    for path in candidates(directory):
        try:
            saved = read(path)
        except UserError as error:
            if stamp(directory) != before:  # a trainer has just saved the next one, and deleted an old one
                return read_latest(directory)
            complaints.append(str(error))
            continue
        if complaints:
            print('%s. Using %s' % ('. '.join(complaints), path), flush=True)
        return saved
    if before or os.path.exists(listing):
        raise UserError('%s. There is no other intact checkpoint: put back a copy of one, or use another directory'
                        % '. '.join(complaints))
    return None


def read(path):
    """Reads a whole checkpoint, which verifies its checksums.

    Its step is its global_step; if it has none, the number at the end of its name.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged, or its step is not a whole number, 0 or greater.
    """
    directory, name = os.path.split(path)
    parts = [part for part in _names(directory) if part.startswith(name + '.')]
    if name + '.index' not in parts and not os.path.exists(path):  # before TensorFlow 0.12, a checkpoint had no suffixes
        raise UserError('The checkpoint %s is missing' % path)
    try:
        for part in parts:
            files.check_regular(os.path.join(directory, part), 'it is no part of a checkpoint')
        reader = tf.train.load_checkpoint(path)
        values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        number = name.rsplit('-', 1)[-1]
        return Checkpoint(path, _valid_step(values.get('global_step', np.int64(number if number.isdigit() else 0))), values)
    except (tf.errors.OpError, RuntimeError, ValueError, IndexError, OverflowError, OSError, UserError) as error:
        raise UserError('The checkpoint %s is damaged (%s)' % (path, str(error).splitlines()[0]))


def _valid_step(value):
    """The value of a global step as an int; raises ValueError if it cannot be one."""
    value = np.asarray(value)
    # Listings of books count in float32.
    if value.shape != () or value.dtype.kind not in 'iuf' or not 0 <= value < 2 ** 62 or value != int(value):
        raise ValueError('its global_step is %s' % np.array2string(value, threshold=3))
    return int(value)


def remove_unfinished(directory, failed_step=None):
    """Removes what processes that were killed while they saved have left in `directory`.

    Args:
      directory: of the checkpoints; no other process saves there.
      failed_step: the step whose checkpoint could not be saved; its data without an index takes room that others need.
    """
    data = re.compile(r'%s-%s\.data-\d+-of-\d+' % (re.escape(PREFIX), failed_step))
    has_index = os.path.isfile(os.path.join(directory, '%s-%s.index' % (PREFIX, failed_step)))
    for name in os.listdir(directory):
        if _UNFINISHED.fullmatch(name) or (data.fullmatch(name) and not has_index):
            os.remove(os.path.join(directory, name))


def check_fits(saved, variables):
    """Checks that a checkpoint has a finite value of the right type and shape for each variable.

    Args:
      saved: a Checkpoint.
      variables: dict from names in the checkpoint to variables.

    Raises:
      UserError: names the first variable that is missing in the checkpoint, has another type or shape there, or is not finite.
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
        if not np.isfinite(value).all():
            raise UserError('The checkpoint %s cannot be used: its %s is not finite. Use an older one, by naming it in %s' % (
                saved.path, name, os.path.join(os.path.dirname(saved.path), LISTING)))
