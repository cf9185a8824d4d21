"""Placement of layers and variables on devices, and bytes sent between devices."""

import collections
import contextlib
from typing import NamedTuple

import tensorflow.compat.v1 as tf

GPU_REMEDY = (
    "if there is an NVIDIA GPU: pip install 'tensorflow[and-cuda]' on Linux; TF_CPP_MIN_LOG_LEVEL=0 shows TensorFlow's "
    'messages about GPUs'
)
LAYERS = ['conv1', 'conv2', 'local3', 'local4', 'softmax_linear']


def tower_devices(num_devices):
    """Return `num_devices` device names: of GPUs, repeated if too few, or of CPU devices."""
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    if not num_gpus:
        devices = [f'/cpu:{i}' for i in range(num_devices)]
        print(f'No GPU found: using {", ".join(devices)} ({GPU_REMEDY})')
        return devices
    if num_gpus < num_devices:
        print(f'Fewer GPUs ({num_gpus}) than requested ({num_devices}): GPUs are shared')
    return [f'/gpu:{i % num_gpus}' for i in range(num_devices)]


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


def first_input_device(op):
    """Return the device of an operation or, if unset, of its first input, like a variable."""
    while op.inputs and not op.device:  # The read of a variable has no device either.
        op = op.inputs[0].op
    return op.device


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


class PlacementStats(NamedTuple):
    """Bytes on and between the devices of a process; device names are like '/gpu:0'."""

    variable_bytes: dict  # from device to bytes of weights and biases
    transfer_bytes: dict  # from (sender, receiver) to bytes per step

    def format_lines(self, name, variable_strategy, unit):
        """Return two lines of the plan.

        Args:
          name: name of the variables in the plan.
          variable_strategy: one of config.VARIABLE_STRATEGIES.
          unit: text after 'bytes', like 'per step'.
        """
        devices_text = ', '.join(
            f'{size / 1e6:.2f} MB on {device}' for device, size in self.variable_bytes.items()
        )
        busiest = ''
        if self.transfer_bytes:
            most = max(sorted(self.transfer_bytes), key=self.transfer_bytes.get)
            source, target = most
            busiest = f'; most from {source} to {target} ({self.transfer_bytes[most]})'
        return [
            f'{name}: {devices_text} (--variable_strategy={variable_strategy})',
            f'Between devices: {sum(self.transfer_bytes.values())} bytes {unit}, including images and labels{busiest}',
        ]


def placement_stats(operations, variables, task=''):
    """Return the PlacementStats of a process from a finished graph.

    A tensor is sent once to each device that needs it. Tensors of one element, like losses and the
    learning rate, are not counted.

    Args:
      operations: operations of a step, without summaries and checkpoints.
      variables: the weights and biases of this process.
      task: the device name of the process; other processes are not counted.
    """
    process = tf.DeviceSpec.from_string(task)
    variable_bytes, sizes, transfer_bytes = collections.Counter(), {}, collections.Counter()
    for variable in variables:
        variable_bytes[_device_name(_device_spec(variable.op))] += _tensor_bytes(variable)
    graph = operations[0].graph
    needed = tf.graph_util.extract_sub_graph(graph.as_graph_def(), [op.name for op in operations])
    for op in [graph.get_operation_by_name(node.name) for node in needed.node]:
        for tensor in op.inputs:
            ends = _device_spec(tensor.op), _device_spec(op)
            sender, receiver = map(_device_name, ends)
            is_own = all((end.job, end.task) == (process.job, process.task) for end in ends)
            if is_own and sender != receiver and (tensor.shape.num_elements() or 0) > 1:
                sizes[sender, receiver, tensor.name] = _tensor_bytes(tensor)
    for (sender, receiver, _), size in sizes.items():
        transfer_bytes[sender, receiver] += size
    return PlacementStats(dict(variable_bytes), dict(transfer_bytes))


def _tensor_bytes(tensor):
    return tensor.shape.num_elements() * tensor.dtype.size


def _device_spec(op):
    """Return the DeviceSpec of an operation, or of the variable that the operation uses."""
    for tensor in op.inputs:
        if tensor.dtype == tf.resource:
            return _device_spec(tensor.op)
    return tf.DeviceSpec.from_string(op.device)


def _device_name(spec):
    return f'/{(spec.device_type or "cpu").lower()}:{spec.device_index or 0}'
