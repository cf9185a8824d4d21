"""Comparisons of the operations of the program with NumPy in float64.

An operation can be wrong for one type and one number of images on one kind of processor only.
"""

import itertools
import math
from typing import List, NamedTuple, Sequence, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, errors, model
from cifar10.benchmark import numpy_network
from cifar10.config import NUM_CLASSES
from cifar10.errors import UserError
from cifar10.model import CONV1_FILTERS, CONV2_FILTERS
from cifar10.system import machine
from cifar10.system.machine import Threads

_TYPES = 'float32', 'bfloat16'
# Limits of the relative error on a CPU. Rounding a result to bfloat16, with 8 bits of precision, is
# an error of 0.002. Without oneDNN, partial sums are rounded, too, which gives 0.04.
_LIMITS = {'float32': 1e-4, 'bfloat16': 0.1}
# GPUs since 2020 round the factors of float32 products to TF32, with 11 bits of precision.
_GPU_LIMIT = 0.01

_FUNCTIONS = {  # of tensors, by the name of their NumPy formulation
    'conv2d': lambda x, weights: model.conv2d(x, weights),
    'max_pool': lambda x: model.max_pool(x, 'pool'),
    'local_response_normalization': lambda x: model.local_response_normalization(
        x, 'norm', tf.nn.lrn if cpu_kernels.is_on_gpu(x) else cpu_kernels.lrn
    ),
    'matmul': tf.matmul,
}


class Operation(NamedTuple):
    """Operation of the program, for sub-batches or, if fully connected, for whole batches."""

    name: str
    function: str  # key of _FUNCTIONS
    shapes: Sequence[Tuple[int, ...]]  # of the arguments; the first one without the images
    gradients: Sequence[str]  # names; '' for a gradient that the program does not compute
    types: Sequence[str] = _TYPES


OPERATIONS = (
    [
        Operation('conv1', 'conv2d', [(24, 24, 3), (5, 5, 3, CONV1_FILTERS)], ['', 'weights']),
        Operation('pool1', 'max_pool', [(24, 24, CONV1_FILTERS)], ['input']),
        Operation(
            'conv2',
            'conv2d',
            [(12, 12, CONV1_FILTERS), (5, 5, CONV1_FILTERS, CONV2_FILTERS)],
            ['input', 'weights'],
        ),
        Operation('pool2', 'max_pool', [(12, 12, CONV2_FILTERS)], ['input'], ['float32']),
    ]
    + [
        Operation(
            name, 'local_response_normalization', [(12, 12, num_filters)], ['input'], ['float32']
        )
        for name, num_filters in [('norm1', CONV1_FILTERS), ('norm2', CONV2_FILTERS)]
    ]
    + [
        Operation(name, 'matmul', [(rows,), (rows, columns)], ['input', 'weights'], types)
        for name, rows, columns, types in [
            ('local3', 6 * 6 * CONV2_FILTERS, 384, _TYPES),
            ('local4', 384, 192, _TYPES),
            ('softmax_linear', 192, NUM_CLASSES, ['float32']),
        ]
    ]
)


class Plan(NamedTuple):
    """Settings of some trainers of this machine."""

    device_groups: List[List[str]]  # The devices of a group compute at the same time.
    threads: Threads
    batch_size: int
    num_sub_batches: Sequence[int]  # per tower, of each trainer

    @property
    def session_config(self):
        """The tf.ConfigProto with the devices of all groups.

        A session that has only /gpu:1 would compute on /gpu:0.
        """
        return machine.session_config(sum(self.device_groups, []), self.threads)


class Comparison(NamedTuple):
    """Comparison of TensorFlow with NumPy."""

    name: str
    type: str
    devices: str
    num_images: int
    error: float  # the norm of the difference, relative to the norm of the right result
    limit: float

    @property
    def is_right(self):
        """True if the error is below the limit, False if it is not a number."""
        return self.error <= self.limit


def compare_operation(operation, num_images, plan):
    """Yield the Comparisons of an Operation and its gradients on `num_images` images."""
    rng = np.random.RandomState(num_images)
    (first, *others), name = operation.shapes, operation.function
    draw = {
        'max_pool': _random_without_ties,
        # Small values would be normalized by almost 1.
        'local_response_normalization': lambda *args: 32 * random(*args),
    }.get(name, random)
    arguments = [draw(rng, (num_images, *first)), *(random(rng, shape) for shape in others)]
    exact = [argument.astype(np.float64) for argument in arguments]
    expected = {'result': getattr(numpy_network, name)(*exact)}
    dy = random(rng, expected['result'].shape)
    gradients = getattr(numpy_network, name + '_gradients')(dy.astype(np.float64), *exact)
    for argument, gradient in zip(operation.gradients, gradients):
        if argument:
            expected['gradient of ' + argument] = gradient
    for devices, type_name in itertools.product(plan.device_groups, operation.types):
        if not can_compute(type_name, devices[0]):
            continue
        try:
            results = _compute(operation, type_name, devices, plan, [*arguments, dy])
        except tf.errors.OpError as error:
            yield failure(operation.name, type_name, ', '.join(devices), num_images, error)
            continue
        limit = _LIMITS[type_name]
        if machine.is_gpu(devices[0]):
            limit = max(limit, _GPU_LIMIT)
        for (result, right), found in zip(expected.items(), zip(*results)):
            error = worst(relative_error(value, right) for value in found)
            name = f'{operation.name}, {result}'
            yield Comparison(name, type_name, ', '.join(devices), num_images, error, limit)


def _compute(operation, type_name, devices, plan, values):
    """Return a list of the result and the gradients for each device.

    Args:
      operation: an Operation.
      type_name: the type of the computation.
      devices: a group of the Plan.
      plan: a Plan.
      values: the arguments, and the gradient of the result.
    """
    with tf.Graph().as_default():
        placeholders = [tf.placeholder(tf.float32, value.shape) for value in values]
        fetches = []
        for device in devices:
            with tf.device(device):
                *arguments, dy = [tf.cast(tf.identity(x), type_name) for x in placeholders]
                result = _FUNCTIONS[operation.function](*arguments)
                wanted = [x for x, name in zip(arguments, operation.gradients) if name]
                gradients = tf.gradients(result, wanted, dy)
                fetches.append([tf.cast(x, tf.float32) for x in [result, *gradients]])
        with tf.Session(config=plan.session_config) as session:
            return session.run(fetches, dict(zip(placeholders, values)))


def can_compute(type_name, device):
    """Return False for bfloat16 if a device cannot convolve in it; see machine.compute_dtype."""
    try:
        machine.compute_dtype(type_name, machine.is_gpu(device))
    except UserError:
        return False
    return True


def failure(name, type_name, devices, num_images, error):
    """Return a Comparison for operations that have raised an error."""
    name = f'{name} fails ({errors.reason(error)})'
    return Comparison(name, type_name, devices, num_images, math.nan, 0.0)


def random(rng, shape):
    """Return normal random numbers that bfloat16 represents exactly."""
    bits = rng.normal(size=shape).astype(np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def _random_without_ties(rng, shape):
    """Return integers up to 143 that differ within each window of a pooling."""
    num_images, height, width, channels = shape
    tile = rng.random_sample([num_images, 144, channels]).argsort(1)
    tile = tile.reshape([num_images, 12, 12, channels])
    return np.tile(tile, [1, height // 12, width // 12, 1]).astype(np.float32)


def relative_error(found, expected):
    """Return the norm of the difference, relative to the norm of `expected`."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def worst(values):
    """Return the greatest of some errors; NaN is greater than all others."""
    return max(values, key=lambda value: (math.isnan(value), value))
