"""Directory of a training run and its record, run.json."""

import contextlib
import json
import math
import os
import re
import reprlib
import time
from typing import NamedTuple, Optional, Sequence

from cifar10.config import CHOICES, CLASSIC, HParams
from cifar10.data import dataset, verification
from cifar10.errors import UserError
from cifar10.runs import checkpoint, checkpoint_files
from cifar10.system import directories, files

RECORD = 'run.json'
_BEST = re.compile(r'best\.ckpt-\d+')
_CHECKPOINT_FILE = re.compile(r'\.(index|meta|data-\d+-of-\d+)$')
_RUN_FILE = re.compile(r'checkpoint|model\.ckpt-.*|events\..*|run\.json')


class RunDirectory(NamedTuple):
    """Training directory locked by this process."""

    path: str
    resumed: Optional[checkpoint.Checkpoint]  # None for a new run
    # hyperparameters, number of towers, data set, seed, best checkpoint
    record: dict
    lock: directories.Lock
    # paths of its checkpoints, oldest first; a tf.train.Saver deletes the oldest
    saved: Sequence[str]

    @property
    def saved_step(self):
        """The global step of the resumed checkpoint, or 0."""
        return self.resumed.step if self.resumed else 0

    def write_record(self):
        """Write the record for resumed runs and the evaluation; null is infinite."""
        record = {name: None if value == math.inf else value for name, value in self.record.items()}
        files.atomic_write(
            os.path.join(self.path, RECORD),
            json.dumps(record, indent=1, allow_nan=False),
            'make room there, or give another --train_dir',
        )


@contextlib.contextmanager
def lock(train_dir, fresh, job):
    """Lock the training directory for a new or resumed run, and yield its RunDirectory.

    Args:
      train_dir: the directory.
      fresh: True renames the directory of an existing run.
      job: the training.Job.

    Raises:
      UserError: directories.make or _check_resumable fails, another process trains in the
        directory, a training file is missing, or the record or all checkpoints are damaged.
    """
    train_dir = os.path.abspath(train_dir)  # '.' would follow the renamed directory.
    busy_message = (
        f'Another process is training in {train_dir}: stop it, or give another --train_dir'
    )
    directories.make(train_dir)
    if fresh and any(map(_RUN_FILE.fullmatch, checkpoint_files.file_names(train_dir))):
        with directories.Lock(train_dir, busy_message):
            _move_aside(train_dir)
        directories.make(train_dir)
    with directories.Lock(train_dir, busy_message) as train_dir_lock:
        resumed = checkpoint.read_latest(train_dir)
        record = dict(
            job.hparams._asdict(),
            num_towers=job.num_towers * job.batches_per_step,
            num_examples=job.num_examples,
            class_names=job.dataset.class_names,
            data_checksum=verification.total_checksum(job.dataset.train),
            last_step=job.run_length.last_step,
            seed=job.seed,
            deterministic=job.deterministic,
        )
        if resumed:
            _check_resumable(train_dir, record, job.hparams)
            record['best'] = _read_best(train_dir, job.intervals.keep_best)
        checkpoint_files.remove_unfinished(train_dir)
        yield RunDirectory(
            train_dir,
            resumed,
            record,
            train_dir_lock,
            checkpoint_files.listed_checkpoints(train_dir, resumed.path if resumed else None),
        )


def _read_best(train_dir, is_checked):
    """Return `best` of the record, or None.

    If `is_checked` and the checkpoint is damaged, print a line and return None.
    """
    best = read_record(train_dir).get('best')
    try:
        if best and is_checked:
            checkpoint.read(os.path.join(train_dir, best['checkpoint']))
        return best
    except UserError as error:
        print(f'{error}. The next evaluation replaces it')


def has_ended(train_dir, last_step=None):
    """Return True if the preferred checkpoint has reached the run's last step.

    Args:
      train_dir: the directory.
      last_step: the last step; None reads it from the record.

    Raises:
      UserError: the record is damaged.
    """
    if last_step is None:
        last_step = read_record(train_dir).get('last_step', math.inf)
    numbers = [path.rsplit('-', 1)[-1] for path in checkpoint_files.candidates(train_dir)[:1]]
    return any(number.isdigit() and int(number) >= last_step for number in numbers)


def _move_aside(train_dir):
    aside = f'{train_dir}.{time.strftime("%Y%m%d-%H%M%S")}'
    try:
        os.rename(train_dir, aside)
    except OSError as error:
        raise UserError(
            f'Cannot move the run aside ({error.strerror}), from {train_dir} to {aside}: give another --train_dir'
        )
    print(f'Moved the run in {train_dir} to {aside}')


def read_hparams(train_dir):
    """Return the recorded HParams; CLASSIC without a record.

    Raises:
      UserError: the record is damaged.
    """
    record = read_record(train_dir)
    return HParams(**{name: record[name] for name in HParams._fields}) if record else CLASSIC


def read_record(train_dir):
    """Return the record in the directory; {} if there is none.

    Missing fields of HParams get the values of CLASSIC; a missing last_step is infinite. Records of
    early versions may lack num_towers, num_examples, class_names (None if unknown),
    data_checksum, seed, deterministic, and best (None, or a dict with `checkpoint` and
    `precision`).

    Raises:
      UserError: the record is damaged.
    """
    hint = 'delete it to train or evaluate without the record'
    return files.read_json(os.path.join(train_dir, RECORD), _validate, hint) or {}


def _validate(record):
    """Return the record with each number converted to its type in HParams.

    Raises:
      ValueError, OverflowError: the record is invalid.
    """
    if not isinstance(record, dict):
        raise ValueError('it is not a JSON object')
    for name, classic in dict(CLASSIC._asdict(), last_step=math.inf).items():
        value = record.get(name, classic)
        if value is None and classic == math.inf:  # Early versions wrote Infinity.
            value = classic
        if not _is_valid(name, value, type(classic)):
            raise ValueError(f'{name} is {reprlib.repr(value)}')
        record[name] = type(classic)(value)
    names = record.get('class_names') or []
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name.isprintable() for name in names
    ):
        raise ValueError('class_names is not a list of names')
    best = record.get('best')
    if best and not (
        isinstance(best, dict)
        and _BEST.fullmatch(str(best.get('checkpoint')))
        and _is_number(best.get('precision'))
    ):
        raise ValueError(f'best is {reprlib.repr(best)}')
    return record


def _is_valid(name, value, kind):
    """Return True if a value is valid for the hyperparameter `name` of type `kind`."""
    if kind is str:
        return value in CHOICES[name]
    return _is_number(value) and kind(value) == value


def _is_number(value):
    return isinstance(value, (int, float)) and value >= 0


def check_classes(train_dir, class_names):
    """Check that the run was trained on these classes, if both are known.

    Raises:
      UserError: the classes differ, or the record is damaged.
    """
    recorded = read_record(train_dir).get('class_names')
    if recorded and class_names and recorded != list(class_names):
        raise UserError(
            f'The run in {train_dir} was trained on other classes ({dataset.format_class_names(recorded)}) than those of '
            f'the data ({dataset.format_class_names(class_names)}): give its data, or the directory '
            'of another run'
        )


def _check_resumable(train_dir, record, hparams):
    """Compare a new record with that on disk; print the changed values.

    Raises:
      UserError: the classes, recipe, optimizer, training files or (for schedules in epochs) number
        of examples differ.
    """
    recorded = dict(record, **read_record(train_dir))  # Missing items are unchanged.
    remedy = 'give the same, another --train_dir, or --fresh to move it aside'
    # Other optimizers have other variables.
    unchangeable_names = ['class_names', 'recipe', 'optimizer']
    # Records of early versions may have this number without a checksum.
    for name in unchangeable_names + ['num_examples'] * hparams.is_epoch_based:
        if recorded[name] != record[name]:
            formatted = dataset.format_class_names if name == 'class_names' else str
            raise UserError(
                f'The run in {train_dir} was trained with {name} {formatted(recorded[name])}, not '
                f'{formatted(record[name])}: {remedy}'
            )
    if recorded['data_checksum'] != record['data_checksum']:
        raise UserError(f'The run in {train_dir} was trained on other training images: {remedy}')
    unused = {'last_step'}
    if not recorded['deterministic'] and not record['deterministic']:
        unused |= {'seed', 'deterministic'}  # the run is not reproducible
    changed = [
        f'{name} {value} (was {recorded[name]})'
        for name, value in record.items()
        if name not in unused and recorded[name] != value and hparams.has_effect(name)
    ]
    if changed:
        print(
            f'The run in {train_dir} is resumed with different hyperparameters: {", ".join(changed)}. The learning-rate '
            'schedule uses the new values for the past steps too'
        )


def read_checkpoint(directory, choice):
    """Read the checkpoint of a user's choice.

    Args:
      directory: directory of the checkpoints.
      choice: 'latest'; 'best', see --keep_best; or the path of a checkpoint or of one of its files.

    Returns:
      A Checkpoint.

    Raises:
      UserError: the checkpoint is missing or damaged.
    """
    if choice == 'latest':
        latest = checkpoint.read_latest(directory)
        if latest is None:
            raise UserError(
                f'There is no checkpoint in {directory}: train first, or give another --checkpoint_dir'
            )
        return latest
    path = _CHECKPOINT_FILE.sub('', choice)
    if choice == 'best':
        best = read_record(directory).get('best')
        if not best:
            raise UserError(
                f'The run in {directory} has kept no best checkpoint: train with --keep_best'
            )
        path = os.path.join(directory, best['checkpoint'])
    try:
        return checkpoint.read(path)
    except UserError as error:
        if (
            choice == 'best' and read_record(directory).get('best') != best
        ):  # A trainer replaced it.
            return read_checkpoint(directory, choice)
        raise UserError(
            f'{error}. Give --checkpoint=latest, or the path of another checkpoint; for a directory, use --checkpoint_dir'
        )
