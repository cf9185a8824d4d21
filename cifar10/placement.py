"""Placement of layers and variables on devices."""

import contextlib

import tensorflow.compat.v1 as tf

GPU_REMEDY = (
    "if there is an NVIDIA GPU: pip install 'tensorflow[and-cuda]' on Linux; TF_CPP_MIN_LOG_LEVEL=0 shows TensorFlow's "
    'messages about GPUs'
)
LAYERS = ['conv1', 'conv2', 'local3', 'local4', 'softmax_linear']


def tower_devices(num_devices):
    """Return `num_devices` device names: of GPUs, repeated if too few, or of CPU devices."""
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    return [f'/gpu:{i % num_gpus}' if num_gpus else f'/cpu:{i}' for i in range(num_devices)]


def divide_layers(num_devices):
    """Divide the layers of the network over the devices of a tower.

    Of two devices, the first gets the convolutional layers (most operations), the second the fully
    connected layers (most weights). Otherwise each gets one layer, and the last one also the rest.

    Args:
      num_devices: at most the number of layers.

    Returns:
      For each device a list of names, like ['conv1', 'conv2'].
    """
    if num_devices == 2:
        return [LAYERS[:2], LAYERS[2:]]
    return [[layer] for layer in LAYERS[: num_devices - 1]] + [LAYERS[num_devices - 1 :]]


class LayerDeviceSetter:
    """Device function of a tower; it places operations between two layers with the first one."""

    def __init__(self, devices):
        """Divide the layers over the named devices."""
        parts = divide_layers(len(devices))
        self._devices = {layer: device for device, part in zip(devices, parts) for layer in part}
        self._device = devices[0]

    def __call__(self, op):
        """Return the device of an operation."""
        for scope in op.name.split('/'):
            self._device = self._devices.get(scope, self._device)
        return op.device or self._device  # variables keep their devices


def variable_devices(variable_strategy, devices):
    """Return the devices over which `variables_on` spreads the variables.

    Args:
      variable_strategy: one of config.VARIABLE_STRATEGIES.
      devices: the device names of all towers.
    """
    return {'cpu': ['/cpu:0'], 'first_device': devices[:1], 'spread': devices}[variable_strategy]


class GreedyLoadBalancer:
    """Assignment of each new variable to the device with the fewest bytes."""

    def __init__(self, devices):
        """Create the balancer of devices or tasks."""
        self._num_bytes = dict.fromkeys(devices, 0)
        self._devices = {}  # by the names of variables

    def assign_device(self, name, shape, dtype):
        """Return the device of a variable; a name always gets the same device.

        Args:
          name: of the variable.
          shape: anything tf.TensorShape accepts.
          dtype: anything tf.as_dtype accepts.
        """
        if name not in self._devices:
            self._devices[name] = min(self._num_bytes, key=self._num_bytes.get)
            size = tf.TensorShape(shape).num_elements() * tf.as_dtype(dtype).size
            self._num_bytes[self._devices[name]] += size
        return self._devices[name]


@contextlib.contextmanager
def variables_on(devices):
    """Spread the variables of tf.get_variable in this block over the devices, balanced by bytes."""
    balancer = GreedyLoadBalancer(devices)

    def get(getter, name, shape, dtype, **kwargs):
        with tf.device(balancer.assign_device(name, shape, dtype)):
            return getter(name, shape=shape, dtype=dtype, **kwargs)

    with tf.variable_scope(tf.get_variable_scope(), custom_getter=get):
        yield
