"""Hooks that TensorFlow lacks: log line, signals, filling of the queue, replay, checks.

TensorFlow calls a method of all hooks, in the order of their list, before it calls the next method:
`begin` before the session is made, `after_create_session`, `before_run` and `after_run` around each
step, and `end` after the last step, unless an exception ends the session.
"""

import collections
import datetime
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib
from cifar10.errors import UserError
from cifar10.runs import checkpoint, run_record

# Names of tensors, see training.add_step_tensors
STEP, LOSS = 'step/global_step:0', 'step/loss:0'
GRADIENT_NORM = 'step/gradient_norm/global_norm:0'

_REPLAY_PRINT_SECS = 2


def should_trigger(step, last_triggered_step, every_n_steps):
    """Return True if (last_triggered_step, step] has a multiple of `every_n_steps`.

    In a cluster, a worker may not see the multiple itself, because other workers make steps too.
    """
    return step // every_n_steps > last_triggered_step // every_n_steps


class StopOnSignalHook(tf.train.SessionRunHook):
    """Hook that requests a stop after a signal.

    TensorFlow has none. A trainer that is stopped saves and evaluates its last step. Before the
    first step, the hook raises KeyboardInterrupt, because there is nothing to save.
    """

    def __init__(self, stop_request):
        """Make the hook of a signals.StopRequest."""
        self._stop_request = stop_request
        self._has_trained = False

    def before_run(self, run_context):
        """Raise KeyboardInterrupt if there is nothing to save."""
        if self._stop_request.received_signal and not self._has_trained:
            raise KeyboardInterrupt(self._stop_request.received_signal)

    def after_run(self, run_context, run_values):
        """Request a stop after a signal."""
        self._has_trained = True
        if self._stop_request.received_signal:
            print(f'{self._stop_request.received_signal.name}: stopping')
            run_context.request_stop()


class QueueFillHook(tf.train.SessionRunHook):
    """Hook that fills the shuffle queues before the first step, and prints the progress.

    TensorFlow has none: its first steps would wait without a message.
    """

    def __init__(self, stop_request):
        """Make the hook; the signal of a signals.StopRequest ends the wait."""
        self._stop_request = stop_request

    def after_create_session(self, session, coord):
        """Wait for the queues, a stop or a signal."""
        sizes = session.graph.get_collection(input_lib.SHUFFLE_QUEUE_SIZE)
        minima = session.graph.get_collection(input_lib.SHUFFLE_QUEUE_MIN)
        required, printed = sum(minima), None
        while not coord.should_stop() and not self._stop_request.received_signal:
            filled = int(np.minimum(session.run(sizes), minima).sum())
            percent = 10 * (10 * filled // required) if required else None
            if percent != printed:
                print(
                    f'Filling the shuffle queue with {required} images before training starts: {percent}%'
                )
                printed = percent
            if filled >= required:
                return
            coord.wait_for_stop(timeout=0.05)


class ReplayHook(tf.train.SessionRunHook):
    """Hook that skips the batches of the steps before the first step of the session.

    A resumed deterministic run is equal to the uninterrupted one, bit for bit. Its seed fixes the
    sequence of the batches, so it must continue with the next batch. TensorFlow has no such hook:
    it does not save the state of an input.
    """

    def __init__(self, queue, train_op, batches_per_step, stop_request):
        """Make the hook for the prefetch queue; the signal of a StopRequest ends the replay."""
        self._queue, self._batches_per_step = queue, batches_per_step
        self._train_op = train_op
        self._stop_request = stop_request

    def begin(self):
        """Add an operation that removes a batch. Earlier operations keep their seeds."""
        with tf.name_scope('replay'):
            self._skip = tf.group(*self._queue.dequeue())

    def after_create_session(self, session, coord):
        """Skip the batches, until a signal or an error of the input; print the progress.

        Raises:
          UserError: steps have been made, and the training draws random numbers, such as dropout.
        """
        steps, next_print = int(session.run(tf.train.get_global_step())), time.monotonic()
        needed = tf.graph_util.extract_sub_graph(session.graph_def, [self._train_op.name])
        random_ops = [node.name for node in needed.node if 'seed' in node.attr]
        if steps and random_ops:
            raise UserError(
                f'The run cannot continue bit for bit: no checkpoint has the state of {random_ops[0]}: '
                'leave out --deterministic, or train without a stop'
            )
        for step in range(steps):
            if time.monotonic() >= next_print:
                print(f'Replaying the input of {steps} steps: {100 * step // steps}%')
                next_print = time.monotonic() + _REPLAY_PRINT_SECS
            for _ in range(self._batches_per_step):
                if self._stop_request.received_signal:
                    return
                try:
                    session.run(self._skip)
                except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                    return  # The first step raises the error of the thread that fills the queue.


class FiniteHook(tf.train.SessionRunHook):
    """Hook that stops training at a loss or gradient that is not finite.

    Max pooling on the CPU ignores NaN, so a gradient can be wrong although the loss is finite.
    tf.train.NanTensorHook stops at NaN only.
    """

    def __init__(self, run):
        """Make the hook of a Run; None for a worker that is not the chief."""
        self._run = run

    def before_run(self, run_context):
        """Request the loss and the norm of the gradients."""
        return tf.train.SessionRunArgs([LOSS, GRADIENT_NORM])

    def after_run(self, run_context, run_values):
        """Raise UserError if one of them is not finite."""
        if not np.isfinite(run_values.results).all():
            raise divergence_error('because the loss or a gradient is not finite', self._run)


class LoggingHook(tf.train.SessionRunHook):
    """Hook that prints the books' log line, with epoch and time left.

    The first step of a run prints `step 0`, with the loss of the initial weights, as in the books.
    Later lines come every `log_frequency` steps and at the end. Their throughput includes all work
    since the previous line. tf.train.LoggingTensorHook prints only tensors.
    """

    def __init__(self, run_length, log_frequency):
        """Make the hook of a RunLength."""
        self._run_length, self._log_frequency = run_length, log_frequency

    def after_create_session(self, session, coord):
        """Start the timer."""
        self._step = int(session.run(tf.train.get_global_step()))
        # (time, step) of each line. The time left is estimated from the last 100 lines.
        self._lines = collections.deque([(time.monotonic(), self._step)], maxlen=102)

    def before_run(self, run_context):
        """Request step and loss."""
        return tf.train.SessionRunArgs({'step': STEP, 'loss': LOSS})

    def after_run(self, run_context, run_values):
        """Print a line when it is due."""
        before, self._step = self._step, int(run_values.results['step'])
        self._loss = run_values.results['loss']
        if before == 0 and self._step == 1:
            self._print(0)
        if should_trigger(self._step, self._lines[-1][1], self._log_frequency):
            self._print(self._step)

    def end(self, session):
        """Print the line of the last step."""
        if self._step > self._lines[-1][1]:
            self._print(self._step)

    def _print(self, step):
        # The line of step 0 has the time of the first update.
        self._lines.append((time.monotonic(), self._step))
        run_length, seconds = self._run_length, sec_per_step(*list(self._lines)[-2:])
        # The estimate skips the slow first steps, before the first line. Other workers may be past
        # the last step.
        left = max(0, run_length.last_step - self._step)
        left *= sec_per_step(self._lines[1], self._lines[-1]) if len(self._lines) > 2 else seconds
        print(
            f'{datetime.datetime.now().isoformat(" ", "microseconds")}: step {step}, loss = {self._loss:.2f} '
            f'({run_length.examples_per_step / seconds:.1f} examples/sec; '
            f'{seconds / run_length.batches_per_step:.3f} sec/batch), epoch '
            f'{run_length.epoch_at(step):.2f} of {round(run_length.epoch_at(run_length.last_step), 2):g}, '
            f'{datetime.timedelta(seconds=round(left))} left'
        )


def sec_per_step(before, now):
    """Return the seconds per step between two pairs of (time, step).

    In a cluster with backup workers, a session run can leave the step unchanged.
    """
    return (now[0] - before[0]) / max(1, now[1] - before[1])


class SaveListener(tf.train.CheckpointSaverListener):
    """Listener that checks a run before each checkpoint.

    Values that are not finite are never saved. tf.train.CheckpointSaverHook would save them.
    """

    def __init__(self, run):
        """Make the listener of a Run."""
        self._run, self._saved_step = run, None

    def begin(self):
        """Add the checks of the variables to the graph."""
        with tf.name_scope('is_finite'):
            self._is_finite = {
                variable.op.name: tf.reduce_all(tf.is_finite(variable))
                for variable in tf.global_variables()
                if variable.dtype.base_dtype.is_floating
            }

    def before_save(self, session, global_step_value):
        """Check the variables; write the record before the first checkpoint.

        Raises:
          UserError: a variable is not finite.
        """
        is_finite = session.run(self._is_finite)
        wrong = ', '.join(sorted(name for name, value in is_finite.items() if not value))
        if wrong:
            raise divergence_error(
                f'at step {global_step_value}: not finite are {wrong}', self._run
            )
        if self._saved_step is None:
            run_record.write(self._run.directory, self._run.record)
        self._saved_step = global_step_value

    def end(self, session, global_step_value):
        """Print the path of the last checkpoint."""
        path = os.path.join(self._run.directory, f'{checkpoint.PREFIX}-{self._saved_step}')
        print(f'Saved {path}')


def divergence_error(found, run):
    """Return the UserError of a diverged run; `run` is a Run, or None for another worker."""
    saved = 'that of the chief'
    if run:
        saved = next((found.path for found in checkpoint.find(run.directory)), 'none yet')
    return UserError(
        f'Training diverged {found}. The last good checkpoint is {saved}: '
        'lower --initial_learning_rate (with Muon, also --matrix_learning_rate); if it diverges again, set --fresh'
    )


class SaverHook(tf.train.CheckpointSaverHook):
    """tf.train.CheckpointSaverHook that checks a run before each checkpoint."""

    def __init__(self, run, saver, save_steps):
        """Make the hook of a Run and a tf.train.Saver."""
        super().__init__(
            run.directory, save_steps=save_steps, saver=saver, listeners=[SaveListener(run)]
        )
        if hasattr(self, '_set_steps_per_run'):
            # Otherwise TensorFlow 2 reads the step in a session run of its own after each step.
            self._set_steps_per_run(1)
