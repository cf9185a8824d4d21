"""What the mode of a run makes of a worker's gradients."""

from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf


class Update(NamedTuple):
    """A worker's part in an update."""

    train_op: tf.Operation
    gradients: Sequence[tuple]  # of (gradient, variable), for the summaries
    start_op: tf.Operation  # runs once, before the first step
    publish_op: tf.Operation  # runs before it, at the worker that gives the variables their values
    # of the variables; another one means that the chief has given them other values
    generation: Optional[tf.Tensor] = None
    hooks: Sequence[tf.train.SessionRunHook] = ()
    summaries: Sequence[tf.Tensor] = ()  # further ones
    # fetches the weights now and then, if the train op does not
    fetch_op: Optional[tf.Operation] = None
