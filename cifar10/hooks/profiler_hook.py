"""Trace of one step: time and device of each operation.

Open the trace with https://ui.perfetto.dev or chrome://tracing. TensorBoard's Graphs tab has
the times.
"""

import os

import tensorflow.compat.v1 as tf

from cifar10.system import files, private_api

RUN_OPTIONS = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def chrome_trace(metadata):
    """Return the trace of a session run, as JSON.

    Args:
      metadata: the tf.RunMetadata of a run with RUN_OPTIONS.
    """
    return private_api.Timeline(metadata.step_stats).generate_chrome_trace_format()


class ProfilerHook(tf.train.SessionRunHook):
    """Hook that traces one step.

    In a cluster, another worker may make this step. Then the next step of this process is traced.
    tf.train.ProfilerHook traces again and again, and takes the step before the update.
    """

    def __init__(self, step, run, run_length, profile_step):
        """Make the hook.

        Args:
          step: a training.Step.
          run: a Run.
          run_length: a RunLength.
          profile_step: the global step to trace; None traces none.
        """
        self._fetches = step.global_step
        self._run = run
        self._steps_per_execution = run_length.steps_per_execution
        self._profile_step = profile_step

    def after_create_session(self, session, coord):
        """Record if the step is still ahead."""
        self._step = session.run(tf.train.get_global_step())
        self._is_pending = self._step < (self._profile_step or 0)

    def before_run(self, run_context):
        """Request a trace if the step is next."""
        self._is_tracing = (
            self._is_pending and self._step + self._steps_per_execution >= self._profile_step
        )
        return tf.train.SessionRunArgs(
            self._fetches, options=RUN_OPTIONS if self._is_tracing else None
        )

    def after_run(self, run_context, run_values):
        """Write the trace."""
        self._step = run_values.results
        if self._is_tracing:
            self._is_pending = False
            with self._run.output_errors.collect('the trace'):  # The disk may be full.
                self._save(run_values.run_metadata)

    def _save(self, metadata):
        path = os.path.join(self._run.directory, f'trace-{self._step}.json')
        files.atomic_write(path, chrome_trace(metadata), 'make room there')
        print(
            f'Traced step {self._step}: open {path} with https://ui.perfetto.dev or chrome://tracing'
        )
        self._run.summary_writer.add_run_metadata(metadata, f'step {self._step}', self._step)
