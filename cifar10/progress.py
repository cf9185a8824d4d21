"""What a run tells of its progress: log lines and summaries. See hooks.py, which says what a hook
is."""

import collections
import datetime
import math
import re
import time

import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.report import tensorboard

_RECENT_LINES = 100  # of the log, by whose times the time that is left is estimated


class Speed:
    """Measures steps and examples by the wall clock, including everything that happens in
    between."""

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
    """Whether a multiple of `every` has been reached since the step `last`; other workers' steps
    can lie in between."""
    return step // every > last // every


def duration(seconds):
    """A time in words: '40 s', '8 min', '3 h 20 min', '11 days 4 h'."""
    minutes = round(seconds / 60)
    if seconds < 59.5:
        return '%.0f s' % seconds
    if minutes < 60:
        return '%d min' % minutes
    if minutes < 48 * 60:
        return '%d h %d min' % divmod(minutes, 60)
    return '%d days %d h' % divmod(round(minutes / 60), 24)


def _digits(epochs):
    """A number of epochs with one digit after the point; two, if it is less than one epoch."""
    return '%.1f' % epochs if epochs >= 1 else '%.2f' % epochs


class LogHook(tf.train.SessionRunHook):
    """Prints the loss, the speed, the epoch and the time that is left every `every` steps and after
    the last one."""

    def __init__(self, step, loss, pace, every):
        self._fetches = {'step': step, 'loss': loss}
        self._pace = pace
        self._every = every
        self._unprinted = None
        self._recent = collections.deque(maxlen=_RECENT_LINES)  # (time, step) of lines

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_create_session(self, session, coord):
        self._printed = session.run(tf.train.get_global_step())
        self._speed = Speed(self._printed, self._pace.examples_per_step)

    def after_run(self, run_context, run_values):
        self._unprinted = run_values.results
        if is_due(self._unprinted['step'], self._printed, self._every):
            self._print()

    def _print(self):
        step, loss = self._unprinted['step'], self._unprinted['loss']
        examples_per_sec, sec_per_batch = self._speed.since_last(step)
        print(
            '%s: step %d, loss = %.2f (%.1f examples/sec; %.3f sec/batch)%s'
            % (
                datetime.datetime.now().isoformat(' ', 'microseconds'),
                step,
                loss,
                examples_per_sec,
                sec_per_batch,
                self._position(step, sec_per_batch),
            ),
            flush=True,
        )
        self._printed, self._unprinted = step, None

    def _position(self, step, sec_per_batch):
        """Where in the run the step is, as in ', epoch 3.1 of 32, 8 min left'."""
        epoch, last_step = ', epoch %s' % _digits(self._pace.epochs(step)), self._pace.last_step
        if math.isinf(last_step):
            return epoch
        now = time.monotonic()
        if self._recent:  # else all is known by this line, with the slow first steps
            first_time, first_step = self._recent[0]
            sec_per_batch = (now - first_time) / (step - first_step)
        self._recent.append((now, step))
        # other workers may have come further
        left = duration(max(0, last_step - step) * sec_per_batch)
        return '%s of %s, %s left' % (
            epoch,
            re.sub(r'\.0+$', '', _digits(self._pace.epochs(last_step))),
            left,
        )

    def end(self, session):
        if self._unprinted:
            self._print()


def patient(write, failures):
    """Returns a function like `write`, which summaries.writer yields, that adds an error to the
    errors.Failures.

    The disk may be full only for a while: the next success writes the summaries that had to wait.
    """

    def attempt(*args, **kwargs):
        try:
            write(*args, **kwargs)
            failures.remove('summaries')
        except UserError as error:
            failures.add('summaries', error)

    return attempt


class SummaryHook(tf.train.SessionRunHook):
    """Writes the summaries, the speed and the number of epochs every `every` steps; `write` is
    patient."""

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
            for tag, value in [
                (tensorboard.EPOCH, self._pace.epochs(self._step)),
                (tensorboard.EXAMPLES_PER_SEC, examples_per_sec),
                (tensorboard.SEC_PER_BATCH, sec_per_batch),
            ]:
                summary.value.add(tag=tag, simple_value=value)
            self._write(summary, self._step)
