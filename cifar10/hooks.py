"""Hooks that TensorFlow lacks: log line, signals, filling of the queue, replay, checks, trace.

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
from cifar10.report import event_files
from cifar10.system import files, private_api, signals

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
    first step, the hook raises SignalInterrupt, because there is nothing to save.
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

    def __init__(self, queue, batches_per_step, stop_request):
        """Make the hook.

        Args:
          queue: the prefetch queue.
          batches_per_step: the number of batches to skip per step.
          stop_request: a signals.StopRequest; its signal ends the replay.
        """
        self._queue, self._batches_per_step = queue, batches_per_step
        self._stop_request = stop_request

    def begin(self):
        """Add an operation that removes a batch. Earlier operations keep their seeds."""
        with tf.name_scope('replay'):
            self._skip = tf.group(*self._queue.dequeue())

    def after_create_session(self, session, coord):
        """Skip the batches, until a signal or an error of the input; print the progress."""
        steps, next_print = int(session.run(tf.train.get_global_step())), time.monotonic()
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

    def begin(self):
        """Print the size of the network."""
        sizes = [variable.shape.num_elements() for variable in tf.trainable_variables()]
        print(f'Network: {sum(sizes)} parameters')

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
        run_length, sec_per_step = self._run_length, _sec_per_step(*list(self._lines)[-2:])
        # The estimate skips the slow first steps, before the first line. Other workers may be past
        # the last step.
        left = max(0, run_length.last_step - self._step)
        if len(self._lines) > 2:
            left *= _sec_per_step(self._lines[1], self._lines[-1])
        else:
            left *= sec_per_step
        print(
            f'{datetime.datetime.now().isoformat(" ", "microseconds")}: step {step}, loss = {self._loss:.2f} '
            f'({run_length.examples_per_step / sec_per_step:.1f} examples/sec; '
            f'{sec_per_step / run_length.batches_per_step:.3f} sec/batch), epoch '
            f'{run_length.epoch_at(step):.2f} of {round(run_length.epoch_at(run_length.last_step), 2):g}, '
            f'{datetime.timedelta(seconds=round(left))} left'
        )


class SummaryHook(tf.train.SessionRunHook):
    """Hook that writes the summaries of a step, with epoch and rates.

    It writes them after the first step of the session, then every `save_steps` steps and after the
    last step, which tf.train.SummarySaverHook leaves out. It also writes the summaries of the start
    and the end of the run.
    """

    def __init__(self, run, writer, summary_op, run_length, save_steps):
        """Make the hook.

        Args:
          run: a Run.
          writer: a tf.summary.FileWriter.
          summary_op: the serialized summaries of a step, a string scalar.
          run_length: a RunLength.
          save_steps: the steps between two summaries.
        """
        self._run, self._writer, self._summary_op = run, writer, summary_op
        self._run_length, self._save_steps = run_length, save_steps

    def after_create_session(self, session, coord):
        """Write the summaries of the start; start the timer."""
        self._step = int(session.run(tf.train.get_global_step()))
        self._written, self._next_step = (time.monotonic(), self._step), self._step + 1
        start = event_files.run_start_summaries(self._run.plan, self._run.record)
        event_files.write(self._writer, start, self._step)
        # TensorBoard ignores earlier summaries of this and later steps.
        self._writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), self._next_step)

    def before_run(self, run_context):
        """Request the step, and the summaries when they are due."""
        fetches = {'step': STEP}
        if self._step + 1 >= min(self._next_step, self._run_length.last_step):
            fetches['summary'] = self._summary_op
        return tf.train.SessionRunArgs(fetches)

    def after_run(self, run_context, run_values):
        """Write the summaries."""
        self._step = int(run_values.results['step'])
        if 'summary' not in run_values.results:
            return
        before, self._written = self._written, (time.monotonic(), self._step)
        self._next_step = self._step + self._save_steps
        sec_per_step = _sec_per_step(before, self._written)
        summary = tf.Summary.FromString(run_values.results['summary'])
        for tag, value in [
            (event_files.EPOCH, self._run_length.epoch_at(self._step)),
            (event_files.EXAMPLES_PER_SEC, self._run_length.examples_per_step / sec_per_step),
            (event_files.SEC_PER_STEP, sec_per_step),
        ]:
            summary.value.add(tag=tag, simple_value=value)
        event_files.write(self._writer, [summary], self._step)

    def end(self, session):
        """Write the end of the run, unless it was stopped before its last step."""
        if self._step >= self._run_length.last_step:
            event_files.write(self._writer, [event_files.run_end_summary()], self._step)


def _sec_per_step(before, now):
    """Return the seconds per step between two pairs of (time, step).

    In a cluster with backup workers, a session run can leave the step unchanged.
    """
    return (now[0] - before[0]) / max(1, now[1] - before[1])


class SaveListener(tf.train.CheckpointSaverListener):
    """Listener that checks a run before each checkpoint.

    A moved directory ends the run, and values that are not finite are never saved.
    tf.train.CheckpointSaverHook would make the directory again, and save such values.
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
        """Check the directory and the variables; write the record before the first checkpoint.

        Raises:
          UserError: the directory has been moved or removed, or a variable is not finite.
        """
        self._run.check_directory()
        is_finite = session.run(self._is_finite)
        wrong = ', '.join(sorted(name for name, value in is_finite.items() if not value))
        if wrong:
            raise divergence_error(
                f'at step {global_step_value}: not finite are {wrong}', self._run
            )
        if self._saved_step is None:
            self._run.write_record()
        self._saved_step = global_step_value

    def end(self, session, global_step_value):
        """Print the path of the last checkpoint."""
        print(f'Saved {self._run.checkpoint_path(self._saved_step)}')


def divergence_error(found, run):
    """Return the UserError of a diverged run; `run` is a Run, or None for another worker."""
    saved = run.newest_checkpoint() if run else 'the one of the chief'
    return UserError(
        f'Training diverged {found}. The last good checkpoint is {saved}',
        'lower {initial_learning_rate} (with Muon, also {matrix_learning_rate}); if it diverges again, set {fresh}',
        'initial_learning_rate',
        'matrix_learning_rate',
        'fresh',
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


class GraphHook(tf.train.SessionRunHook):
    """Hook that writes the graph of a training step and of the queue runners for TensorBoard.

    tf.train.CheckpointSaverHook, which is before this hook in the list, writes the whole graph. It
    also has the operations that initialize, check, summarize and save the variables, each of them
    connected with each layer, so that TensorBoard would not show the layers as a chain. TensorBoard
    shows the graph that was written last.
    """

    def __init__(self, writer, train_op):
        """Make the hook of the tf.summary.FileWriter of the saver."""
        self._writer, self._train_op = writer, train_op

    def after_create_session(self, session, coord):
        """Write the graph."""
        runners = session.graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        ops = [self._train_op, session.graph.get_tensor_by_name(LOSS).op]
        ops += sum([runner.enqueue_ops for runner in runners], [])
        whole = session.graph.as_graph_def(add_shapes=True)
        shown = tf.graph_util.extract_sub_graph(whole, [op.name for op in ops])
        self._writer.add_event(tf.Event(graph_def=shown.SerializeToString(), wall_time=time.time()))


class ProfilerHook(tf.train.SessionRunHook):
    """Hook that writes a trace of one step, as JSON: time and device of each operation.

    Open it with https://ui.perfetto.dev or chrome://tracing. TensorBoard's Graphs tab has the
    times, too.

    In a cluster, another worker may make this step. Then the next step of this process is traced.
    tf.train.ProfilerHook traces again and again, and takes the step before the update.
    """

    def __init__(self, run, writer, profile_step):
        """Make the hook.

        Args:
          run: a Run.
          writer: a tf.summary.FileWriter.
          profile_step: the global step to trace.
        """
        self._run, self._writer, self._profile_step = run, writer, profile_step

    def after_create_session(self, session, coord):
        """Record if the step is still ahead."""
        self._global_step = session.run(tf.train.get_global_step())
        self._is_pending = self._global_step < self._profile_step

    def before_run(self, run_context):
        """Request a trace if the step is next."""
        self._is_tracing = self._is_pending and self._global_step + 1 >= self._profile_step
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) if self._is_tracing else None
        return tf.train.SessionRunArgs(STEP, options=options)

    def after_run(self, run_context, run_values):
        """Write the trace."""
        self._global_step, metadata = run_values.results, run_values.run_metadata
        if self._is_tracing:
            self._is_pending = False
            path = os.path.join(self._run.directory, f'trace-{self._global_step}.json')
            trace = private_api.Timeline(metadata.step_stats).generate_chrome_trace_format()
            files.atomic_write(path, trace, 'make room there')
            print(
                f'Traced step {self._global_step}: open {path} with https://ui.perfetto.dev or chrome://tracing'
            )
            self._writer.add_run_metadata(metadata, f'step {self._global_step}', self._global_step)
