"""Reading checkpoints, and checking what they hold before it is used."""

import os
import re
from typing import Dict, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import directories, errors, files
from cifar10.errors import UserError
from cifar10.runs import checkpoint_files

_AVERAGE = '/ExponentialMovingAverage'
# Patterns of TensorFlow's messages, and their meaning.
_DAMAGES = [
    ('checksum', 'its checksum is wrong'),
    ('less bytes|too short', 'it is incomplete'),
    ('sstable|tensor slices', 'its index is incomplete or overwritten'),
    ('No such file', 'one of its files is missing'),
]


class Checkpoint(NamedTuple):
    """A checkpoint in memory."""

    path: str
    step: int  # the number of updates in it
    values: Dict[str, np.ndarray]  # by variable name


def read_latest(directory):
    """Reads the newest intact checkpoint in `directory`, also while a trainer works there, which
    may replace it at any time.

    If it is not the one that the directory's list names as the latest, or not in the directory, a
    line says so.

    Returns:
      A Checkpoint, or None where there is none.

    Raises:
      UserError: there is a checkpoint or a list, but no intact checkpoint.
    """
    directories.check_for_checkpoints(directory)
    listing = os.path.join(directory, checkpoint_files.LISTING)
    before = checkpoint_files.stamp(directory)
    complaints = (
        []
        if checkpoint_files.listed_latest(directory)
        else [
            '%s %s'
            % (
                listing,
                'is damaged: it names no checkpoint' if os.path.exists(listing) else 'is missing',
            )
        ]
    )
    for path in checkpoint_files.candidates(directory):
        try:
            saved = read(path)
        except UserError as error:
            # a trainer has just saved the next one, and deleted an old one
            if checkpoint_files.stamp(directory) != before:
                return read_latest(directory)
            complaints.append(str(error))
            continue
        if not complaints and os.path.realpath(os.path.dirname(path)) != os.path.realpath(
            directory
        ):
            complaints.append('%s names a checkpoint in another directory' % listing)
        if complaints:
            print('%s. Using %s' % ('. '.join(complaints), path), flush=True)
        return saved
    if before or os.path.exists(listing):
        raise UserError(
            '%s. There is no other intact checkpoint: put back a copy of one, or use another directory'
            % '. '.join(complaints)
        )
    return None


def read(path):
    """Reads a whole checkpoint, which verifies its checksums.

    Its step is its global_step; if it has none, the number at the end of its name.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged, or its step is not a whole number, 0 or
        greater.
    """
    directory, name = os.path.split(path)
    # Before TensorFlow 0.12, a checkpoint was one file, without a suffix.
    form = re.compile(re.escape(name) + r'(\.index|\.data-\d+-of-\d+)?')
    parts = list(filter(form.fullmatch, checkpoint_files.names(directory)))
    if name not in parts and name + '.index' not in parts:
        raise UserError('The checkpoint %s is missing' % path)
    try:
        for part in parts:
            files.check_regular(os.path.join(directory, part), 'it cannot be read')
        reader = tf.train.load_checkpoint(path)
        values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        number = name.rsplit('-', 1)[-1]
        return Checkpoint(
            path,
            _valid_step(values.get('global_step', np.int64(number if number.isdigit() else 0))),
            values,
        )
    except UserError as error:
        raise UserError('The checkpoint %s is damaged (%s)' % (path, error))
    except (
        tf.errors.OpError,
        RuntimeError,
        ValueError,
        IndexError,
        OverflowError,
        OSError,
    ) as error:
        raise UserError(
            'The checkpoint %s is damaged (%s)'
            % (path, _damage(errors.reason(error).replace(path, '')))
        )


def _damage(message):
    """Returns the meaning of a message of TensorFlow in plain words; an unknown message
    unchanged."""
    return next(
        (words for pattern, words in _DAMAGES if re.search(pattern, message, re.IGNORECASE)),
        message,
    )


def _valid_step(value):
    """The value of a global step as an int; raises ValueError if it cannot be one."""
    value = np.asarray(value)
    # Listings of books count in float32.
    if (
        value.shape != ()
        or value.dtype.kind not in 'iuf'
        or not 0 <= value < 2**62
        or value != int(value)
    ):
        raise ValueError('its global_step is %s' % np.array2string(value, threshold=3))
    return int(value)


def suffix_in_use(saved):
    """What the names of the values end in with which a network is to be used: that of moving
    averages.

    If a Checkpoint has none, a line says so, and it is '', that of the weights themselves.
    """
    if any(name.endswith(_AVERAGE) for name in saved.values):
        return _AVERAGE
    print('%s has no moving averages: using the weights themselves' % saved.path, flush=True)
    return ''


def check_fits(saved, variables):
    """Checks that a checkpoint has a finite value of the right type and shape for each variable.

    Args:
      saved: a Checkpoint.
      variables: dict from names in the checkpoint to variables, or to tf.TensorSpecs.

    Raises:
      UserError: names the first variable that is missing in the checkpoint, has another type or
        shape there, or is not finite.
    """
    complaint = 'The checkpoint %s does not fit: %s. Give the directory of a run of this network'
    for name, variable in sorted(variables.items()):
        if name not in saved.values:
            raise UserError(complaint % (saved.path, 'it has no ' + name))
        value = saved.values[name]
        wanted = variable.dtype.base_dtype, variable.shape.as_list()
        if (value.dtype, list(value.shape)) != (wanted[0].as_numpy_dtype, wanted[1]):
            raise UserError(
                complaint
                % (
                    saved.path,
                    'its %s is %s %s, not %s %s'
                    % (name, value.dtype, list(value.shape), wanted[0].name, wanted[1]),
                )
            )
        if not np.isfinite(value).all():
            raise UserError(
                'The checkpoint %s cannot be used: its %s is not finite. Use an older one, by naming it in %s'
                % (
                    saved.path,
                    name,
                    os.path.join(os.path.dirname(saved.path), checkpoint_files.LISTING),
                )
            )
