"""One tower per GPU: devices, tower losses and gradients, and the average of the gradients."""
import tensorflow.compat.v1 as tf

from cifar10 import model
from cifar10.hparams import CLASSIC

TOWER_NAME = 'tower'


def tower_devices(num_towers):
    """Chooses a device for each tower: a GPU (shared if there are fewer GPUs than towers), or a CPU device if there is no GPU.

    Returns:
      A list of `num_towers` device names.
    """
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    if not num_gpus:
        devices = ['/cpu:%d' % i for i in range(num_towers)]
        print('No GPU found: using %s (TF_CPP_MIN_LOG_LEVEL=0 shows what TensorFlow says about GPUs)' % ', '.join(devices), flush=True)
        return devices
    if num_gpus < num_towers:
        print('Fewer GPUs (%d) than towers (%d): towers share a GPU' % (num_gpus, num_towers), flush=True)
    return ['/gpu:%d' % (i % num_gpus) for i in range(num_towers)]


def tower_loss(scope, images, labels, num_slices=1, hparams=CLASSIC):
    """The total loss of one tower.

    Args:
      scope: the tower's name scope, like 'tower_0/'.
      images: float32 [batch, 24, 24, 3].
      labels: int32 [batch].
      num_slices: see model.inference.
      hparams: an HParams.

    Returns:
      A float32 scalar.
    """
    logits = model.inference(images, num_slices, hparams.fc_weight_decay)
    return model.loss(logits, labels, scope, hparams.label_smoothing)


def tower_gradients(devices, batches, opt, num_slices=1, hparams=CLASSIC):
    """Builds one tower per device; all towers share one set of variables.

    Args:
      devices: one device name per tower.
      batches: one (images, labels) per tower.
      opt: a tf.train.Optimizer.
      num_slices: see model.inference.
      hparams: an HParams.

    Returns:
      losses: a list with each tower's loss.
      tower_grads: a list with each tower's list of (gradient, variable).
    """
    losses, tower_grads = [], []
    for i, (device, (images, labels)) in enumerate(zip(devices, batches)):
        with tf.device(device), tf.name_scope('%s_%d' % (TOWER_NAME, i)) as scope, \
                tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
            losses.append(tower_loss(scope, images, labels, num_slices, hparams))
            tower_grads.append(opt.compute_gradients(losses[-1], tf.trainable_variables()))
    return losses, tower_grads


def average_gradients(tower_grads):
    """Averages each variable's gradient over the towers: the synchronisation point, where the towers wait for each other.

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
    """The mean of one variable's gradients (None if no tower has one), and the variable."""
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
