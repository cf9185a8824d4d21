"""What happens around the training step: data files, filling, log lines, summaries. See also checkpointing.py.

Each hook fetches what it needs in the session run that makes the update. A hook gets `step` as a tensor: the number of
updates, including this one.
"""
import contextlib
import datetime
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors, input as cifar10_input
from cifar10.errors import UserError
from cifar10.runs import watch


class EndHook(tf.train.SessionRunHook):
    """Ends the run after the last step; the workers of a cluster make several steps while this one makes one."""

    def __init__(self, step, last_step):
        self._step_tensor = step
        self._last_step = last_step

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step_tensor)

    def after_run(self, run_context, run_values):
        if run_values.results >= self._last_step:
            run_context.request_stop()


class PlaceHook(tf.train.SessionRunHook):
    """Ends the run when its directory has been moved or removed; what TensorFlow would write goes where nobody looks."""

    def __init__(self, place):
        self._place = place

    def after_run(self, run_context, run_values):
        self._place.check()


class InputHook(tf.train.SessionRunHook):
    """Stops the session when a data file changes: readers would wait for ever, or read something else than was verified."""

    def __init__(self, num_examples):
        """Raises UserError unless the files hold `num_examples` examples, as they did when the schedule was made."""
        paths = tf.get_collection(cifar10_input.INPUT_FILES)
        self._watch = watch.Watch(paths, num_examples if paths else None)

    def after_create_session(self, session, coord):
        self._watch.start(coord)

    def check(self):
        """Raises UserError if a data file has changed."""
        self._watch.check()

    @contextlib.contextmanager
    def explaining(self):
        """Ends the block quietly at an error of TensorFlow if a data file has changed, which `check` then tells.

        Raises:
          UserError: the data ended, though no file has changed. MonitoredSession takes a tf.errors.OutOfRangeError for an end
            that is wanted.
        """
        try:
            yield
        except tf.errors.OpError as error:
            try:
                self._watch.check()
            except UserError:
                return
            if isinstance(error, tf.errors.OutOfRangeError):
                raise UserError('The data ended: %s' % errors.reason(error))
            raise


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
        self._time, self._step = time.monotonic(), step  # somebody may set the clock

    def since_last(self, step):
        """Returns (examples per second, seconds per step) since the last call or the start."""
        now = time.monotonic()
        seconds, steps = now - self._time, step - self._step
        self._time, self._step = now, step
        return steps * self._examples_per_step / seconds, seconds / steps


def is_due(step, last, every):
    """Whether a multiple of `every` has been reached since the step `last`; other workers' steps can lie in between."""
    return step // every > last // every


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
        self._printed = session.run(tf.train.get_global_step())
        self._speed = Speed(self._printed, self._examples_per_step)

    def after_run(self, run_context, run_values):
        self._unprinted = run_values.results
        if is_due(self._unprinted['step'], self._printed, self._every):
            self._print()

    def _print(self):
        step, loss = self._unprinted['step'], self._unprinted['loss']
        print('%s: step %d, loss = %.2f (%.1f examples/sec; %.3f sec/batch)'
              % ((datetime.datetime.now().isoformat(' ', 'microseconds'), step, loss) + self._speed.since_last(step)), flush=True)
        self._printed, self._unprinted = step, None

    def end(self, session):
        if self._unprinted:
            self._print()


class SummaryHook(tf.train.SessionRunHook):
    """Writes the summaries, the speed and the number of epochs every `every` steps."""
    error = None  # of the last attempt

    def __init__(self, step, summary_op, write, pace, every):
        self._step_tensor = step
        self._summary_op = summary_op
        self._write = write
        self._pace = pace
        self._every = every

    def after_create_session(self, session, coord):
        self._step = self._written = session.run(tf.train.get_global_step())
        self._speed = Speed(self._step, self._pace.examples_per_step)

    def before_run(self, run_context):
        fetches = {'step': self._step_tensor}
        if is_due(self._step + self._pace.steps_per_run, self._written, self._every):
            fetches['summary'] = self._summary_op
        return tf.train.SessionRunArgs(fetches)

    def after_run(self, run_context, run_values):
        self._step = run_values.results['step']
        if 'summary' in run_values.results:
            self._written = self._step
            summary = tf.Summary.FromString(run_values.results['summary'])
            examples_per_sec, sec_per_batch = self._speed.since_last(self._step)
            epochs = self._step * (self._pace.examples_per_step / self._pace.examples_per_epoch)
            for tag, value in [('epoch', epochs), ('examples_per_sec', examples_per_sec), ('sec_per_batch', sec_per_batch)]:
                summary.value.add(tag=tag, simple_value=value)
            self._try_to_write(summary)

    def _try_to_write(self, summary):
        try:
            self._write(summary, self._step)
            self.error = None
        except UserError as error:  # the disk may be full only for a while
            self.error = error
            errors.warn('%s. Training goes on' % error)
