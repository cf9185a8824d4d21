"""Checkpoint files: names, order, saving, best checkpoint, unfinished files."""

import contextlib
import math
import os
import re

import tensorflow.compat.v1 as tf

PREFIX = 'model.ckpt'
CHECKPOINT_STATE_FILE = 'checkpoint'  # list written by a tf.train.Saver
_INDEX = re.compile(r'(model\.ckpt-(\d+))\.index')
_DATA = re.compile(r'(model\.ckpt-\d+)\.data-\d+-of-\d+')
_BEST = re.compile(r'(best\.ckpt-\d+)\.(index|data-\d+-of-\d+)(\.tempstate\d+)?')
# Temporary names of TensorFlow's BundleWriter and atomic_write_string_to_file, and of
# files.atomic_write. A process killed while it saves leaves such files.
_UNFINISHED = re.compile(
    r'(checkpoint|model\.ckpt-\d+\..*)\.(tempstate\d+|tmp[0-9a-f]{32})|run\.json\.new(\.\d+)?'
)


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

    A saver deletes old checkpoints. So the best checkpoint and other directories are omitted.

    Args:
      directory: the directory.
      last: a path to append, listed or not.
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


def remove_unfinished(directory):
    """Remove the files of failed saves: temporary files, and data without an index."""
    found = file_names(directory)
    for name in found:
        data = _DATA.fullmatch(name)
        if _UNFINISHED.fullmatch(name) or data and data.group(1) + '.index' not in found:
            _remove(directory, name)


def _remove(directory, name):
    """Remove a file, if possible."""
    with contextlib.suppress(OSError):
        os.remove(os.path.join(directory, name))


def write(path, values):
    """Write a checkpoint, a dict from variable name to array, with the op of a Saver.

    The Saver itself would save the session's values, which other workers may have changed.
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


def remove_other_best_files(directory, kept_name):
    """Remove the files of best checkpoints other than `kept_name`, which may be None."""
    for name in file_names(directory):
        match = _BEST.fullmatch(name)
        if match and (match.group(1) != kept_name or match.group(3)):
            _remove(directory, name)
