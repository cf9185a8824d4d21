"""The directory of a training run: new, resumed, or moved aside."""
import contextlib
import glob
import json
import math
import os
import reprlib
import sys
import time
from typing import NamedTuple, Optional, Sequence

from cifar10 import files
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, LR_SCALINGS, OPTIMIZERS, RECIPES, SCHEDULES, HParams
from cifar10.runs import checkpoint, checkpoint_files

_RECORD = 'run.json'
_MAX_CHARACTERS = 1 << 20  # of a record; one has a few hundred
_WORDS = {'recipe': list(RECIPES), 'optimizer': OPTIMIZERS, 'schedule': SCHEDULES, 'lr_scaling': LR_SCALINGS}


class RunDirectory(NamedTuple):
    """A training directory that this process holds."""
    path: str
    resumed: Optional[checkpoint.Checkpoint]  # from which training is resumed
    record: dict  # the hyperparameters, the number of towers, what the data set holds
    place: files.Place
    saved: Sequence[str]  # the paths of its checkpoints, oldest first, of which a tf.train.Saver deletes the oldest

    def write_record(self):
        """Records in the directory what is trained in it, for the next start to compare."""
        files.write_whole(os.path.join(self.path, _RECORD), json.dumps(self.record, indent=1),
                          'make room there, or give another --train_dir')


@contextlib.contextmanager
def held(train_dir, fresh, job):
    """Holds the training directory for a new run, or to resume the run in it, and yields its RunDirectory.

    Args:
      train_dir: the directory.
      fresh: whether to move an existing run aside.
      job: the training.Job.

    Raises:
      UserError: the directory's name cannot be used, another process trains there or another user controls it, its run has other
        classes, another number of examples, another recipe or another optimizer, or its record or all its checkpoints are damaged.
    """
    train_dir = os.path.abspath(train_dir)  # "." would move with the directory
    checkpoint_files.check_directory(train_dir)
    busy = 'Another process is training in %s: stop it, or give another --train_dir' % train_dir
    files.make_directory(train_dir)
    if fresh and _holds_run(train_dir):
        with files.locked(train_dir, busy):
            _move_aside(train_dir, job.data_dir)
        files.make_directory(train_dir)
    with files.locked(train_dir, busy), files.Place(train_dir) as place:
        resumed = checkpoint.read_latest(train_dir)
        record = dict(job.hparams._asdict(), num_towers=len(job.devices), num_examples=job.num_examples,
                      class_names=dataset.class_names(job.data_dir))
        if resumed:
            _compare(train_dir, record, job.hparams)
        checkpoint_files.remove_unfinished(train_dir)
        yield RunDirectory(train_dir, resumed, record, place, checkpoint_files.listed(train_dir, resumed.path if resumed else None))


def _holds_run(train_dir):
    return any(glob.glob(os.path.join(glob.escape(train_dir), pattern))
               for pattern in ('checkpoint', 'model.ckpt-*', 'events.*', _RECORD))


def _move_aside(train_dir, data_dir):
    data_path = os.path.realpath(data_dir)
    if (data_path + os.sep).startswith(os.path.realpath(train_dir) + os.sep):
        raise UserError('--fresh would move the data in %s together with %s: give another --train_dir' % (data_path, train_dir))
    aside = _free_name('%s.%s' % (train_dir, time.strftime('%Y%m%d-%H%M%S')))
    try:
        os.rename(train_dir, aside)
    except OSError as error:
        raise UserError('Cannot move %s to %s (%s): give another --train_dir' % (train_dir, aside, error.strerror))
    print('Moved the run in %s to %s' % (train_dir, aside), flush=True)


def _free_name(path):
    """The path, with a number after it if it exists: several runs may be moved in one second."""
    free, number = path, 1
    while os.path.exists(free):
        number += 1
        free = '%s-%d' % (path, number)
    return free


def recorded_hparams(train_dir):
    """The HParams of the run in the directory; the classic ones if none are recorded.

    Raises:
      UserError: the record is damaged.
    """
    record = _read_record(train_dir)
    return HParams(**{name: record[name] for name in HParams._fields}) if record else CLASSIC


def _read_record(train_dir):
    """The record in the directory, or None if there is none.

    Raises:
      UserError: the record is damaged.
    """
    path = os.path.join(train_dir, _RECORD)
    if not os.path.exists(path):
        return None
    remedy = 'delete it to train or evaluate without the record'
    files.check_regular(path, remedy)
    try:
        with open(path) as opened:
            return _validated(json.loads(opened.read(_MAX_CHARACTERS)))
    except (ValueError, OSError, RecursionError) as error:
        raise UserError('%s is damaged (%s): %s' % (path, error, remedy))


def _validated(record):
    """The record with its numbers in the types of HParams; a field that an earlier version did not record is classic.

    Raises:
      ValueError: it is not the record of a run.
    """
    if not isinstance(record, dict):
        raise ValueError('it is not a JSON object')
    for name in ('num_towers', 'class_names'):
        if name not in record:
            raise ValueError('%s is missing' % name)
    _check_number('num_towers', record['num_towers'])
    if 'num_examples' in record:  # version 1.1 did not record it
        _check_number('num_examples', record['num_examples'])
    names = record['class_names']
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) and name.isprintable() for name in names)):
        raise ValueError('class_names is not a list of names')
    values = dict(record)
    for name, classic in CLASSIC._asdict().items():
        value = record.get(name, classic)
        if name in _WORDS and value not in _WORDS[name]:
            raise ValueError('%s is %s, not one of %s' % (name, reprlib.repr(value), ', '.join(_WORDS[name])))
        if name not in _WORDS:
            _check_number(name, value)
            if isinstance(classic, int) and value != int(value):
                raise ValueError('%s is %s, not a whole number' % (name, reprlib.repr(value)))
        values[name] = type(classic)(value)
    return values


def _check_number(name, value):
    """Raises ValueError unless the value is a number that is not negative; only `epochs` may be infinite."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= (math.inf if name == 'epochs' else sys.float_info.max):
        raise ValueError('%s is %s' % (name, reprlib.repr(value)))


def _compare(train_dir, record, hparams):
    """Compares the recorded run with the one that is to resume it, and prints which hyperparameters differ.

    Raises:
      UserError: the classes, the recipe or the optimizer differ, or the number of examples where the schedule depends on it.
    """
    recorded = _read_record(train_dir)
    if not recorded:
        return
    if recorded['class_names'] != record['class_names']:
        raise UserError('The run in %s was trained on other classes (%s): give another --train_dir, or --fresh to move it aside'
                        % (train_dir, ', '.join(recorded['class_names'] or ['unknown'])))
    num_examples = recorded.setdefault('num_examples', record['num_examples'])
    if num_examples != record['num_examples'] and hparams.counts_epochs:
        raise UserError('The run in %s was trained on %d examples, not %d, and its schedule counts epochs: give the same data, '
                        'another --train_dir, or --fresh to move it aside' % (train_dir, num_examples, record['num_examples']))
    for name in ('recipe', 'optimizer'):  # other optimizers have other variables
        if recorded[name] != record[name]:
            raise UserError('The run in %s was trained with --%s=%s, not %s: give the same, another --train_dir, or --fresh to move '
                            'it aside' % (train_dir, name, recorded[name], record[name]))
    changed = ['%s %s (was %s)' % (name, record[name], recorded[name]) for name in record
               if recorded[name] != record[name] and hparams.has_effect(name)]
    if changed:
        print('The run in %s is resumed with different hyperparameters: %s. The learning-rate schedule counts the steps so far as '
              'if they had been made with these' % (train_dir, ', '.join(changed)), flush=True)
