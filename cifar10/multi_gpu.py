"""Towers on GPUs: their devices and those of their layers and variables, losses and gradients, the
average of the gradients."""

import contextlib
import itertools
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import model
from cifar10.hparams import CLASSIC, VARIABLE_STRATEGIES
from cifar10.parallelism import layers
from cifar10.parallelism.balance import Balance

TOWER_NAME = 'tower'


class Network(NamedTuple):
    """What each tower computes; see model.inference and model.loss."""

    num_classes: int = model.NUM_CLASSES
    num_slices: int = 1
    fc_weight_decay: float = CLASSIC.fc_weight_decay
    label_smoothing: float = CLASSIC.label_smoothing


def tower_devices(num_devices):
    """Chooses the devices of the towers: GPUs (shared if there are fewer than asked for), or CPU
    devices if there is no GPU.

    Returns:
      A list of `num_devices` device names.
    """
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    if not num_gpus:
        devices = ['/cpu:%d' % i for i in range(num_devices)]
        print(
            "No GPU found: using %s (if there is an NVIDIA GPU: pip install 'tensorflow[and-cuda]' on Linux; TF_CPP_MIN_LOG_LEVEL=0 "
            'shows what TensorFlow says about GPUs)' % ', '.join(devices),
            flush=True,
        )
        return devices
    if num_gpus < num_devices:
        print(
            'Fewer GPUs (%d) than asked for (%d): they are shared' % (num_gpus, num_devices),
            flush=True,
        )
    return ['/gpu:%d' % (i % num_gpus) for i in range(num_devices)]


def divide_layers(num_devices, num_classes=model.NUM_CLASSES):
    """Divides the layers of the network over the devices of a tower: consecutive layers for each.

    For two devices: the convolutional layers, which compute most, and the fully connected ones,
    which hold most of the weights. For any other number, the busiest device has as few operations
    as can be, then the second busiest, and so on.

    Returns:
      For each device a list of names, like ['conv1', 'conv2'].

    Raises:
      ValueError: there are fewer layers than devices.
    """
    products = layers.step_products(1, num_classes)
    if num_devices > len(products):
        raise ValueError('%d devices are more than the %d layers' % (num_devices, len(products)))

    def parts(cuts):
        return [products[first:last] for first, last in zip((0,) + cuts, cuts + (len(products),))]

    if num_devices == 2:
        cuts = (sum(product.is_convolution for product in products),)
    else:
        cuts = min(
            itertools.combinations(range(1, len(products)), num_devices - 1),
            key=lambda cuts: sorted(map(layers.total, parts(cuts)), reverse=True),
        )
    return [[product.layer for product in part] for part in parts(cuts)]


class _LayerDevices:
    """A device function for a tower: the operations of a layer go to its device, and what comes
    between two layers with the first."""

    def __init__(self, devices, num_classes):
        """Takes the names of the devices over which the layers are divided, and the number of
        classes."""
        parts = divide_layers(len(devices), num_classes)
        self._devices = {layer: device for device, part in zip(devices, parts) for layer in part}
        self._device = devices[0]

    def __call__(self, op):
        for scope in op.name.split('/'):
            self._device = self._devices.get(scope, self._device)
        return op.device or self._device  # what has a device, like a variable, keeps it


def variable_devices(strategy, devices):
    """The devices over which `variables_on` spreads the variables.

    Args:
      strategy: one of VARIABLE_STRATEGIES.
      devices: the device names of all towers.

    Raises:
      ValueError: the strategy is unknown.
    """
    if strategy not in VARIABLE_STRATEGIES:
        raise ValueError('Unknown variable_strategy: %s' % strategy)
    return {'cpu': ['/cpu:0'], 'first_device': devices[:1], 'spread': devices}[strategy]


@contextlib.contextmanager
def variables_on(devices):
    """In the block, tf.get_variable makes each variable on the device that holds the fewest bytes
    so far.

    An optimizer's slots, the moving averages and the average of the gradients go with their
    variable.
    """
    balance = Balance(devices)

    def get(getter, name, shape, dtype, **kwargs):
        with tf.device(balance.place(name, shape, dtype)):
            return getter(name, shape=shape, dtype=dtype, **kwargs)

    with tf.variable_scope(tf.get_variable_scope(), custom_getter=get):
        yield


def _read_once(getter, name, **kwargs):
    """A custom getter that reads the variable: otherwise each use in a tower would be a transfer of
    its own."""
    variable = getter(name, **kwargs)
    with tf.name_scope(variable.op.name + '/'):  # TensorBoard shows it there
        return variable.value()


def tower_loss(scope, images, labels, network=Network()):
    """The total loss of one tower.

    Args:
      scope: the tower's name scope, like 'tower_0/'.
      images: float32 [batch, 24, 24, 3].
      labels: int32 [batch].
      network: a Network.

    Returns:
      A float32 scalar.
    """
    logits = model.inference(
        images, network.num_classes, network.num_slices, network.fc_weight_decay
    )
    return model.loss(logits, labels, scope, network.label_smoothing)


def tower_gradients(devices, batches, opt, network=Network()):
    """Builds one tower per batch; all towers share one set of variables.

    Args:
      devices: device names. Each tower gets as many consecutive ones as the others, and its layers
        are divided over them.
      batches: one (images, labels) per tower.
      opt: a tf.train.Optimizer.
      network: a Network.

    Returns:
      losses: a list with each tower's loss.
      tower_grads: a list with each tower's list of (gradient, variable).
    """
    losses, tower_grads = [], []
    per_tower = len(devices) // len(batches)
    for i, (images, labels) in enumerate(batches):
        own = devices[i * per_tower : (i + 1) * per_tower]
        device = own[0] if per_tower == 1 else _LayerDevices(own, network.num_classes)
        with tf.device(device), tf.name_scope(
            '%s_%d' % (TOWER_NAME, i)
        ) as scope, tf.variable_scope(
            tf.get_variable_scope(), reuse=i > 0, custom_getter=_read_once
        ):
            losses.append(tower_loss(scope, images, labels, network))
            tower_grads.append(
                opt.compute_gradients(
                    losses[-1], tf.trainable_variables(), colocate_gradients_with_ops=per_tower > 1
                )
            )
    return losses, tower_grads


def average_gradients(tower_grads):
    """Averages each variable's gradient over the towers: the synchronisation point, where the
    towers wait for each other.

    Args:
      tower_grads: a list with each tower's list of (gradient, variable).

    Returns:
      A list of (mean gradient, variable), without the variables that have no gradient in any tower.

    Raises:
      ValueError: towers disagree on the variables, on which of them have gradients, or on a
        gradient's shape.
    """
    lengths = [len(grads) for grads in tower_grads]
    if len(set(lengths)) > 1:
        raise ValueError(
            'The towers have gradients for different numbers of variables: %s' % lengths
        )
    with tf.name_scope('average_gradients'):
        averages = [_average(grads_and_vars) for grads_and_vars in zip(*tower_grads)]
    return [(gradient, variable) for gradient, variable in averages if gradient is not None]


def _average(grads_and_vars):
    """The mean of one variable's gradients (None if no tower has one), and the variable."""
    gradients = [gradient for gradient, _ in grads_and_vars]
    variable = grads_and_vars[0][1]
    if any(other is not variable for _, other in grads_and_vars):
        raise ValueError(
            'Towers disagree on a variable: %s' % ', '.join(v.op.name for _, v in grads_and_vars)
        )
    without = [i for i, gradient in enumerate(gradients) if gradient is None]
    if without and len(without) < len(gradients):
        raise ValueError(
            '%s has a gradient in some towers, but none in towers %s' % (variable.op.name, without)
        )
    if without or len(gradients) == 1:
        return gradients[0], variable
    if not all(gradient.shape.is_compatible_with(gradients[0].shape) for gradient in gradients):
        raise ValueError(
            'The gradients of %s have different shapes: %s'
            % (variable.op.name, ', '.join(str(gradient.shape) for gradient in gradients))
        )
    with tf.device(variable.device):
        return tf.add_n(gradients) / len(gradients), variable
