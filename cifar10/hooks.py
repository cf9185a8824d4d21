"""What happens around the training step: filling, log lines, summaries, checkpoints, divergence.

Each hook fetches what it needs in the session run that makes the update. A hook gets `step` as a tensor: the number of
updates, including this one.
"""
import datetime
import glob
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors, input as cifar10_input
from cifar10.errors import UserError


class FillHook(tf.train.SessionRunHook):
    """Waits until the shuffle queues hold enough images to draw from, and shows the progress."""

    def __init__(self, should_stop):
        self._should_stop = should_stop

    def begin(self):
        self._sizes = tf.get_collection(cifar10_input.SHUFFLE_QUEUE_SIZE)
        self._minima = tf.get_collection(cifar10_input.SHUFFLE_QUEUE_MIN)

    def after_create_session(self, session, coord):
        shown = None
        while not coord.should_stop() and not self._should_stop():
            sizes, minima = session.run([self._sizes, self._minima])
            filled, wanted = int(np.minimum(sizes, minima).sum()), sum(minima)
            percent = 10 * (10 * filled // wanted) if wanted else None
            if percent != shown:
                print('Filling the shuffle queue with %d images before training starts: %d%%' % (wanted, percent), flush=True)
                shown = percent
            if filled >= wanted:
                return
            coord.wait_for_stop(timeout=0.2)


class Speed:
    """Measures steps and examples by the wall clock, including everything that happens in between."""

    def __init__(self, step, examples_per_step):
        self._examples_per_step = examples_per_step
        self._time, self._step = time.time(), step

    def since_last(self, step):
        """Returns (examples per second, seconds per step) since the last call or the start."""
        now = time.time()
        seconds, steps = now - self._time, step - self._step
        self._time, self._step = now, step
        return steps * self._examples_per_step / seconds, seconds / steps


class LogHook(tf.train.SessionRunHook):
    """Prints the loss and the speed every `every` steps and after the last one."""

    def __init__(self, step, loss, examples_per_step, every):
        self._fetches = {'step': step, 'loss': loss}
        self._examples_per_step = examples_per_step
        self._every = every
        self._unprinted = None

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_create_session(self, session, coord):
        self._speed = Speed(session.run(tf.train.get_global_step()), self._examples_per_step)

    def after_run(self, run_context, run_values):
        self._unprinted = run_values.results
        if self._unprinted['step'] % self._every == 0:
            self._print()

    def _print(self):
        step, loss = self._unprinted['step'], self._unprinted['loss']
        print('%s: step %d, loss = %.2f (%.1f examples/sec; %.3f sec/batch)'
              % ((datetime.datetime.now().isoformat(' ', 'microseconds'), step, loss) + self._speed.since_last(step)), flush=True)
        self._unprinted = None

    def end(self, session):
        if self._unprinted:
            self._print()


class SummaryHook(tf.train.SessionRunHook):
    """Writes the summaries, the speed and the number of epochs every `every` steps."""

    def __init__(self, step, summary_op, write, pace, every):
        self._step_tensor = step
        self._summary_op = summary_op
        self._write = write
        self._pace = pace
        self._every = every

    def after_create_session(self, session, coord):
        self._step = session.run(tf.train.get_global_step())
        self._speed = Speed(self._step, self._pace.examples_per_step)

    def before_run(self, run_context):
        fetches = {'step': self._step_tensor}
        if (self._step + 1) % self._every == 0:
            fetches['summary'] = self._summary_op
        return tf.train.SessionRunArgs(fetches)

    def after_run(self, run_context, run_values):
        self._step = run_values.results['step']
        if 'summary' in run_values.results:
            summary = tf.Summary.FromString(run_values.results['summary'])
            examples_per_sec, sec_per_batch = self._speed.since_last(self._step)
            epochs = self._step * (self._pace.examples_per_step / self._pace.examples_per_epoch)
            for tag, value in [('epoch', epochs), ('examples_per_sec', examples_per_sec), ('sec_per_batch', sec_per_batch)]:
                summary.value.add(tag=tag, simple_value=value)
            self._write(summary, self._step)


class FiniteHook(tf.train.SessionRunHook):
    """Stops training when a tower's loss or gradient, or a variable about to be saved, is NaN or infinite.

    The loss alone does not show it: max pooling on the CPU ignores a NaN.
    """

    def __init__(self, step, graph, train_dir):
        with tf.name_scope('gradient_norms'):
            norms = [tf.global_norm([gradient for gradient, _ in grads]) for grads in graph.tower_grads]
        self._fetches = {'step': step, 'losses': graph.losses, 'norms': norms, 'learning_rate': graph.learning_rate}
        self._train_dir = train_dir

    def begin(self):
        with tf.name_scope('is_finite'):
            self._is_finite = {variable.op.name: tf.reduce_all(tf.is_finite(variable))
                               for variable in tf.global_variables() if variable.dtype.base_dtype.is_floating}

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        self._fetched = run_values.results
        if not np.isfinite(self._fetched['losses'] + self._fetched['norms']).all():
            raise self._error(self._bad_variables(run_context.session))

    def check_variables(self, session):
        """Raises UserError if a variable is not finite."""
        bad = self._bad_variables(session)
        if bad:
            raise self._error(bad)

    def _bad_variables(self, session):
        return sorted(name for name, finite in session.run(self._is_finite).items() if not finite)

    def _error(self, bad_variables):
        def towers(values):
            return ', '.join(str(i) for i in np.flatnonzero(~np.isfinite(values))) or 'none'
        saved = tf.train.latest_checkpoint(self._train_dir)
        return UserError(
            'Training diverged at step %d with learning rate %g. Not finite: losses of towers: %s; gradients of towers: %s; '
            'variables: %s. Lower --initial_learning_rate. %s'
            % (self._fetched['step'], self._fetched['learning_rate'], towers(self._fetched['losses']),
               towers(self._fetched['norms']), ', '.join(bad_variables) or 'none',
               'The last good checkpoint is %s' % saved if saved else 'There is no checkpoint yet'))


class CheckpointHook(tf.train.SessionRunHook):
    """Saves a checkpoint every `every` steps and after the last one; its number is the number of updates in it."""

    def __init__(self, step, saver, train_dir, every, check_variables):
        self._step_tensor = step
        self._saver = saver
        self._prefix = os.path.join(train_dir, 'model.ckpt')
        self._every = every
        self._check_variables = check_variables
        self._unsaved = self._saved = None

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step_tensor)

    def after_run(self, run_context, run_values):
        self._unsaved = run_values.results
        if self._unsaved % self._every == 0:
            self._save(run_context.session)

    def _save(self, session):
        self._check_variables(session)
        try:
            self._saved = self._saver.save(session, self._prefix, self._unsaved)
        except tf.errors.OpError as error:
            for part in glob.glob(  # what the saver had begun to write
                    '%s-%d.*.tempstate*' % (glob.escape(self._prefix), self._unsaved)):
                os.remove(part)
            raise UserError('Cannot save %s-%d (%s): make room for it, or give another --train_dir'
                            % (self._prefix, self._unsaved, errors.reason(error)))
        self._unsaved = None

    def end(self, session):
        if self._unsaved is not None:
            self._save(session)
        if self._saved:
            print('Saved %s' % self._saved, flush=True)
