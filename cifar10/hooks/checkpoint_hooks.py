"""Hooks that stop a diverged run and save checkpoints.

See also hooks.py, which says what a hook is.
"""

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.hooks import session_hooks
from cifar10.runs import checkpoint_files


class FiniteHook(session_hooks.FetchingHook):
    """Stops training when a tower's loss or gradient, or a variable about to be saved, is NaN or
    infinite.

    The loss alone does not show it: max pooling on the CPU ignores a NaN.
    """

    def __init__(self, step, graph, train_dir):
        # tf.add_n adds up in an order that depends on which of its inputs nothing else waits for.
        # The norms wait until the averages of the gradients are made, so that something waits for
        # each input, whatever the timing of threads.
        with tf.name_scope('gradient_norms'), tf.control_dependencies([graph.train_op]):
            norms = [
                tf.global_norm([gradient for gradient, _ in grads]) for grads in graph.tower_grads
            ]
        super().__init__(
            {
                'step': step,
                'losses': graph.losses,
                'norms': norms,
                'learning_rate': graph.learning_rate,
            }
        )
        self._train_dir = train_dir

    def begin(self):
        with tf.name_scope('is_finite'):
            self._is_finite = {
                variable.op.name: tf.reduce_all(tf.is_finite(variable))
                for variable in tf.global_variables()
                if variable.dtype.base_dtype.is_floating
            }

    def after_run(self, run_context, run_values):
        self._fetched = run_values.results
        if not np.isfinite(self._fetched['losses'] + self._fetched['norms']).all():
            raise self._error(run_context.session.run(self._is_finite))

    def check_variables(self, session):
        """Raises UserError if a variable is not finite."""
        is_finite = session.run(self._is_finite)
        if not all(is_finite.values()):
            raise self._error(is_finite)

    def _error(self, is_finite):
        def towers(values):
            return ', '.join(str(i) for i in np.flatnonzero(~np.isfinite(values))) or 'none'

        saved = ['the one of the chief']
        if self._train_dir:
            saved = checkpoint_files.candidates(self._train_dir) or ['none yet']
        return UserError(
            'Training diverged at step %d with learning rate %g. Not finite: losses of towers: %s; gradients of towers: %s; '
            'variables: %s. Lower --initial_learning_rate. The last good checkpoint is %s'
            % (
                self._fetched['step'],
                self._fetched['learning_rate'],
                towers(self._fetched['losses']),
                towers(self._fetched['norms']),
                ', '.join(sorted(name for name in is_finite if not is_finite[name])) or 'none',
                saved[0],
            )
        )


class CheckpointHook(session_hooks.FetchingHook):
    """Saves a checkpoint every `every` steps and after the last one; its number is the number of
    updates in it."""

    def __init__(self, step, saver, run, every, check_variables):
        super().__init__(step)
        self._saver = saver
        self._run = run
        self._every = every
        self._check_variables = check_variables
        self._unsaved = self._saved = None

    def after_create_session(self, session, coord):
        self._attempted = session.run(tf.train.get_global_step())
        # other workers have gone on while this one was away
        if self._attempted != self._run.first_step:
            self._unsaved = self._attempted

    def after_run(self, run_context, run_values):
        self._unsaved = run_values.results
        # `end` saves the last step. A failure then prints one line, not two.
        if (
            session_hooks.is_due(self._unsaved, self._attempted, self._every)
            and not run_context.stop_requested
        ):
            self._attempted = self._unsaved
            self._check_variables(run_context.session)
            try:
                self._save(run_context.session)
            except UserError as error:  # the disk may be full only for a while
                errors.warn(
                    '%s. Training goes on; the next attempt is after %d steps'
                    % (error, self._every)
                )

    def _save(self, session):
        self._saved = checkpoint_files.save(self._saver, session, self._run.path, self._unsaved)
        self._unsaved = None

    def end(self, session):
        if self._unsaved is not None:
            self._check_variables(session)
            self._save(session)
        if self._saved:
            print('Saved %s' % self._saved)
