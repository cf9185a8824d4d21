"""Learning-rate schedules, optimizers, moving averages."""
import math

import tensorflow.compat.v1 as tf

from cifar10 import muon
from cifar10.hparams import RECIPES


def examples_per_decay(examples_per_epoch, hparams):
    """The number of examples after which the learning rate of the staircase decays, at least 1."""
    return max(1, int(round(examples_per_epoch * hparams.num_epochs_per_decay)))


def num_steps(examples_per_step, examples_per_epoch, hparams):
    """The number of steps in hparams.epochs, rounded up, at least 1; infinity for a run without end."""
    if math.isinf(hparams.epochs):
        return math.inf
    return max(1, math.ceil(round(hparams.epochs * examples_per_epoch / examples_per_step, 6)))  # 1.1 * 100 is a little over 110


def batch_factor(examples_per_step, hparams):
    """How many times the batch size of the recipe a step takes."""
    return examples_per_step / RECIPES[hparams.recipe].batch_size


def _highest_rate(examples_per_step, hparams):
    factor = batch_factor(examples_per_step, hparams) if hparams.lr_scaling == 'linear' else 1
    return hparams.initial_learning_rate * factor


def learning_rate(global_step, examples_per_step, examples_per_epoch, hparams):
    """The learning rate of the next step.

    The schedules count examples, so that they do not depend on the number of towers. The highest rate of both is
    initial_learning_rate, scaled as lr_scaling says.

    staircase: times learning_rate_decay_factor for every num_epochs_per_decay epochs gone by. The rate first falls in the step
    before which num_epochs_per_decay epochs have been consumed.

    linear: up along a line, from 0, over warmup_epochs, then down along a line, to 0 at the end of `epochs`. A step has the rate
    of the middle of its examples.

    Args:
      global_step: the number of updates so far, an integer scalar.
      examples_per_step: examples that all towers together consume in a step.
      examples_per_epoch: examples in the training set.
      hparams: an HParams.

    Returns:
      A float32 scalar tensor.
    """
    with tf.name_scope('learning_rate'):
        # Integers and float64: float32, in which tf.train.exponential_decay counts, has no room for 350 epochs of examples.
        step = tf.cast(global_step, tf.int64)
        if hparams.schedule == 'staircase':
            decays = step * examples_per_step // examples_per_decay(examples_per_epoch, hparams)
            factor = tf.pow(hparams.learning_rate_decay_factor, tf.cast(decays, tf.float32))
        else:
            epoch = (tf.cast(step, tf.float64) + 0.5) * (examples_per_step / examples_per_epoch)
            fall = tf.maximum((hparams.epochs - epoch) / (hparams.epochs - hparams.warmup_epochs), 0)
            factor = tf.cast(tf.minimum(epoch / hparams.warmup_epochs, fall) if hparams.warmup_epochs else fall, tf.float32)
        return tf.multiply(_highest_rate(examples_per_step, hparams), factor, name='rate')


def describe_learning_rate(step, examples_per_step, examples_per_epoch, hparams):
    """What there is to say of the learning rate before the given step."""
    rate = _highest_rate(examples_per_step, hparams)
    if hparams.schedule == 'linear':
        return 'up to %g over %g epochs, then down to 0 at the end of epoch %g (step %d)' % (
            rate, hparams.warmup_epochs, hparams.epochs, num_steps(examples_per_step, examples_per_epoch, hparams))
    decay = examples_per_decay(examples_per_epoch, hparams)
    decays = step * examples_per_step // decay
    rate *= hparams.learning_rate_decay_factor ** decays
    return '%g, next %g from epoch %g on (step %d)' % (
        rate, rate * hparams.learning_rate_decay_factor, (decays + 1) * hparams.num_epochs_per_decay,
        -(-(decays + 1) * decay // examples_per_step))


def create(learning_rate, hparams):
    """The optimizer that hparams.optimizer names, a tf.train.Optimizer.

    Args:
      learning_rate: a scalar tensor, see `learning_rate`.
      hparams: an HParams.
    """
    if hparams.optimizer == 'gradient_descent':
        return tf.train.GradientDescentOptimizer(learning_rate)
    if hparams.optimizer == 'momentum':
        return tf.train.MomentumOptimizer(learning_rate, hparams.momentum, use_nesterov=True)
    matrix_learning_rate = learning_rate * (hparams.matrix_learning_rate / hparams.initial_learning_rate)
    return muon.Muon(learning_rate, hparams.momentum, matrix_learning_rate, hparams.matrix_weight_decay, _is_hidden)


def _is_hidden(variable):
    name = variable.op.name
    return name.endswith('/weights') and not name.startswith('softmax_linear/')


def train(optimizer, gradients, global_step, hparams, run_steps):
    """Applies the gradients, then moves the moving averages of all trainable variables.

    The averages move by decay = min(d, (1 + step) / (10 + step)), with step the number of updates this one included, towards
    the weights after the update. d is 1 - 1 / (moving_average_fraction run_steps), so that they reach back over that part of the
    run however many steps it is; or moving_average_decay, where that fraction is 0.

    Args:
      optimizer: a tf.train.Optimizer.
      gradients: list of (gradient, variable).
      global_step: the variable that counts updates.
      hparams: an HParams.
      run_steps: see `num_steps`.

    Returns:
      The train op.
    """
    decay = hparams.moving_average_decay
    if hparams.moving_average_fraction:
        decay = max(0.0, 1 - 1 / (hparams.moving_average_fraction * run_steps))
    with tf.name_scope('update'):
        update = optimizer.apply_gradients(gradients, global_step=global_step)
    with tf.name_scope('moving_averages'), tf.control_dependencies([update]):
        averages = tf.train.ExponentialMovingAverage(decay, global_step)
        return averages.apply(tf.trainable_variables())
