"""What a worker does around its steps to stay with the others."""

import tensorflow.compat.v1 as tf


class BegunAnew(Exception):
    """The chief has given the variables other values, those of a checkpoint."""


class JoinHook(tf.train.SessionRunHook):
    """Begins together with the others, and notices when they begin anew."""

    def __init__(self, replica, update):
        self._replica = replica
        self._update = update

    def after_create_session(self, session, coord):
        if self._replica.publishes:
            session.run(self._update.publish_op)
            self._replica.publish()
        session.run(self._update.start_op)
        self._replica.has_joined()
        self._is_first = True

    def before_run(self, run_context):
        if self._is_first:
            self._is_first = False
            self._replica.trains()
        if self._update.generation is not None:
            return tf.train.SessionRunArgs(self._update.generation)

    def after_run(self, run_context, run_values):
        if self._update.generation is not None and run_values.results != self._replica.generation:
            raise BegunAnew
        self._replica.made_update()
