"""Hooks that protect and save a run: divergence, moved directory, checkpoints, changed data."""

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.data import verification
from cifar10.errors import UserError
from cifar10.hooks import session_hooks
from cifar10.runs import checkpoint_files


class NanHook(session_hooks.FetchingHook):
    """Hook that stops training at a loss or gradient that is not finite.

    tf.train.NanTensorHook checks only the loss, but max pooling on the CPU ignores a NaN.
    CheckpointSaverHook also checks the variables before each checkpoint.
    """

    _results = None  # of the latest step; None if other workers have made all steps

    def __init__(self, step, run=None):
        """Make the hook.

        Args:
          step: a training.Step.
          run: a Run, whose newest checkpoint is named; None for a worker that is not the chief.
        """
        # tf.add_n begins its sum with an input that has no other pending consumer. The norms run
        # after the update, so all gradients have a pending consumer, independent of timing.
        with tf.name_scope('gradient_norms'), tf.control_dependencies([step.train_op]):
            norms = [
                tf.global_norm([gradient for gradient, _ in grads]) for grads in step.tower_grads
            ]
        super().__init__(
            {
                'step': step.global_step,
                'losses': step.losses,
                'norms': norms,
                'learning_rate': step.learning_rate,
            }
        )
        self._run = run

    def begin(self):
        """Add the checks of variables to the graph."""
        with tf.name_scope('is_finite'):
            self._is_finite = {
                variable.op.name: tf.reduce_all(tf.is_finite(variable))
                for variable in tf.global_variables()
                if variable.dtype.base_dtype.is_floating
            }

    def after_run(self, run_context, run_values):
        """Raise UserError if a loss or gradient is not finite."""
        self._results = run_values.results
        if not np.isfinite(self._results['losses'] + self._results['norms']).all():
            raise self._divergence_error(run_context.session.run(self._is_finite))

    def check_variables(self, session):
        """Raise UserError if a variable is not finite."""
        is_finite = session.run(self._is_finite)
        if not all(is_finite.values()):
            raise self._divergence_error(is_finite)

    def _divergence_error(self, is_finite):
        def towers(values):
            return ', '.join(str(i) for i in np.flatnonzero(~np.isfinite(values))) or 'none'

        results, found = self._results, 'Training diverged. Not finite: '
        if results:
            found = (
                f'Training diverged at step {results["step"]} with learning rate {results["learning_rate"]:g}. '
                f'Not finite: losses of towers: {towers(results["losses"])}; gradients of towers: {towers(results["norms"])}; '
            )
        variables = ', '.join(sorted(name for name in is_finite if not is_finite[name])) or 'none'
        saved = self._run.newest_checkpoint() if self._run else 'the one of the chief'
        return UserError(
            f'{found}variables: {variables}. Lower {{initial_learning_rate}} (with Muon, also {{matrix_learning_rate}}). Last good '
            f'checkpoint: {saved}',
            None,
            'initial_learning_rate',
            'matrix_learning_rate',
        )


class DirectoryHook(tf.train.SessionRunHook):
    """Hook that stops training when the directory of the run has been moved or removed.

    TensorFlow has none: it would recreate the directory and write there.
    """

    def __init__(self, run):
        """Make the hook of a Run."""
        self._run = run

    def after_create_session(self, session, coord):
        """Raise UserError if the directory has been moved since the start."""
        self._run.check_directory()

    def after_run(self, run_context, run_values):
        """Raise UserError if the directory has been moved."""
        self._run.check_directory()


class CheckpointSaverHook(session_hooks.FetchingHook):
    """Hook that saves a checkpoint every `every_n_steps` steps and after the last step.

    The number of a checkpoint is its global step. tf.train.CheckpointSaverHook would save variables
    that are not finite, and end the run if the disk is full for a moment.
    """

    def __init__(self, step, run, saver, every_n_steps, nan_hook):
        """Make the hook.

        Args:
          step: a training.Step.
          run: a Run.
          saver: a tf.train.Saver.
          every_n_steps: steps between two checkpoints.
          nan_hook: a NanHook, which checks the variables.
        """
        super().__init__(step.global_step)
        self._run = run
        self._saver = saver
        self._every_n_steps = every_n_steps
        self._nan_hook = nan_hook
        self._unsaved_step = self._saved_path = None

    def begin(self):
        """Write the record of the run; let the saver delete its old checkpoints."""
        self._run.write_record()
        self._saver.recover_last_checkpoints(self._run.checkpoints)

    def after_create_session(self, session, coord):
        """Record the current step, and whether it is saved."""
        self._attempted_step = session.run(tf.train.get_global_step())
        # Other workers may have trained after the last checkpoint.
        if self._attempted_step != self._run.saved_step:
            self._unsaved_step = self._attempted_step

    def after_run(self, run_context, run_values):
        """Save a checkpoint when it is due."""
        self._unsaved_step = run_values.results
        # After the last step of the run only `end` saves, so that a failure prints only one line.
        if (
            session_hooks.should_trigger(
                self._unsaved_step, self._attempted_step, self._every_n_steps
            )
            and not run_context.stop_requested
        ):
            self._attempted_step = self._unsaved_step
            self._nan_hook.check_variables(run_context.session)
            try:
                self._save(run_context.session)
            except UserError as error:  # the disk may have space again later
                errors.warn(
                    f'{error}. Training continues; the next attempt is after {self._every_n_steps} steps'
                )

    def _save(self, session):
        self._saved_path = checkpoint_files.save(
            self._saver, session, self._run.directory, self._unsaved_step
        )
        self._unsaved_step = None

    def end(self, session):
        """Save the last step, and print the path."""
        if self._unsaved_step is not None:
            self._nan_hook.check_variables(session)
            self._save(session)
        if self._saved_path:
            print(f'Saved {self._saved_path}')


class DataFilesHook(tf.train.SessionRunHook):
    """Hook that verifies the data files at the end; TensorFlow skips the rest of a cut file."""

    def __init__(self, split):
        """Make the hook of a dataset.Split."""
        self._split = split

    def end(self, session):
        """Raise UserError if a file is invalid."""
        verification.verify(self._split)
