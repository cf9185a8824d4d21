"""Learning-rate schedule, gradient descent, moving averages."""
import tensorflow.compat.v1 as tf


def examples_per_decay(examples_per_epoch, hparams):
    """The number of examples after which the learning rate decays."""
    return int(round(examples_per_epoch * hparams.num_epochs_per_decay))


def learning_rate(global_step, examples_per_step, examples_per_epoch, hparams):
    """initial_learning_rate times learning_rate_decay_factor for every num_epochs_per_decay epochs gone by.

    The schedule counts examples, so that it does not depend on the number of towers: the rate first falls in the step
    before which num_epochs_per_decay epochs have been consumed.

    Args:
      global_step: the number of updates so far, an integer scalar.
      examples_per_step: examples that all towers together consume in a step.
      examples_per_epoch: examples in the training set.
      hparams: an HParams.

    Returns:
      A float32 scalar tensor.
    """
    with tf.name_scope('learning_rate'):
        # In integers: float32, in which tf.train.exponential_decay counts, has no room for 350 epochs of examples.
        examples = tf.cast(global_step, tf.int64) * examples_per_step
        decays = examples // examples_per_decay(examples_per_epoch, hparams)
        return tf.multiply(hparams.initial_learning_rate,
                           tf.pow(hparams.learning_rate_decay_factor, tf.cast(decays, tf.float32)), name='rate')


def train(optimizer, gradients, global_step, hparams):
    """Applies the gradients, then moves the moving averages of all trainable variables.

    The averages move by decay = min(moving_average_decay, (1 + step) / (10 + step)), with step the number of updates this
    one included, towards the weights after the update.

    Args:
      optimizer: a tf.train.Optimizer.
      gradients: list of (gradient, variable).
      global_step: the variable that counts updates.
      hparams: an HParams.

    Returns:
      The train op.
    """
    with tf.name_scope('update'):
        update = optimizer.apply_gradients(gradients, global_step=global_step)
    with tf.name_scope('moving_averages'), tf.control_dependencies([update]):
        averages = tf.train.ExponentialMovingAverage(hparams.moving_average_decay, global_step)
        return averages.apply(tf.trainable_variables())
