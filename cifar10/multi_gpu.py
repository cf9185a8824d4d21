"""One tower a device: devices, tower losses and gradients, their average."""
import tensorflow.compat.v1 as tf

from cifar10 import model
from cifar10.hparams import CLASSIC

TOWER_NAME = 'tower'


def tower_devices(num_towers):
    """Chooses a device for each tower: GPUs, shared where there are fewer than towers, CPU devices where there is none.

    Returns:
      A list of `num_towers` device names.
    """
    gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    if not gpus:
        print('No GPU found: using %d CPU device%s (TF_CPP_MIN_LOG_LEVEL=0 shows what TensorFlow says of its GPUs)'
              % (num_towers, 's'[num_towers == 1:]), flush=True)
        return ['/cpu:%d' % i for i in range(num_towers)]
    if gpus < num_towers:
        print('%d GPU%s found: %d towers share %s' % (gpus, 's'[gpus == 1:], num_towers, 'it' if gpus == 1 else 'them'), flush=True)
    return ['/gpu:%d' % (i % gpus) for i in range(num_towers)]


def session_config(devices, threads=None, log_device_placement=False):
    """A ConfigProto with these devices and no more GPUs than they need, memory taken as it is needed.

    Args:
      devices: device names.
      threads: a Threads; None leaves them and the optimizers of graphs to TensorFlow.
      log_device_placement: whether to print the device of every operation.
    """
    def count(kind):
        return len({device for device in devices if kind in device})
    config = tf.ConfigProto(
        device_count={'CPU': max(1, count('cpu')), 'GPU': count('gpu')}, gpu_options=tf.GPUOptions(allow_growth=True),
        allow_soft_placement=True, log_device_placement=log_device_placement)
    if threads:
        config.intra_op_parallelism_threads = threads.intra_op
        config.inter_op_parallelism_threads = threads.inter_op
        # A second pass of the optimizers over these graphs finds nothing more, and training would start later for it.
        rewrite = config.graph_options.rewrite_options
        rewrite.meta_optimizer_iterations = rewrite.ONE
    return config


def tower_loss(scope, images, labels, num_slices=1, hparams=CLASSIC):
    """The total loss of one tower.

    Args:
      scope: the tower's name scope, like 'tower_0/'.
      images: float32 [batch, 24, 24, 3].
      labels: int32 [batch].
      num_slices, hparams: see model.inference and model.loss.

    Returns:
      A float32 scalar.
    """
    return model.loss(model.inference(images, num_slices, hparams), labels, scope, hparams)


def tower_gradients(devices, batches, optimizer, num_slices=1, hparams=CLASSIC):
    """Builds a tower on each device; they share one set of variables.

    Args:
      devices: a device name a tower.
      batches: (images, labels) a tower.
      optimizer: a tf.train.Optimizer.
      num_slices, hparams: see model.inference and model.loss.

    Returns:
      losses: a list with each tower's loss.
      tower_grads: a list with each tower's list of (gradient, variable).
    """
    losses, tower_grads = [], []
    for i, (device, batch) in enumerate(zip(devices, batches)):
        with tf.device(device), tf.name_scope('%s_%d' % (TOWER_NAME, i)) as scope, \
                tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
            losses.append(tower_loss(scope, *batch, num_slices, hparams))
            tower_grads.append(optimizer.compute_gradients(losses[-1], tf.trainable_variables()))
    return losses, tower_grads


def average_gradients(tower_grads):
    """Averages each variable's gradient over the towers: the point at which the towers wait for each other.

    Args:
      tower_grads: a list with each tower's list of (gradient, variable).

    Returns:
      A list of (mean gradient, variable), without the variables that have no gradient in any tower.

    Raises:
      ValueError: towers disagree on the variables, on which of them have gradients, or on a gradient's shape.
    """
    lengths = [len(grads) for grads in tower_grads]
    if len(set(lengths)) > 1:
        raise ValueError('The towers have gradients for different numbers of variables: %s' % lengths)
    with tf.name_scope('average_gradients'):
        averages = [_average(grads_and_vars) for grads_and_vars in zip(*tower_grads)]
    return [(gradient, variable) for gradient, variable in averages if gradient is not None]


def _average(grads_and_vars):
    """The mean of one variable's gradients, None if no tower has one, and the variable."""
    gradients = [gradient for gradient, _ in grads_and_vars]
    variable = grads_and_vars[0][1]
    if any(other is not variable for _, other in grads_and_vars):
        raise ValueError('Towers disagree on a variable: %s' % ', '.join(v.op.name for _, v in grads_and_vars))
    without = [i for i, gradient in enumerate(gradients) if gradient is None]
    if without and len(without) < len(gradients):
        raise ValueError('%s has a gradient in some towers, but none in towers %s' % (variable.op.name, without))
    if without or len(gradients) == 1:
        return gradients[0], variable
    if not all(gradient.shape.is_compatible_with(gradients[0].shape) for gradient in gradients):
        raise ValueError('The gradients of %s have different shapes: %s'
                         % (variable.op.name, ', '.join(str(gradient.shape) for gradient in gradients)))
    return tf.add_n(gradients) / len(gradients), variable
