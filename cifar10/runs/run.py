"""Training run on disk: directory, record, checkpoints, event file."""

import contextlib
import os
import re
import time

import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.runs import checkpoint, run_record
from cifar10.system import directories

# TensorFlow leaves such a file when the disk is full, or the process is killed.
_UNFINISHED = re.compile(r'model\.ckpt-.*\.tempstate\d+')
_RUN_FILE = re.compile(r'checkpoint|model\.ckpt-.*|events\..*|run\.json')


class Run:
    """Training run in a directory that this process has locked.

    Attributes:
      directory: the absolute path.
      record: a RunRecord.
      resumed: the Checkpoint from which training resumes; None for a new run.
      notes: lines for the user about the start.
      plan: the lines of the plan for TensorBoard's Text tab, or None.
      initial_weights: the InitialWeights of a new run; None for random ones.
    """

    plan = initial_weights = None

    def __init__(self, directory, record, resumed, notes):
        self.directory, self.record, self.resumed = directory, record, resumed
        self.notes = notes

    @property
    def saved_step(self):
        """The global step of the resumed checkpoint, or 0."""
        return self.resumed.step if self.resumed else 0

    def restored_path(self, saver):
        """Return the path of the checkpoint to restore, or None; let the saver delete old ones.

        A new run gets its initial weights, if any.

        Args:
          saver: the tf.train.Saver of the variables of the default graph.

        Raises:
          UserError: the checkpoint does not match the default graph.
        """
        resumed = self.resumed
        if not resumed:
            if self.initial_weights:
                self.initial_weights.set_initializers()
            return None
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        cause = checkpoint.misfit(resumed, variables)
        if cause:
            own, recorded = self.record, run_record.read(self.directory)
            remedy = f'undo the change in {own.network}'
            if recorded.network_checksum in (None, own.network_checksum):
                remedy = 'give the hyperparameters of this run'
            raise UserError(f'{cause}: {remedy}, give another --train_dir, or set --fresh')
        # Otherwise the saver would keep the earlier checkpoints forever, or delete what its list
        # names in another directory.
        state = tf.train.get_checkpoint_state(self.directory)
        listed = {resumed.path, *(state.all_model_checkpoint_paths if state else [])}
        paths = [saved.path for saved in reversed(checkpoint.find(self.directory))]
        saver.recover_last_checkpoints([path for path in paths if path in listed])
        return resumed.path


@contextlib.contextmanager
def open_run(train_dir, record, fresh=False):
    """Lock the training directory, and yield the Run that starts or resumes there.

    A directory with no other checkpoint than that of the initial weights holds a new run.

    Args:
      train_dir: the directory.
      record: the RunRecord, such as that of a training.Job.
      fresh: True renames the directory of an existing run.

    Raises:
      UserError: the directory cannot be made, another process trains there, a run in it does not
        match the record, or the record on disk or all checkpoints are damaged.
    """
    train_dir = os.path.abspath(train_dir)  # '.' would follow the renamed directory.
    busy = f'Another process is training in {train_dir}: stop it, or give another --train_dir'
    notes = []
    if fresh and any(map(_RUN_FILE.fullmatch, checkpoint.file_names(train_dir))):
        with directories.lock(train_dir, busy):
            aside = f'{train_dir}.{time.strftime("%Y%m%d-%H%M%S")}'
            os.rename(train_dir, aside)
            notes.append(f'Moved the run in {train_dir} to {aside}')
    with directories.lock(train_dir, busy):
        resumed = checkpoint.read_latest(train_dir)
        notes += resumed.notes if resumed else []
        if resumed and resumed.step == 0 and len(checkpoint.find(train_dir)) == 1:
            resumed = None
        if resumed:
            record, changes = run_record.check_resumable(train_dir, record)
            notes += changes
        for name in checkpoint.file_names(train_dir):
            if _UNFINISHED.fullmatch(name):
                os.remove(os.path.join(train_dir, name))
        try:
            yield Run(train_dir, record, resumed, notes)
        finally:
            with contextlib.suppress(RuntimeError):  # The last write has raised the same error.
                tf.summary.FileWriterCache.clear()  # closes the event file
