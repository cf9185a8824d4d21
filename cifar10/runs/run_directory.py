"""The directory of a training run: new, resumed, or moved aside; and its record, run.json: what is
trained there, for the next start to compare and for the evaluation."""

import contextlib
import glob
import json
import math
import os
import re
import reprlib
import sys
import time
from typing import NamedTuple, Optional, Sequence

from cifar10 import directories, files
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, LR_SCALINGS, OPTIMIZERS, RECIPES, SCHEDULES, HParams
from cifar10.runs import checkpoint, checkpoint_files

RECORD = 'run.json'
_BEST = re.compile(r'best\.ckpt-\d+')
_WORDS = {
    'recipe': list(RECIPES),
    'optimizer': OPTIMIZERS,
    'schedule': SCHEDULES,
    'lr_scaling': LR_SCALINGS,
}
_FILE = re.compile(r'\.(index|meta|data-\d+-of-\d+)$')  # of the files of a checkpoint
# of a process that was killed
_LEFTOVER = re.compile(re.escape(RECORD) + r'\.new(\.\d+)?')


class RunDirectory(NamedTuple):
    """A training directory that this process holds."""

    path: str
    resumed: Optional[checkpoint.Checkpoint]  # from which training is resumed
    # the hyperparameters, the number of towers, what the data set holds, the seed, the best
    # checkpoint
    record: dict
    place: directories.Place
    # the paths of its checkpoints, oldest first, of which a tf.train.Saver deletes the oldest
    saved: Sequence[str]

    @property
    def first_step(self):
        """The step from which training is resumed, or 0."""
        return self.resumed.step if self.resumed else 0

    def write_record(self):
        """Records in the directory what is trained in it, for the next start to compare."""
        path = os.path.join(self.path, RECORD)
        for leftover in filter(_LEFTOVER.fullmatch, checkpoint_files.names(self.path)):
            with contextlib.suppress(OSError):
                os.remove(os.path.join(self.path, leftover))
        files.write_whole(
            path, json.dumps(self.record, indent=1), 'make room there, or give another --train_dir'
        )


@contextlib.contextmanager
def held(train_dir, fresh, job):
    """Holds the training directory for a new run, or to resume the run in it, and yields its
    RunDirectory.

    Args:
      train_dir: the directory.
      fresh: whether to move an existing run aside.
      job: the training.Job.

    Raises:
      UserError: the directory's name cannot be used, another process trains there or another user
        controls it, its run has other classes, another number of examples, another recipe or
        another optimizer, or its record or all its checkpoints are damaged.
    """
    train_dir = os.path.abspath(train_dir)  # "." would move with the directory
    directories.check_for_checkpoints(train_dir)
    busy = 'Another process is training in %s: stop it, or give another --train_dir' % train_dir
    directories.make(train_dir)
    if fresh and _holds_run(train_dir):
        with directories.locked(train_dir, busy):
            _move_aside(train_dir, job.data.directory)
        directories.make(train_dir)
    with directories.locked(train_dir, busy), directories.Place(train_dir) as place:
        resumed = checkpoint.read_latest(train_dir)
        record = dict(
            job.hparams._asdict(),
            num_towers=job.num_towers * job.batches_per_step,
            num_examples=job.num_examples,
            class_names=job.data.class_names,
            last_step=job.pace.last_step,
            seed=job.seed,
            deterministic=job.deterministic,
        )
        if resumed:
            _compare(train_dir, record, job.hparams)
            record['best'] = (
                _intact_best(train_dir) if job.intervals.keep_best else recorded_best(train_dir)
            )
        checkpoint_files.remove_unfinished(train_dir)
        yield RunDirectory(
            train_dir,
            resumed,
            record,
            place,
            checkpoint_files.listed(train_dir, resumed.path if resumed else None),
        )


def _intact_best(train_dir):
    """Returns the recorded best checkpoint, see recorded_best; None, with a message, if
    it cannot be read."""
    best = recorded_best(train_dir)
    if best:
        try:
            checkpoint.read(os.path.join(train_dir, best['checkpoint']))
        except UserError as error:
            print(
                '%s. The next evaluation replaces it as the best one, whatever its precision'
                % error,
                flush=True,
            )
            return None
    return best


def resumed_hparams(train_dir):
    """Returns the recorded HParams of the run in the directory that would be resumed; None if there
    is none.

    Raises:
      UserError: the record is damaged.
    """
    if not checkpoint_files.candidates(train_dir) or not read_record(train_dir):
        return None
    return recorded_hparams(train_dir)


def has_ended(train_dir, last_step=None):
    """Whether the run in the directory, if there is one, has been saved at its last step.

    Args:
      train_dir: the directory.
      last_step: of the run; None takes the recorded one.

    Raises:
      UserError: the record is damaged.
    """
    last_step = recorded_last_step(train_dir) if last_step is None else last_step
    numbers = [path.rsplit('-', 1)[-1] for path in checkpoint_files.candidates(train_dir)[:1]]
    return any(number.isdigit() and int(number) >= last_step for number in numbers)


def _holds_run(train_dir):
    return any(
        glob.glob(os.path.join(glob.escape(train_dir), pattern))
        for pattern in ('checkpoint', 'model.ckpt-*', 'events.*', RECORD)
    )


def _move_aside(train_dir, data_dir):
    data_path = os.path.realpath(data_dir)
    if (data_path + os.sep).startswith(os.path.realpath(train_dir) + os.sep):
        raise UserError(
            '--fresh would move the data in %s together with %s: give another --train_dir'
            % (data_path, train_dir)
        )
    aside = _free_name('%s.%s' % (train_dir, time.strftime('%Y%m%d-%H%M%S')))
    try:
        os.rename(train_dir, aside)
    except OSError as error:
        raise UserError(
            'Cannot move the run aside (%s), from %s to %s: give another --train_dir'
            % (error.strerror, train_dir, aside)
        )
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
    record = read_record(train_dir)
    return HParams(**{name: record[name] for name in HParams._fields}) if record else CLASSIC


def recorded_last_step(train_dir):
    """The step at which the run in the directory ends; infinite if none is recorded.

    Raises:
      UserError: the record is damaged.
    """
    return (read_record(train_dir) or {}).get('last_step', math.inf)


def recorded_best(train_dir):
    """The best checkpoint that the run in the directory has kept: its name, `checkpoint`, and its
    `precision`; None if it has not.

    Raises:
      UserError: the record is damaged.
    """
    return (read_record(train_dir) or {}).get('best')


def read_record(train_dir):
    """The record in the directory, or None if there is none.

    Raises:
      UserError: the record is damaged.
    """
    return files.read_json(
        os.path.join(train_dir, RECORD),
        _validated,
        'delete it to train or evaluate without the record',
    )


def _validated(record):
    """The record with its numbers in the types of HParams; a field that an earlier version did not
    record is classic.

    Raises:
      ValueError: it is not the record of a run.
    """
    if not isinstance(record, dict):
        raise ValueError('it is not a JSON object')
    for name in ('num_towers', 'class_names'):
        if name not in record:
            raise ValueError('%s is missing' % name)
    _check_number('num_towers', record['num_towers'])
    for name in ('num_examples', 'last_step'):  # which version 1.1 did not record
        if name in record:
            _check_number(name, record[name])
    names = record['class_names']
    if names is not None and not (
        isinstance(names, list)
        and all(isinstance(name, str) and name.isprintable() for name in names)
    ):
        raise ValueError('class_names is not a list of names')
    best = record.get('best')
    if best is not None:
        if not (isinstance(best, dict) and _BEST.fullmatch(str(best.get('checkpoint')))):
            raise ValueError('best names no checkpoint')
        _check_number('the precision of best', best.get('precision'))
    seed = record.get('seed')
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**31):
        raise ValueError('seed is %s' % reprlib.repr(seed))
    if not isinstance(record.get('deterministic', False), bool):
        raise ValueError('deterministic is %s' % reprlib.repr(record['deterministic']))
    values = dict(record)
    for name, classic in CLASSIC._asdict().items():
        value = record.get(name, classic)
        if name in _WORDS and value not in _WORDS[name]:
            raise ValueError(
                '%s is %s, not one of %s' % (name, reprlib.repr(value), ', '.join(_WORDS[name]))
            )
        if name not in _WORDS:
            _check_number(name, value)
            if isinstance(classic, int) and value != int(value):
                raise ValueError('%s is %s, not a whole number' % (name, reprlib.repr(value)))
        values[name] = type(classic)(value)
    return values


def _check_number(name, value):
    """Raises ValueError unless the value is a number that is not negative; only the end of a run
    may be infinite."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_endless = name in ('epochs', 'last_step') and value == math.inf
    if not is_number or not is_endless and not 0 <= value <= sys.float_info.max:
        raise ValueError('%s is %s' % (name, reprlib.repr(value)))


def check_classes(train_dir, class_names):
    """Checks that the run in the directory has been trained on these classes, as far as both are
    known.

    Raises:
      UserError: it has been trained on others, or the record is damaged.
    """
    recorded = (read_record(train_dir) or {}).get('class_names')
    if recorded and class_names and recorded != list(class_names):
        raise UserError(
            'The run in %s was trained on other classes (%s) than those of the data (%s): give its data, or the directory '
            'of another run' % (train_dir, dataset.listed(recorded), dataset.listed(class_names))
        )


def _compare(train_dir, record, hparams):
    """Compares the recorded run with the one that is to resume it, and prints which hyperparameters
    and which seed differ.

    Raises:
      UserError: the classes, the recipe or the optimizer differ, or the number of examples where
        the schedule depends on it.
    """
    recorded = read_record(train_dir)
    if not recorded:
        return
    if recorded['class_names'] != record['class_names']:
        raise UserError(
            'The run in %s was trained on other classes (%s): give another --train_dir, or --fresh to move it aside'
            % (train_dir, dataset.listed(recorded['class_names']))
        )
    num_examples = recorded.setdefault('num_examples', record['num_examples'])
    if num_examples != record['num_examples'] and hparams.counts_epochs:
        raise UserError(
            'The run in %s was trained on %d examples, not %d, and its schedule counts epochs: give the same data, '
            'another --train_dir, or --fresh to move it aside'
            % (train_dir, num_examples, record['num_examples'])
        )
    for name in ('recipe', 'optimizer'):  # other optimizers have other variables
        if recorded[name] != record[name]:
            raise UserError(
                'The run in %s was trained with --%s=%s, not %s: give the same, another --train_dir, or --fresh to move '
                'it aside' % (train_dir, name, recorded[name], record[name])
            )
    changed = [
        '%s %s (was %s)' % (name, record[name], recorded[name])
        for name in record
        if name not in ('last_step', 'seed', 'deterministic')
        and recorded[name] != record[name]
        and hparams.has_effect(name)
    ]
    if changed:
        print(
            'The run in %s is resumed with different hyperparameters: %s. The learning-rate schedule counts the steps so far as '
            'if they had been made with these' % (train_dir, ', '.join(changed)),
            flush=True,
        )
    # earlier versions did not record it
    if 'deterministic' in recorded and _determined_by(recorded) != _determined_by(record):
        print(
            'The run in %s used %s; now it uses %s. To repeat it exactly, use the same flags at each start'
            % (train_dir, _determined_by(recorded), _determined_by(record)),
            flush=True,
        )


def _determined_by(record):
    """Returns the flags that determine the random numbers of a run."""
    return (
        '--deterministic --seed=%s' % record.get('seed')
        if record['deterministic']
        else 'no --deterministic'
    )


def read_chosen(directory, choice):
    """Reads the checkpoint that a user has chosen.

    Args:
      directory: of the checkpoints.
      choice: 'latest'; 'best', the one that --keep_best keeps; or the path of a checkpoint, or of
        one of its files.

    Returns:
      A Checkpoint.

    Raises:
      UserError: there is no such checkpoint, or it is damaged.
    """
    if choice == 'latest':
        latest = checkpoint.read_latest(directory)
        if latest is None:
            raise UserError(
                'There is no checkpoint in %s: train first, or give another --checkpoint_dir'
                % directory
            )
        return latest
    if os.path.isdir(choice) and choice != 'best':
        raise UserError('%s is a directory: give it as --checkpoint_dir' % choice)
    try:
        return _read_best(directory) if choice == 'best' else checkpoint.read(_FILE.sub('', choice))
    except UserError as error:
        raise UserError('%s. Give --checkpoint=latest, or the path of another checkpoint' % error)


def _read_best(directory):
    best = recorded_best(directory)
    if not best:
        raise UserError(
            'The run in %s has kept no best checkpoint: train with --keep_best' % directory
        )
    try:
        return checkpoint.read(os.path.join(directory, best['checkpoint']))
    except UserError:
        if recorded_best(directory) != best:  # a trainer has just kept a better one
            return _read_best(directory)
        raise
