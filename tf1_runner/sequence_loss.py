"""Losses of sequences, of tf.contrib.seq2seq and tf.contrib.legacy_seq2seq."""

import tensorflow.compat.v1 as tf


def sequence_loss(
    logits,
    targets,
    weights,
    average_across_timesteps=True,
    average_across_batch=True,
    sum_over_timesteps=False,
    sum_over_batch=False,
    softmax_loss_function=None,
    name=None,
):
    """Return the weighted cross entropy of sequences, as tf.contrib.seq2seq.sequence_loss does.

    An average is divided by the sum of the weights, a sum by the number of weights other than 0.

    Args:
      logits: [batch, time, classes].
      targets: integers [batch, time].
      weights: [batch, time].
      average_across_timesteps: average over the axis of time if True.
      average_across_batch: average over the batch if True.
      sum_over_timesteps: sum over the axis of time if True; not with average_across_timesteps.
      sum_over_batch: sum over the batch if True; not with average_across_batch.
      softmax_loss_function: a function of labels and logits instead of the sparse cross entropy.
      name: name scope.

    Returns:
      A scalar, or [time] or [batch] if only one axis is averaged or summed, or [batch, time].

    Raises:
      ValueError: an axis is to be averaged and summed.
    """
    if average_across_timesteps and sum_over_timesteps or average_across_batch and sum_over_batch:
        raise ValueError('An axis cannot be averaged and summed')
    with tf.name_scope(name, 'sequence_loss'):
        losses = tf.reshape(
            _cross_entropy(
                tf.reshape(logits, [-1, tf.shape(logits)[2]]), targets, softmax_loss_function
            ),
            tf.shape(logits)[:2],
        )
        losses *= weights
        for is_average, over_batch, over_time in [
            (True, average_across_batch, average_across_timesteps),
            (False, sum_over_batch, sum_over_timesteps),
        ]:
            axes = [0] * bool(over_batch) + [1] * bool(over_time)
            if axes:
                total = (
                    tf.reduce_sum(weights, axes)
                    if is_average
                    else tf.cast(tf.count_nonzero(weights, axes), losses.dtype)
                )
                return tf.div_no_nan(tf.reduce_sum(losses, axes), total)
        return losses


def _cross_entropy(logits, targets, softmax_loss_function):
    function = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    return function(labels=tf.reshape(targets, [-1]), logits=logits)


def sequence_loss_by_example(
    logits,
    targets,
    weights,
    average_across_timesteps=True,
    softmax_loss_function=None,
    name=None,
):
    """Return the weighted cross entropies of each sequence, [batch].

    Args:
      logits: list with [batch, classes] for each step of time.
      targets: list of integers [batch].
      weights: list of [batch].
      average_across_timesteps: divide by the sum of the weights if True.
      softmax_loss_function: a function of labels and logits instead of the sparse cross entropy.
      name: name scope.
    """
    with tf.name_scope(name, 'sequence_loss_by_example'):
        losses = tf.add_n(
            [
                _cross_entropy(logit, target, softmax_loss_function) * weight
                for logit, target, weight in zip(logits, targets, weights)
            ]
        )
        # TensorFlow adds 1e-12 for sequences whose weights are all 0.
        return losses / (tf.add_n(weights) + 1e-12) if average_across_timesteps else losses


def legacy_sequence_loss(
    logits,
    targets,
    weights,
    average_across_timesteps=True,
    average_across_batch=True,
    softmax_loss_function=None,
    name=None,
):
    """Return the sum of `sequence_loss_by_example`, or its average, a scalar."""
    with tf.name_scope(name, 'sequence_loss'):
        losses = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        return (tf.reduce_mean if average_across_batch else tf.reduce_sum)(losses)
