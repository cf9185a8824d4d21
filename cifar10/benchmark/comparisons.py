"""Comparisons of the operations of the program with NumPy in float64.

An operation can be wrong for one type and one number of images on one kind of processor only.
"""

import dataclasses
import itertools
import math
from typing import NamedTuple, Sequence, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import model, multi_gpu, optimizer, placement
from cifar10.benchmark import reference
from cifar10.config import (
    CLASSIC,
    FAST,
    NUM_CLASSES,
    NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN,
    RunLength,
)
from cifar10.errors import UserError
from cifar10.system import machine
from cifar10.system.machine import Threads

_TYPES = 'float32', 'bfloat16'
# Limits of the relative error. Rounding a result to bfloat16, with 8 bits of precision, is an error
# of 0.002. Without oneDNN, partial sums are rounded, too, which gives 0.04.
_LIMITS = {'float32': 1e-4, 'bfloat16': 0.1}
# In a whole step, rounding decides between nearly equal activations in a pooling. In bfloat16, this
# gives 0.15. 0.2 is a cosine of 0.98 between two gradients.
_STEP_LIMITS = {'float32': 0.02, 'bfloat16': 0.2}
_LEARNING_RATE = 0.1

_FUNCTIONS = {  # of tensors, by the name of their NumPy formulation
    'conv2d': lambda x, weights: model.conv2d(x, weights),
    'max_pool': lambda x: model.max_pool(x, 'pool'),
    'local_response_normalization': lambda x: model.local_response_normalization(x, 'norm'),
    'matmul': tf.matmul,
}


class Operation(NamedTuple):
    """Operation of the program, for sub-batches or, if fully connected, for whole batches."""

    name: str
    function: str  # key of _FUNCTIONS
    shapes: Sequence[Tuple[int, ...]]  # of the arguments; the first one without the images
    gradients: Sequence[str]  # names; '' for a gradient that the program does not compute
    types: Sequence[str] = _TYPES


OPERATIONS = [
    Operation('conv1', 'conv2d', [(24, 24, 3), (5, 5, 3, 64)], ['', 'weights']),
    Operation('pool1', 'max_pool', [(24, 24, 64)], ['input']),
    Operation(
        'norm1 and norm2', 'local_response_normalization', [(12, 12, 64)], ['input'], ['float32']
    ),
    Operation('conv2', 'conv2d', [(12, 12, 64), (5, 5, 64, 64)], ['input', 'weights']),
    Operation('pool2', 'max_pool', [(12, 12, 64)], ['input'], ['float32']),
] + [
    Operation(name, 'matmul', [(rows,), (rows, columns)], ['input', 'weights'], ['float32'])
    for name, rows, columns in [
        ('local3', 2304, 384),
        ('local4', 384, 192),
        ('softmax_linear', 192, NUM_CLASSES),
    ]
]


class Plan(NamedTuple):
    """Settings of some trainers of this machine."""

    device_groups: Sequence[Sequence[str]]  # The devices of a group compute at the same time.
    threads: Threads
    batch_size: int
    num_sub_batches: Sequence[int]  # per tower, of each trainer


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


def compare(plan):
    """Return the Comparisons of a Plan."""
    machine.set_up_tensorflow()
    sizes = {
        (plan.batch_size + i) // number for number in plan.num_sub_batches for i in (0, number - 1)
    }
    comparisons = []
    for operation in OPERATIONS:
        for num_images in {plan.batch_size} if operation.function == 'matmul' else sorted(sizes):
            comparisons += compare_operation(operation, num_images, plan)
    return comparisons + list(compare_steps(plan))


def compare_operation(operation, num_images, plan):
    """Yield the Comparisons of an Operation and its gradients on `num_images` images."""
    rng = np.random.RandomState(num_images)
    (first, *others), name = operation.shapes, operation.function
    draw = _random_without_ties if name == 'max_pool' else _random
    arguments = [draw(rng, (num_images, *first)), *(_random(rng, shape) for shape in others)]
    exact = [argument.astype(np.float64) for argument in arguments]
    expected = {'result': getattr(reference, name)(*exact)}
    dy = _random(rng, expected['result'].shape)
    gradients = getattr(reference, name + '_gradients')(dy.astype(np.float64), *exact)
    for argument, gradient in zip(operation.gradients, gradients):
        if argument:
            expected['gradient of ' + argument] = gradient
    for devices, type_name in itertools.product(plan.device_groups, operation.types):
        if not _can_compute(type_name, devices[0]):
            continue
        results = _compute(operation, type_name, devices, plan.threads, [*arguments, dy])
        for (result, right), found in zip(expected.items(), zip(*results)):
            yield Comparison(
                f'{operation.name}, {result}',
                type_name,
                ', '.join(devices),
                num_images,
                _worst(_error(value, right) for value in found),
                _LIMITS[type_name],
            )


def _compute(operation, type_name, devices, threads, values):
    """Return a list of the result and the gradients for each device.

    Args:
      operation: an Operation.
      type_name: the type of the computation.
      devices: names of devices, which compute at the same time.
      threads: a Threads.
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
        with tf.Session(config=machine.session_config(devices, threads)) as session:
            return session.run(fetches, dict(zip(placeholders, values)))


def compare_steps(plan):
    """Yield the Comparisons of a step of `classic` in float32, and of `fast` in bfloat16."""
    rng = np.random.RandomState(0)
    images = _random(rng, (plan.batch_size, 24, 24, 3))
    labels = rng.randint(0, NUM_CLASSES, plan.batch_size)
    variables = initial_values(rng)
    exact = {name: value.astype(np.float64) for name, value in variables.items()}
    right = reference.loss_gradients(images.astype(np.float64), labels, exact)
    for devices, (hparams, type_name) in itertools.product(
        plan.device_groups, [(CLASSIC, 'float32'), (FAST, 'bfloat16')]
    ):
        if not _can_compute(type_name, devices[0]):
            type_name = 'float32'
        hparams = dataclasses.replace(
            hparams, compute_dtype=type_name, fc_weight_decay=0.0, label_smoothing=0.0
        )
        gradients, after = _train(hparams, devices, plan, (images, labels), variables)
        errors_by_result = {
            'gradients': {name: _error(gradients[name], right[name]) for name in variables},
            'update': {},
            'moving averages': {},
        }
        for name, value in exact.items():
            gradient = gradients[name].astype(np.float64)
            change = (
                reference.updated_weights(name, value, gradient, hparams, _LEARNING_RATE) - value
            )
            average = after[name + '/ExponentialMovingAverage']
            errors_by_result['update'][name] = _error(after[name] - value, change)
            # The decay of the first update is (1 + 1) / (10 + 1).
            errors_by_result['moving averages'][name] = _error(average - value, 9 / 11 * change)
        for result, by_name in errors_by_result.items():
            yield Comparison(
                f'step of {hparams.recipe} ({hparams.optimizer}), {result}',
                type_name,
                ', '.join(devices),
                plan.batch_size,
                _worst(by_name.values()),
                _STEP_LIMITS[type_name if result == 'gradients' else 'float32'],
            )


def _train(hparams, devices, plan, batch, variables):
    """Make one step with a tower on each device, all with the same batch.

    Returns:
      The average gradients and, after the update, all variables; dicts from names to arrays.
    """
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        model.set_num_sub_batches(plan.num_sub_batches[0])
        placeholders = [tf.placeholder(tf.as_dtype(x.dtype), x.shape) for x in batch]
        global_step = tf.train.get_or_create_global_step()
        opt = optimizer.create(tf.constant(_LEARNING_RATE), hparams)
        with placement.variables_on(devices[:1]):
            _, tower_grads = multi_gpu.tower_gradients(
                devices, [placeholders] * len(devices), opt, hparams=hparams
            )
        gradients = multi_gpu.average_gradients(tower_grads)
        run_length = RunLength(plan.batch_size, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN)
        train_op = optimizer.train_op(opt, gradients, global_step, run_length, hparams)
        fetches = {variable.op.name: gradient for gradient, variable in gradients}
        with tf.Session(config=machine.session_config(devices, plan.threads)) as session:
            session.run(tf.global_variables_initializer())
            for variable in tf.global_variables():
                name = variable.op.name.replace('/ExponentialMovingAverage', '')
                if name in variables:
                    variable.load(variables[name], session)
            found, _ = session.run([fetches, train_op], dict(zip(placeholders, batch)))
            return found, session.run({v.op.name: v for v in tf.global_variables()})


def initial_values(rng):
    """Return random values, similar to the initial ones, of the variables by their names."""
    values = {}
    for operation in OPERATIONS:
        for shape in operation.shapes[1:]:
            stddev = 1 / 192 if operation.name == 'softmax_linear' else 0.05
            values[operation.name + '/weights'] = rng.normal(0, stddev, shape).astype(np.float32)
            values[operation.name + '/biases'] = np.full(shape[-1], 0.1, np.float32)
    return values


def _can_compute(type_name, device):
    """Return False for bfloat16 if a device has no kernels for it, as with TensorFlow 1.15."""
    try:
        machine.compute_dtype(type_name, machine.is_gpu(device))
    except UserError:
        return False
    return True


def _random(rng, shape):
    """Return normal random numbers that bfloat16 represents exactly."""
    bits = rng.normal(size=shape).astype(np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def _random_without_ties(rng, shape):
    """Return integers up to 143 that differ within each window of a pooling."""
    num_images, height, width, channels = shape
    tile = rng.random_sample([num_images, 144, channels]).argsort(1)
    tile = tile.reshape([num_images, 12, 12, channels])
    return np.tile(tile, [1, height // 12, width // 12, 1]).astype(np.float32)


def _error(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def _worst(values):
    """Return the greatest of some errors; NaN is greater than all others."""
    return max(values, key=lambda value: (math.isnan(value), value))
