"""The tutorial's train op: averages of the losses, learning rate, update, moving averages."""

import tensorflow.compat.v1 as tf

from cifar10 import optimizer
from cifar10.config import CLASSIC, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN, RunLength


def add_loss_summaries(total_loss):
    """Return the op that averages the losses over the steps; summarize losses and averages.

    The losses are `total_loss`, a scalar, and those of the collection 'losses'.
    """
    averages = tf.train.ExponentialMovingAverage(0.9, name='avg')
    losses = tf.get_collection('losses') + [total_loss]
    averages_op = averages.apply(losses)
    for part in losses:
        # TensorFlow replaces the tutorial's ' (raw)' by this suffix.
        tf.summary.scalar(part.op.name + '__raw_', part)
        tf.summary.scalar(part.op.name, averages.average(part))
    return averages_op


def learning_rate(global_step, run_length, hparams):
    """Return the learning rate, and add its summary; see `train`.

    The rate decays every int(num_epochs_per_decay * steps per epoch) steps.
    """
    decay_steps = int(
        run_length.examples_per_epoch / run_length.examples_per_step * hparams.num_epochs_per_decay
    )
    rate = tf.train.exponential_decay(
        hparams.initial_learning_rate,
        global_step,
        decay_steps,
        hparams.learning_rate_decay_factor,
        staircase=True,
    )
    tf.summary.scalar('learning_rate', rate)
    return rate


def train(
    total_loss,
    global_step,
    run_length=RunLength(CLASSIC.batch_size, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN),
    hparams=CLASSIC,
):
    """Return the train op of the tutorial's `cifar10.train`.

    The op averages the losses, applies the gradients, and then updates the moving averages of all
    trainable variables; for their decay see optimizer.train_op. Summaries of learning rate, losses,
    variables and gradients are added.

    Args:
      total_loss: a scalar, as `loss` returns it.
      global_step: the variable with the number of updates.
      run_length: a RunLength.
      hparams: an HParams, for the learning rate, its decay and moving_average_decay.
    """
    rate = learning_rate(global_step, run_length, hparams)
    with tf.control_dependencies([add_loss_summaries(total_loss)]):
        opt = tf.train.GradientDescentOptimizer(rate)
        gradients = opt.compute_gradients(total_loss)
    for gradient, variable in gradients:
        tf.summary.histogram(variable.op.name, variable)
        if gradient is not None:
            tf.summary.histogram(variable.op.name + '/gradients', gradient)
    return optimizer.train_op(opt, gradients, global_step, run_length, hparams)
