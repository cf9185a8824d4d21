"""What happens around the training step: its end, the data files, filling. See also progress.py,
checkpointing.py and scoring.py.

Each hook fetches what it needs in the session run that makes the update. A hook gets `step` as a
tensor: the number of updates, including this one.
"""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors, input as cifar10_input
from cifar10.data.dataset import Records
from cifar10.errors import UserError
from cifar10.runs import watch

_LOOK_SECS = 0.05


class EndHook(tf.train.SessionRunHook):
    """Ends the run after the last step; the workers of a cluster make several steps while this one
    makes one."""

    def __init__(self, step, last_step, failures):
        """Takes the number of updates, a tensor, the number of the last step, and the
        errors.Failures of the run."""
        self._step_tensor = step
        self._last_step = last_step
        self._failures = failures

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step_tensor)

    def after_run(self, run_context, run_values):
        if run_values.results >= self._last_step:
            self._failures.is_over = True
            run_context.request_stop()


class PlaceHook(tf.train.SessionRunHook):
    """Ends the run when its directory has been moved or removed; what TensorFlow would write goes
    where nobody looks."""

    def __init__(self, place):
        self._place = place

    def after_run(self, run_context, run_values):
        self._place.check()


class InputHook(tf.train.SessionRunHook):
    """Stops the session when a data file changes: readers would wait for ever, or read something
    else than was verified."""

    def __init__(self, job):
        """Raises UserError unless the files hold as many examples as the Job, as they did when the
        schedule was made."""
        self._change = None
        reads = tf.get_collection(cifar10_input.INPUT_FILES)
        self._watch = (
            watch.Watch(job.data.train, job.num_examples) if reads else watch.Watch(Records(()))
        )

    def after_create_session(self, session, coord):
        self._watch.start(coord)

    def check(self):
        """Raises UserError if a data file has changed, also if it has been put back since
        `explaining` noticed it."""
        if self._change:
            raise self._change
        self._watch.check()

    @contextlib.contextmanager
    def explaining(self):
        """Ends the block quietly at an error of TensorFlow if a data file has changed, which
        `check` then tells.

        Raises:
          UserError: the data ended, though no file has changed. MonitoredSession takes a
            tf.errors.OutOfRangeError for an end that is wanted.
        """
        try:
            yield
        except tf.errors.OpError as error:
            try:
                self._watch.check(error)
            except UserError as change:
                self._change = change
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
                print(
                    'Filling the shuffle queue with %d images before training starts: %d%%'
                    % (wanted, percent),
                    flush=True,
                )
                shown = percent
            if filled >= wanted:
                return
            coord.wait_for_stop(timeout=_LOOK_SECS)
