"""Learning rate, optimizers, moving averages and train op."""

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, network
from cifar10.system import machine


def learning_rate(global_step, run_length, hparams):
    """Return the learning rate of the next step, a float32 scalar.

    The schedules count examples, so they do not depend on the number of towers.

    staircase: the rate is multiplied by learning_rate_decay_factor every num_epochs_per_decay
    epochs.

    linear: the rate rises from 0 over warmup_epochs, then falls to 0 at the end of `epochs`. A step
    uses the rate at the middle of its examples.

    Args:
      global_step: the number of updates, an integer scalar.
      run_length: a RunLength.
      hparams: an HParams.
    """
    with tf.name_scope('learning_rate'):
        # float32, as in tf.train.exponential_decay, is exact only up to 2^24 = 16.8 million, but
        # 350 epochs have 17.5 million examples. So examples are counted in int64 and float64.
        step = tf.cast(global_step, tf.int64)
        if hparams.schedule == 'staircase':
            decays = step * run_length.examples_per_step // run_length.examples_per_decay(hparams)
            factor = tf.pow(hparams.learning_rate_decay_factor, tf.cast(decays, tf.float32))
        else:  # linear
            epoch = run_length.epoch_at(tf.cast(step, tf.float64) + 0.5)
            warmup = hparams.warmup_epochs
            factor = tf.maximum((hparams.epochs - epoch) / (hparams.epochs - warmup), 0)
            if warmup:  # the decay is above 1 during the warm-up
                factor = tf.minimum(epoch / warmup, factor)
            factor = tf.cast(factor, tf.float32)
        return tf.multiply(run_length.peak_learning_rate(hparams), factor, name='rate')


def create(learning_rate, hparams):
    """Return the tf.train.Optimizer for hparams.optimizer, with a scalar tensor as the rate."""
    if hparams.optimizer == 'gradient_descent':
        return tf.train.GradientDescentOptimizer(learning_rate)
    if hparams.optimizer == 'momentum':
        return tf.train.MomentumOptimizer(learning_rate, hparams.momentum, use_nesterov=True)
    from cifar10 import muon

    matrix_learning_rate = learning_rate * (
        hparams.matrix_learning_rate / hparams.initial_learning_rate
    )
    rms = hparams.matrix_weight_rms
    return muon.Muon(learning_rate, hparams.momentum, matrix_learning_rate, rms)


def train_op(opt, gradients, global_step, run_length, hparams):
    """Return an op that applies the gradients, and then updates the network's moving averages.

    It also runs the collection UPDATE_OPS, which has updates of statistics. All floating variables
    of the network have averages, statistics too: averaged weights need averaged statistics.

    The decay of the averages is min(d, (1 + step) / (10 + step)), as in
    tf.train.ExponentialMovingAverage. Here, step is the global step after the update, and d is
    moving_average_decay, or follows from moving_average_fraction.

    Args:
      opt: a tf.train.Optimizer.
      gradients: list of (gradient, variable).
      global_step: the variable with the number of updates.
      run_length: a RunLength.
      hparams: an HParams.
    """
    with tf.name_scope('moving_averages/'):
        step = tf.cast(global_step, tf.float32) + 1
        decay = tf.minimum(run_length.max_average_decay(hparams), (1 + step) / (10 + step))
        rate = 1 - decay
    # On a CPU, each variable and its average are updated as soon as the gradient is there. A GPU
    # runs one operation after the other, and Muon has fewer operations for all variables at once.
    # Other optimizers, such as Adam, may have something to do once per step.
    is_separable = isinstance(opt, (tf.train.GradientDescentOptimizer, tf.train.MomentumOptimizer))
    groups = {}
    gradients = [pair for pair in gradients if pair[0] is not None] or gradients
    for gradient, variable in gradients:
        name = 'gpu' if machine.is_gpu(variable.device) else variable.op.name
        key = (name, variable.device) if is_separable else ('all', '')
        groups.setdefault(key, []).append((gradient, variable))
    # The weight decay losses must read the weights before the update. No gradient needs the values
    # of these losses, so only this control dependency orders them.
    losses, statistics = map(tf.get_collection, ('losses', tf.GraphKeys.UPDATE_OPS))
    # Only for speed: a core that applied the first gradients would begin its sub-batches late. So
    # all updates wait for a gradient that needs all sub-batches, unless each has its own core.
    if cpu_kernels.num_sub_batches(tf.get_default_graph()) > machine.num_cores():
        last = [variable.op.name for variable in tf.get_collection(cpu_kernels.LAST_DIVIDED)]
        losses += [gradient for gradient, variable in gradients if variable.op.name in last]
    updates = {}  # by the names of the variables
    for (name, device), group in groups.items():
        with tf.name_scope('update/'), tf.device(device), tf.control_dependencies(losses):
            update = opt.apply_gradients(group, name=name)
        updates.update({variable.op.name: [update] for _, variable in group})
    averages = [
        _update_average(variable, rate, updates.get(name, statistics))
        for name, variable in network.variables().items()
        if variable.dtype.is_floating
    ]
    done = sum(updates.values(), averages + statistics)
    with tf.name_scope('update/'), tf.control_dependencies(done):
        return global_step.assign_add(1, name='global_step', read_value=False)


def _update_average(variable, rate, updates):
    """Create the moving average of a variable; return an op that updates it after `updates`.

    The op is average -= rate * (average - variable), in one pass less than that of
    tf.train.ExponentialMovingAverage. It stays an average if workers of a cluster run it at the
    same time.
    """
    # Without a name scope, the name is VARIABLE/ExponentialMovingAverage.
    with tf.device(variable.device), tf.name_scope(None):
        average = tf.Variable(
            lambda: tf.cond(
                tf.is_variable_initialized(variable),  # True for a restored variable.
                variable.read_value,
                lambda: variable.initial_value,
            ),
            trainable=False,
            name=variable.op.name + '/ExponentialMovingAverage',
        )
        tf.add_to_collection(tf.GraphKeys.MOVING_AVERAGE_VARIABLES, variable)
        with tf.name_scope('moving_averages/'), tf.control_dependencies(updates):
            difference = average - variable.read_value()
            sgd = tf.train.GradientDescentOptimizer(rate)
            return sgd.apply_gradients([(difference, average)], name=variable.op.name)
