"""Towers on GPUs: devices, losses, gradients, and the average of the gradients."""

import itertools

import tensorflow.compat.v1 as tf

from cifar10.network import Network

TOWER_NAME = 'tower'


def tower_devices(num_devices):
    """Return `num_devices` device names: of GPUs, repeated if too few, or of CPU devices."""
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    return [f'/gpu:{i % num_gpus}' if num_gpus else f'/cpu:{i}' for i in range(num_devices)]


def variables_on(device):
    """Return a context manager that places the variables of tf.get_variable on the device."""

    def get(getter, *args, **kwargs):
        with tf.device(device):
            return getter(*args, **kwargs)

    return tf.variable_scope(tf.get_variable_scope(), custom_getter=get)


def _read_once():
    """Return a custom getter that reads each variable once, so that a tower receives it once.

    A gradient goes back through the read to the variable.
    """
    values = {}

    def get(getter, name, **kwargs):
        if name not in values:
            variable = getter(name, **kwargs)
            # A statistic or a counter is assigned, and read by the network itself.
            if not (variable.trainable and variable.dtype.is_floating):
                return variable
            # The scope groups the read with its variable in TensorBoard.
            with tf.name_scope(variable.op.name + '/'):
                values[name] = variable.value()
        return values[name]

    return get


def tower_loss(scope, images, labels, network=Network()):
    """Return the total loss of one tower.

    Args:
      scope: the tower's name scope, like 'tower_0/'.
      images: float32 [batch, 24, 24, 3].
      labels: int32 [batch].
      network: a Network.

    Returns:
      A float32 scalar.
    """
    logits = network.inference(images, is_training=True)
    return network.loss(logits, labels, scope)


def tower_gradients(devices, batches, opt, network=Network()):
    """Build one tower per batch; all towers share one set of variables.

    Statistics, such as those of batch normalization, are updated by the first tower only.

    Args:
      devices: one device name per tower.
      batches: one (images, labels) per tower.
      opt: a tf.train.Optimizer.
      network: a Network.

    Returns:
      losses: a list with each tower's loss.
      tower_grads: a list with each tower's list of (gradient, variable).
    """
    losses, tower_grads = [], []
    update_ops = tf.get_collection_ref(tf.GraphKeys.UPDATE_OPS)
    for i, (device, (images, labels)) in enumerate(zip(devices, batches)):
        # A single tower has no scope: its layers have the book's names.
        name = f'{TOWER_NAME}_{i}' if len(devices) > 1 else None
        with tf.device(device), tf.name_scope(name) as scope, tf.variable_scope(
            tf.get_variable_scope(), reuse=i > 0, custom_getter=_read_once()
        ):
            before = len(update_ops)
            losses.append(tower_loss(scope, images, labels, network))
            del update_ops[before if i else len(update_ops) :]
            tower_grads.append(opt.compute_gradients(losses[-1], tf.trainable_variables()))
    return losses, tower_grads


def average_gradients(tower_grads):
    """Average each variable's gradient over the towers; this synchronizes the towers.

    Args:
      tower_grads: a list with each tower's list of (gradient, variable).

    Returns:
      A list of (mean gradient, variable), without variables that have no gradients.

    Raises:
      ValueError: the towers differ, for example because a network creates variables by tf.Variable.
    """
    averages = []
    with tf.name_scope('average_gradients'):
        for grads_and_vars in itertools.zip_longest(*tower_grads, fillvalue=(None, None)):
            gradients, variables = zip(*grads_and_vars)
            variable, without = variables[0], [gradient is None for gradient in gradients]
            if any(other is not variable for other in variables) or len(set(without)) > 1:
                names = ', '.join(v.op.name if v is not None else 'none' for v in variables)
                raise ValueError(
                    f'The towers differ in these variables or in their gradients: {names}. '
                    'A network must create its variables by tf.get_variable'
                )
            if without[0]:
                continue
            with tf.device(variable.device):
                mean = tf.add_n(gradients) / len(gradients) if len(gradients) > 1 else gradients[0]
                averages.append((mean, variable))
    return averages
