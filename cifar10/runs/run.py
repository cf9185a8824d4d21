"""Training run on disk: directory, record, checkpoints, event file."""

import contextlib
import os
import re
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.runs import checkpoint, checkpoint_files, event_file, run_record
from cifar10.system import directories

_RUN_FILE = re.compile(r'checkpoint|model\.ckpt-.*|events\..*|run\.json')


class Run:
    """Training run in a directory that this process has locked.

    Attributes:
      directory: the absolute path.
      record: a dict, see run_record.
      resumed: the Checkpoint from which training resumes; None for a new run.
      checkpoints: paths of its checkpoints, oldest first; a tf.train.Saver deletes the oldest.
      summary_writer: an event_file.SummaryWriter.
      output_errors: the errors.OutputErrors.
      plan: the lines of the plan for TensorBoard's Text tab, or None.
    """

    plan = None

    def __init__(self, lock, directory, record, resumed):
        """Create the run in a directory with this directories.Lock."""
        self._lock = lock
        self.directory, self.record, self.resumed = directory, record, resumed
        self.checkpoints = checkpoint_files.listed_checkpoints(
            directory, resumed.path if resumed else None
        )
        self.summary_writer = event_file.SummaryWriter(directory)
        self.output_errors = errors.OutputErrors()

    @property
    def saved_step(self):
        """The global step of the resumed checkpoint, or 0."""
        return self.resumed.step if self.resumed else 0

    def check_directory(self):
        """Raise UserError if the directory has been moved."""
        self._lock.check()

    def newest_checkpoint(self):
        """Return the path of the newest checkpoint, for messages."""
        return (checkpoint_files.candidates(self.directory) or ['none yet'])[0]

    def init_fn(self):
        """Return the function of tf.train.Scaffold that restores the checkpoint, or None.

        The function assigns the values that were read and checked. The files may have changed.

        Raises:
          UserError: the checkpoint does not match the default graph.
        """
        resumed = self.resumed
        if not resumed:
            return None
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        checkpoint.check_fits(resumed, variables)
        print(f'Resuming from {resumed.path}, step {resumed.step}')

        def restore(scaffold, session):
            for name, variable in variables.items():
                variable.load(resumed.values[name], session)

        return restore

    def write_record(self):
        """Write the record; raise UserError if it cannot be written."""
        run_record.write(self.directory, self.record)

    def record_log_line(self, step):
        """Record that the log line of a step is printed, if the run is deterministic.

        Returns:
          False if the line has been printed: after a kill, steps are repeated.
        """
        if not self.record['deterministic']:
            return True
        if step <= self.record['logged_step']:
            return False
        self._record_progress('logged_step', step)
        return True

    def record_evaluation(self, step):
        """Record that a step has been evaluated, if the run is deterministic."""
        if self.record['deterministic']:
            self._record_progress('evaluated_step', step)

    def _record_progress(self, name, step):
        self.record[name] = int(step)
        with contextlib.suppress(UserError):  # At worst, a line appears twice.
            self.write_record()

    def keep_best(self, ckpt, precision):
        """Keep a checkpoint as the best one, if its precision is greater.

        Even if the process is killed, the record names a complete checkpoint or none.

        Args:
          ckpt: the Checkpoint that was evaluated.
          precision: the fraction of correctly classified examples.

        Raises:
          UserError: the checkpoint cannot be saved; a former best one of another step is intact.
        """
        best = self.record.get('best')
        if best and precision <= best['precision'] and self._is_intact(best):
            return
        name = f'best.ckpt-{ckpt.step}'
        path = os.path.join(self.directory, name)
        try:
            if best and best['checkpoint'] == name:  # A resumed run has repeated the step.
                best = self._record_best(None)
            checkpoint_files.write(path, ckpt.values)
            self._record_best({'checkpoint': name, 'precision': precision})
        except (tf.errors.OpError, OSError, UserError) as error:
            self.record['best'] = best
            checkpoint_files.remove_other_best_files(self.directory, best and best['checkpoint'])
            raise UserError(
                f'Cannot keep the best checkpoint ({errors.reason(error)}): make room for {path}'
            )
        checkpoint_files.remove_other_best_files(self.directory, name)
        print(f'Best so far: precision @ 1 = {precision:.3f} on the test images, kept as {path}')

    def _is_intact(self, best):
        """Return False, after a line, if the best checkpoint is damaged."""
        try:
            checkpoint.read(os.path.join(self.directory, best['checkpoint']))
            return True
        except UserError as error:
            print(f'{error}. This evaluation replaces it')
            return False

    def _record_best(self, best):
        self.record['best'] = best
        self.write_record()
        return best


@contextlib.contextmanager
def open_run(train_dir, record, fresh=False):
    """Lock the training directory, and yield the Run that starts or resumes there.

    Args:
      train_dir: the directory.
      record: the record of the run, such as that of a training.Job.
      fresh: True renames the directory of an existing run.

    Raises:
      UserError: the directory cannot be made, another process trains there, a run in it does not
        match the record, or the record on disk or all checkpoints are damaged.
    """
    train_dir = os.path.abspath(train_dir)  # '.' would follow the renamed directory.
    busy_error = UserError(
        f'Another process is training in {train_dir}',
        'stop it, or give another {train_dir}',
        'train_dir',
    )
    directories.make(train_dir)
    if fresh and any(map(_RUN_FILE.fullmatch, checkpoint_files.file_names(train_dir))):
        with directories.Lock(train_dir, busy_error):
            _move_aside(train_dir)
        directories.make(train_dir)
    with directories.Lock(train_dir, busy_error) as lock:
        resumed = checkpoint.read_latest(train_dir)
        if resumed:
            run_record.check_resumable(train_dir, record)
        record = dict(record, **run_record.progress(train_dir, record, bool(resumed)))
        checkpoint_files.remove_unfinished(train_dir)
        run = Run(lock, train_dir, record, resumed)
        if record['logged_step'] > run.saved_step:
            print(
                f'Steps {run.saved_step + 1} to {record["logged_step"]} are repeated without log lines, which have been printed'
            )
        with run.summary_writer:
            yield run


def _move_aside(directory):
    aside = f'{directory}.{time.strftime("%Y%m%d-%H%M%S")}'
    try:
        os.rename(directory, aside)
    except OSError as error:
        raise UserError(
            f'Cannot move the run aside ({error.strerror}), from {directory} to {aside}',
            'give another {train_dir}',
            'train_dir',
        )
    print(f'Moved the run in {directory} to {aside}')
