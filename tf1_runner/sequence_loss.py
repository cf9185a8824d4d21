"""Losses of sequences, of tf.contrib.seq2seq and tf.contrib.legacy_seq2seq."""

import tensorflow.compat.v1 as tf


def sequence_loss(
    logits,
    targets,
    weights,
    average_across_timesteps=True,
    average_across_batch=True,
    *,
    softmax_loss_function=None,
    name=None,
):
    """Return the weighted cross entropy of sequences, as tf.contrib.seq2seq.sequence_loss does.

    An average is divided by the sum of the weights.

    Args:
      logits: [batch, time, classes].
      targets: integers [batch, time].
      weights: [batch, time].
      average_across_timesteps: average over the axis of time if True.
      average_across_batch: average over the batch if True.
      softmax_loss_function: a function of labels and logits instead of the sparse cross entropy.
      name: name scope.

    Returns:
      A scalar, or [time] or [batch] if only one axis is averaged, or [batch, time].
    """
    with tf.name_scope(name, 'sequence_loss'):
        losses = tf.reshape(
            _cross_entropy(
                tf.reshape(logits, [-1, tf.shape(logits)[2]]), targets, softmax_loss_function
            ),
            tf.shape(logits)[:2],
        )
        losses *= weights
        axes = [0] * bool(average_across_batch) + [1] * bool(average_across_timesteps)
        if axes:
            return tf.div_no_nan(tf.reduce_sum(losses, axes), tf.reduce_sum(weights, axes))
        return losses


def _cross_entropy(logits, targets, softmax_loss_function):
    function = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    return function(labels=tf.reshape(targets, [-1]), logits=logits)


def sequence_loss_by_example(
    logits, targets, weights, average_across_timesteps=True, softmax_loss_function=None, name=None
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
