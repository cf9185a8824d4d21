"""The directory of a training run: new, gone on with, or moved aside."""
import contextlib
import glob
import json
import os
import time
from typing import NamedTuple, Optional

from cifar10 import files as directory
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, HParams

_RECORD = 'run.json'


class RunDirectory(NamedTuple):
    """A training directory that this process holds."""
    path: str
    resumed: Optional[checkpoint.Checkpoint]  # from which training goes on
    record: dict  # the hyperparameters, the number of towers, the class names

    def write_record(self):
        """Records in the directory what is trained in it, for the next start to compare."""
        path = os.path.join(self.path, _RECORD)
        try:
            with open(path + '.new', 'w') as new:
                json.dump(self.record, new, indent=1)
            os.replace(path + '.new', path)
        except OSError as error:
            raise UserError('Cannot write %s (%s): make room for it, or give another --train_dir' % (path, error.strerror))


@contextlib.contextmanager
def held(train_dir, fresh, hparams, num_towers, data_dir):
    """Holds the training directory for a new run or for going on with the one in it, and yields its RunDirectory.

    Args:
      train_dir: the directory.
      fresh: whether to move a run that is in it aside.
      hparams: an HParams.
      num_towers: how many towers take a batch in each step.
      data_dir: parent of cifar-10-batches-bin.

    Raises:
      UserError: another process trains in the directory, its run is on other data, of another recipe or with another optimizer,
        or its checkpoint is missing or damaged.
    """
    train_dir = os.path.abspath(train_dir)  # "." would go along with what is moved aside
    busy = 'Another process is training in %s: stop it, or give another --train_dir' % train_dir
    directory.make(train_dir)
    if fresh and _holds_run(train_dir):
        with directory.locked(train_dir, busy):
            _move_aside(train_dir, data_dir)
        directory.make(train_dir)
    with directory.locked(train_dir, busy):
        resumed = checkpoint.read_latest(train_dir)
        record = dict(hparams._asdict(), num_towers=num_towers, class_names=dataset.class_names(data_dir))
        if resumed:
            _compare(train_dir, record, hparams)
        yield RunDirectory(train_dir, resumed, record)


def _holds_run(train_dir):
    return any(glob.glob(os.path.join(glob.escape(train_dir), pattern))
               for pattern in ('checkpoint', 'model.ckpt-*', 'events.*', _RECORD))


def _move_aside(train_dir, data_dir):
    data = os.path.abspath(data_dir)
    if (data + os.sep).startswith(train_dir + os.sep):
        raise UserError('--fresh would move the data in %s together with %s: give another --train_dir' % (data, train_dir))
    aside = '%s.%s' % (train_dir, time.strftime('%Y%m%d-%H%M%S'))
    try:
        os.rename(train_dir, aside)
    except OSError as error:
        raise UserError('Cannot move %s to %s (%s): give another --train_dir' % (train_dir, aside, error.strerror))
    print('Moved the run in %s to %s' % (train_dir, aside), flush=True)


def recorded_hparams(train_dir):
    """The HParams of the run in the directory; the classic ones where none are recorded.

    Raises:
      UserError: the record is damaged.
    """
    record = _read_record(train_dir)
    return HParams(*[record[name] for name in HParams._fields]) if record else CLASSIC


def _read_record(train_dir):
    """The record in the directory, or None. What one of an earlier version lacks is classic."""
    path = os.path.join(train_dir, _RECORD)
    if not os.path.exists(path):
        return None
    try:
        with open(path) as old:
            record = dict(CLASSIC._asdict(), **json.load(old))
        record.update({name: type(value)(record[name]) for name, value in CLASSIC._asdict().items()})
        ', '.join(record['class_names'] or []), record['num_towers']
        return record
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError('%s is damaged (%r): delete it to do without what it records' % (path, error))


def _compare(train_dir, record, hparams):
    """Refuses to go on with a run on other data, of another recipe or with another optimizer; says which numbers have changed."""
    was = _read_record(train_dir)
    if not was:
        return
    if was['class_names'] != record['class_names']:
        raise UserError('The run in %s is on a data set with other classes (%s): give another --train_dir, or --fresh to move '
                        'it aside' % (train_dir, ', '.join(was['class_names'] or ['unknown'])))
    for name in ('recipe', 'optimizer'):  # other optimizers have other variables
        if was[name] != record[name]:
            raise UserError('The run in %s is of --%s=%s, not %s: give that, another --train_dir, or --fresh to move it aside'
                            % (train_dir, name, was[name], record[name]))
    changed = ['%s was %s, is %s' % (name, was[name], record[name]) for name in record
               if was[name] != record[name] and hparams.has_effect(name)]
    if changed:
        print('The run in %s goes on with other numbers: %s. Its steps so far count as if taken with the new ones'
              % (train_dir, '; '.join(changed)), flush=True)
