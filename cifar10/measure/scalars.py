"""The numbers in event files, checked: they may be damaged, or not what they are called."""

import os

from google.protobuf import message

from cifar10 import files
from cifar10.errors import UserError
from cifar10.report import tensorboard

_GREATEST = 1e9  # no number of a run is greater
_MAX_RECORD_BYTES = 2**30  # nor any event longer
_REMEDY = 'move it away'


def read(directory, needed_tags, optional_tags=()):
    """Reads the event files in a directory. What a resumed run has repeated counts once.

    Args:
      directory: a directory that a trainer or an evaluation has written to.
      needed_tags: names of scalars that it must hold.
      optional_tags: names of scalars that it may hold.

    Returns:
      A dict from each tag to a dict from step to value, in the order of steps; the last value if a
      step has several.

    Raises:
      UserError: the directory does not exist, or lacks a tag, or holds what no run writes.
    """
    from tensorboard.backend.event_processing import event_accumulator

    if not os.path.isdir(directory):
        raise UserError(
            '%s %s: name a directory that a run has written to'
            % (directory, 'is not a directory' if os.path.lexists(directory) else 'does not exist')
        )
    event_files = [
        os.path.join(directory, name) for name in os.listdir(directory) if 'tfevents' in name
    ]
    for path in event_files:
        try:
            _check_file(path)
        except OSError as error:
            raise UserError('Cannot read %s (%s): %s' % (path, error.strerror, _REMEDY))
    accumulator = event_accumulator.EventAccumulator(
        directory, size_guidance={event_accumulator.SCALARS: 0}
    )
    try:
        if event_files:
            accumulator.Reload()
    except message.DecodeError as error:
        raise UserError('An event file in %s is damaged (%s): %s' % (directory, error, _REMEDY))
    found = accumulator.Tags()['scalars']
    for tag in needed_tags:
        if tag not in found:
            # A run tells its hyperparameters before its first step.
            is_short = (
                tag == tensorboard.EPOCH
                and tensorboard.HYPERPARAMETERS in accumulator.Tags()['tensors']
            )
            raise UserError(
                '%s holds no event file with "%s": %s'
                % (
                    directory,
                    tag,
                    'the run was shorter than --summary_steps, so train on with a smaller one'
                    if is_short
                    else 'name the directory of a run that has written summaries',
                )
            )
    return {
        tag: _checked(directory, tag, accumulator.Scalars(tag) if tag in found else [])
        for tag in list(needed_tags) + list(optional_tags)
    }


def _check_file(path):
    """Raises UserError if to read an event file would wait for ever, or end the process: TensorFlow
    believes any length."""
    files.check_regular(path, _REMEDY)
    with open(path, 'rb') as records:
        for header in iter(lambda: records.read(12), b''):
            # the other 4 bytes are its checksum
            length = int.from_bytes(header[:8], 'little') if len(header) == 12 else 0
            if length == 0:  # the file breaks off, or ends with zeros, after a crash
                break
            if length > _MAX_RECORD_BYTES:
                raise UserError('%s is damaged: %s' % (path, _REMEDY))
            records.seek(length + 4, os.SEEK_CUR)  # an event and its checksum


def _checked(directory, tag, points):
    values = {point.step: point.value for point in points}
    for step, value in values.items():
        if step < 0 or not 0 <= value <= _GREATEST:
            raise UserError(
                'An event file in %s is damaged, or not of a run ("%s" is %g at step %d): %s'
                % (directory, tag, value, step, _REMEDY)
            )
    return dict(sorted(values.items()))
