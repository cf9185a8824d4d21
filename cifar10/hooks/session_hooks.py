"""Hooks of the training session: stop, signals, queue filling, logging, summaries.

Each hook fetches its tensors in the session.run of the train op. `step` is a training.Step; its
global_step includes this update.
"""

import collections
import datetime
import math
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input
from cifar10.report import tensorboard
from cifar10.system import signals

_REPLAY_PRINT_SECS = 2


def should_trigger(step, last_triggered_step, every_n_steps):
    """Return True if (last_triggered_step, step] has a multiple of `every_n_steps`.

    In a cluster, a worker may not see the multiple itself, because other workers make steps too.
    """
    return step // every_n_steps > last_triggered_step // every_n_steps


class FetchingHook(tf.train.SessionRunHook):
    """Hook that fetches the same tensors in each session run."""

    def __init__(self, fetches):
        self._fetches = fetches

    def before_run(self, run_context):
        """Request the tensors."""
        return tf.train.SessionRunArgs(self._fetches)


class WorkerStopAtStepHook(FetchingHook):
    """Hook that requests a stop of a cluster's worker at the last step.

    tf.train.StopAtStepHook reads the step before the update. It can stop too late, because other
    workers make updates at the same time, and because a session run can make several steps.
    """

    def __init__(self, step, last_step):
        """Make the hook of a training.Step and the last global step."""
        super().__init__(step.global_step)
        self._last_step = last_step

    def after_create_session(self, session, coord):
        """Request a stop if other workers have made the last step: only save."""
        if session.run(tf.train.get_global_step()) >= self._last_step:
            coord.request_stop()

    def after_run(self, run_context, run_values):
        """Request a stop after the last step."""
        if run_values.results >= self._last_step:
            run_context.request_stop()


class StopOnSignalHook(tf.train.SessionRunHook):
    """Hook that requests a stop after a signal; TensorFlow has none.

    Before the first step it raises SignalInterrupt, because there is nothing to save.
    """

    def __init__(self, stop_request):
        """Make the hook of a signals.StopRequest."""
        self._stop_request = stop_request
        self._has_trained = False

    def before_run(self, run_context):
        """Raise SignalInterrupt if there is nothing to save."""
        if self._stop_request.received_signal and not self._has_trained:
            raise signals.SignalInterrupt(self._stop_request.received_signal)

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
        sizes = session.graph.get_collection(cifar10_input.SHUFFLE_QUEUE_SIZE)
        minima = session.graph.get_collection(cifar10_input.SHUFFLE_QUEUE_MIN)
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

    The seed of a deterministic run fixes the sequence of the batches, so the run continues with its
    next batch. TensorFlow has none: it does not save the state of an input.
    """

    def __init__(self, queue, batches_per_step, step, stop_request, report_progress=None):
        """Make the hook.

        Args:
          queue: the prefetch queue.
          batches_per_step: the number of batches to skip per step; 0 if the run is not
            deterministic.
          step: a scalar, the number of steps before the session.
          stop_request: a signals.StopRequest; its signal ends the replay.
          report_progress: a function to call every two seconds, or None.
        """
        self._queue, self._batches_per_step, self._step = queue, batches_per_step, step
        self._stop_request = stop_request
        self._report_progress = report_progress or (lambda: None)

    def begin(self):
        """Add an operation that removes a batch. Earlier operations keep their seeds."""
        if self._batches_per_step:
            with tf.name_scope('replay'):
                self._skip = tf.group(*self._queue.dequeue())

    def after_create_session(self, session, coord):
        """Skip the batches, until a signal or an error of the input; print the progress."""
        if not self._batches_per_step:
            return
        steps, next_print = int(session.run(self._step)), time.monotonic()
        for step in range(steps):
            if time.monotonic() >= next_print:
                print(f'Replaying the input of {steps} steps: {100 * step // steps}%')
                self._report_progress()
                next_print = time.monotonic() + _REPLAY_PRINT_SECS
            for _ in range(self._batches_per_step):
                if self._stop_request.received_signal:
                    return
                try:
                    session.run(self._skip)
                except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                    return  # The first step raises the error of the thread that fills the queue.


class LoggingHook(FetchingHook):
    """Hook that prints a log line every `every_n_steps` steps and at the end.

    The line is the books', with epoch and time left. The throughput includes all work since the
    previous line. tf.train.LoggingTensorHook prints only tensors.
    """

    def __init__(self, step, record_line, run_length, every_n_steps):
        """Make the hook.

        Args:
          step: a training.Step.
          record_line: a function of the step of a line. If it returns False, the line has been
            printed before, and is left out.
          run_length: a RunLength.
          every_n_steps: steps between two lines.
        """
        super().__init__([step.global_step, step.loss])
        self._record_line, self._run_length = record_line, run_length
        self._every_n_steps = every_n_steps
        self._pending_results = None

    def begin(self):
        """Print the size of the network."""
        sizes = [variable.shape.num_elements() for variable in tf.trainable_variables()]
        print(f'Network: {sum(sizes)} parameters')

    def after_create_session(self, session, coord):
        """Start the timer."""
        start = time.monotonic(), session.run(tf.train.get_global_step())
        # (time, step) of each line. The time left is estimated from the last 100 lines.
        self._lines = collections.deque([start], maxlen=102)

    def after_run(self, run_context, run_values):
        """Print a line when it is due."""
        self._pending_results = run_values.results
        if should_trigger(self._pending_results[0], self._lines[-1][1], self._every_n_steps):
            self._print()

    def _print(self):
        (step, loss), run_length = self._pending_results, self._run_length
        self._pending_results = None
        self._lines.append((time.monotonic(), step))
        sec_per_step = self._sec_per_step(-2)
        # The estimate skips the slow first steps, before the first line. Other workers may be past
        # the last step.
        left = max(0, run_length.last_step - step) * self._sec_per_step(
            min(1, len(self._lines) - 2)
        )
        if not self._record_line(step):  # before the line, so that no line appears twice
            return
        print(
            f'{datetime.datetime.now().isoformat(" ", "microseconds")}: step {step}, loss = {loss:.2f} '
            f'({run_length.examples_per_step / sec_per_step:.1f} examples/sec; {sec_per_step:.3f} sec/batch), epoch '
            f'{run_length.epoch_at(step):.2f} of {round(run_length.epoch_at(run_length.last_step), 2):g}, '
            f'{datetime.timedelta(seconds=round(left))} left'
        )

    def _sec_per_step(self, line):
        """Return the seconds per step since a log line."""
        (start, first_step), (now, step) = self._lines[line], self._lines[-1]
        return (now - start) / (step - first_step)

    def end(self, session):
        """Print the line of the last step."""
        if self._pending_results:
            self._print()


class SummaryHook(tf.train.SessionRunHook):
    """Hook that writes the summaries of a run: its start, its steps, its end.

    It writes those of a step at the first step of the session, every `every_n_steps` steps, and at
    the last step of the run, with throughput and epoch. In a cluster, the last step is predicted
    from the number of steps that all workers made during the latest session run, and can be missed.
    tf.train.SummarySaverHook writes neither throughput nor the last step, and loses errors.
    """

    def __init__(self, step, run, run_length, every_n_steps):
        """Make the hook.

        Args:
          step: a training.Step.
          run: a Run.
          run_length: a RunLength.
          every_n_steps: steps between two summaries.
        """
        self._fetches = [step.global_step, step.summary_op]
        self._run = run
        self._run_length = run_length
        self._every_n_steps = every_n_steps

    def begin(self):
        """Write the graph, before TensorFlow adds the operations of the session.

        Raises:
          UserError: no event file can be written.
        """
        tensorboard.write_graph(self._run.summary_writer, tf.get_default_graph())

    def after_create_session(self, session, coord):
        """Write the plan and the hyperparameters; start the timer."""
        self._step = self._last_written_step = session.run(tf.train.get_global_step())
        tensorboard.write_session_start(self._run.summary_writer, self._step)
        for summary in tensorboard.run_start_summaries(self._run.plan, self._run.record):
            self._run.summary_writer.add_summary(summary, self._step)
        self._run.summary_writer.output_errors = self._run.output_errors
        self._last_written_time = time.monotonic()
        # Steps of all workers during the latest session run. Infinite: the first summaries are due.
        self._latest_num_steps = math.inf

    def before_run(self, run_context):
        """Request the summaries when they are due."""
        run_length = self._run_length
        is_next = self._step + self._latest_num_steps >= run_length.last_step or should_trigger(
            self._step + run_length.steps_per_execution,
            self._last_written_step,
            self._every_n_steps,
        )
        return tf.train.SessionRunArgs(self._fetches if is_next else self._fetches[:1])

    def after_run(self, run_context, run_values):
        """Write the summaries and the throughput."""
        before = self._step
        self._step, *serialized = run_values.results
        self._latest_num_steps = self._step - before
        if serialized:
            now = time.monotonic()
            sec_per_step = (now - self._last_written_time) / (self._step - self._last_written_step)
            self._last_written_time, self._last_written_step = now, self._step
            summary = tf.Summary.FromString(*serialized)
            for tag, value in [
                (tensorboard.EPOCH, self._run_length.epoch_at(self._step)),
                (tensorboard.EXAMPLES_PER_SEC, self._run_length.examples_per_step / sec_per_step),
                (tensorboard.SEC_PER_STEP, sec_per_step),
            ]:
                summary.value.add(tag=tag, simple_value=value)
            self._run.summary_writer.add_summary(summary, self._step)


class OutputErrorsHook(tf.train.SessionRunHook):
    """Hook that warns of outputs that could not be written, if another step follows.

    TensorFlow has none: such an error would end the run.
    """

    def __init__(self, run):
        """Make the hook of a Run."""
        self._run = run

    def before_run(self, run_context):
        """Warn of the errors that are new since the last step."""
        self._run.output_errors.warn()
