"""Hooks that write for TensorBoard: summaries, the graph, a trace."""

import os
import re
import time

import tensorflow.compat.v1 as tf

from cifar10.hooks import LOSS, STEP, sec_per_step
from cifar10.report import event_files
from cifar10.system import files


class SummaryHook(tf.train.SessionRunHook):
    """Hook that writes the summaries of a step, with epoch and rates.

    It writes them after the first step of the session, then every `save_steps` steps and after the
    last step, which tf.train.SummarySaverHook leaves out. It also writes the summaries of the start
    and the end of the run.
    """

    def __init__(self, run, writer, summary_op, run_length, save_steps):
        """Make the hook of a Run and a tf.summary.FileWriter; `summary_op` is that of a Step."""
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
        seconds = sec_per_step(before, self._written)
        summary = tf.Summary.FromString(run_values.results['summary'])
        for tag, value in [
            (event_files.EPOCH, self._run_length.epoch_at(self._step)),
            (event_files.EXAMPLES_PER_SEC, self._run_length.examples_per_step / seconds),
            (event_files.SEC_PER_STEP, seconds),
        ]:
            summary.value.add(tag=tag, simple_value=value)
        event_files.write(self._writer, [summary], self._step)

    def end(self, session):
        """Write the end of the run, unless it was stopped before its last step."""
        if self._step >= self._run_length.last_step:
            event_files.write(self._writer, [event_files.run_end_summary()], self._step)


def _in_layer(name):
    """Return conv1/sub_batch_0/x for sub_batch_0/conv1/x, so that a layer is one box."""
    return re.sub('(sub_batch_[0-9]+)/([^/:]+)', r'\2/\1', name)


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
        for node in shown.node:
            node.name, node.input[:] = _in_layer(node.name), map(_in_layer, node.input)
        self._writer.add_event(tf.Event(graph_def=shown.SerializeToString(), wall_time=time.time()))


class ProfilerHook(tf.train.SessionRunHook):
    """Hook that writes a trace of one step, as JSON: time and device of each operation.

    Open it with https://ui.perfetto.dev or chrome://tracing. TensorBoard's Graphs tab has the
    times, too.

    In a cluster, another worker may make this step. Then the next step of this process is traced.
    tf.train.ProfilerHook traces again and again, and takes the step before the update.
    """

    def __init__(self, run, writer, profile_step):
        """Make the hook of a Run and a tf.summary.FileWriter for a global step."""
        self._run, self._writer, self._profile_step = run, writer, profile_step

    def after_create_session(self, session, coord):
        """Print a line if the step is not in this session."""
        self._global_step = session.run(tf.train.get_global_step())
        first, last, step = self._global_step + 1, self._run.record.last_step, self._profile_step
        self._is_pending = first <= step <= last
        if not self._is_pending:
            print(f'No trace: step {step} is outside steps {first} to {last}')

    def before_run(self, run_context):
        """Request a trace if the step is next."""
        self._is_tracing = self._is_pending and self._global_step + 1 >= self._profile_step
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) if self._is_tracing else None
        return tf.train.SessionRunArgs(STEP, options=options)

    def after_run(self, run_context, run_values):
        """Write the trace."""
        from tensorflow.python.client import timeline

        self._global_step, metadata = run_values.results, run_values.run_metadata
        if self._is_tracing:
            self._is_pending = False
            path = os.path.join(self._run.directory, f'trace-{self._global_step}.json')
            trace = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
            files.atomic_write(path, trace, 'make room there')
            print(
                f'Traced step {self._global_step}: open {path} with https://ui.perfetto.dev or chrome://tracing'
            )
            for node in sum(
                [list(device.node_stats) for device in metadata.step_stats.dev_stats], []
            ):
                node.node_name = _in_layer(node.node_name)
            self._writer.add_run_metadata(metadata, f'step {self._global_step}', self._global_step)
