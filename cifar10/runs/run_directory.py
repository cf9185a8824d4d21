"""The directory of a training run: new, resumed, or moved aside."""

import contextlib
import glob
import json
import os
import re
import time
from typing import NamedTuple, Optional, Sequence

from cifar10 import directories, files
from cifar10.errors import UserError
from cifar10.runs import checkpoint, checkpoint_files, run_record

# of a process that was killed
_LEFTOVER = re.compile(re.escape(run_record.NAME) + r'\.new(\.\d+)?')


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
        path = os.path.join(self.path, run_record.NAME)
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
            _move_aside(train_dir, job.data_dir)
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
            run_record.compare(train_dir, record, job.hparams)
            record['best'] = (
                _intact_best(train_dir)
                if job.intervals.keep_best
                else run_record.recorded_best(train_dir)
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
    """Returns the recorded best checkpoint, see run_record.recorded_best; None, with a message, if
    it cannot be read."""
    best = run_record.recorded_best(train_dir)
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
    if not checkpoint_files.candidates(train_dir) or not run_record.read(train_dir):
        return None
    return run_record.recorded_hparams(train_dir)


def has_ended(train_dir, last_step=None):
    """Whether the run in the directory, if there is one, has been saved at its last step.

    Args:
      train_dir: the directory.
      last_step: of the run; None takes the recorded one.

    Raises:
      UserError: the record is damaged.
    """
    last_step = run_record.recorded_last_step(train_dir) if last_step is None else last_step
    numbers = [path.rsplit('-', 1)[-1] for path in checkpoint_files.candidates(train_dir)[:1]]
    return any(number.isdigit() and int(number) >= last_step for number in numbers)


def _holds_run(train_dir):
    return any(
        glob.glob(os.path.join(glob.escape(train_dir), pattern))
        for pattern in ('checkpoint', 'model.ckpt-*', 'events.*', run_record.NAME)
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
