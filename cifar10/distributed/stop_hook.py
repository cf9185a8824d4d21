"""Hook that stops a worker at the last step."""

import tensorflow.compat.v1 as tf


class StopAtStepHook(tf.train.SessionRunHook):
    """Hook that requests a stop of a worker at the last step.

    tf.train.StopAtStepHook reads the step before the update. It can stop too late, because other
    workers make updates at the same time, and because a session run can make several steps.
    """

    def __init__(self, step, last_step):
        """Make the hook of a training.Step and the last global step."""
        self._global_step, self._last_step = step.global_step, last_step

    def after_create_session(self, session, coord):
        """Request a stop if other workers have made the last step: only save."""
        if session.run(tf.train.get_global_step()) >= self._last_step:
            coord.request_stop()

    def before_run(self, run_context):
        """Request the step."""
        return tf.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context, run_values):
        """Request a stop after the last step."""
        if run_values.results >= self._last_step:
            run_context.request_stop()
