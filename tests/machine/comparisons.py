"""Comparisons of the operations and steps of the trainers with NumPy in float64.

An operation can be wrong for one type and one number of images on one kind of processor only. So
the comparisons have the types, sizes and threads that the trainers choose on this machine.
"""

import collections
import dataclasses
import itertools
import math
from typing import List, NamedTuple, Sequence, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors, model, multi_gpu, optimizer
from cifar10.config import CLASSIC, FAST, NUM_CLASSES, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN, RunLength
from cifar10.network import Network
from cifar10.system import machine
from cifar10.system.machine import Threads
from tests.machine import numpy_network

_MAX_TOWERS = 8
_TYPES = 'float32', 'bfloat16'
# Bounds of the relative error on a CPU. Rounding a result to bfloat16, with 8 bits of precision, is
# an error of 0.002. Without oneDNN, partial sums are rounded, too, which gives 0.04.
_BOUNDS = {'float32': 1e-4, 'bfloat16': 0.1}
# GPUs since 2020 round the factors of float32 products to TF32, with 11 bits of precision.
_GPU_BOUND = 0.01
# In the gradients of a whole step, rounding decides between nearly equal activations in a pooling.
# In bfloat16, this gives 0.15. 0.2 is a cosine of 0.98 between two gradients.
_GRADIENT_BOUNDS = {'float32': 0.02, 'bfloat16': 0.2}
_GPU_GRADIENT_BOUND = 0.2  # With TF32 it gives up to 0.05.
_UPDATE_BOUND = 0.02
_LEARNING_RATE = 0.1

_FUNCTIONS = {  # of tensors, by the name of their NumPy formulation
    'conv2d': lambda x, weights: model.conv2d(x, weights),
    'max_pool': lambda x: model.max_pool(x, 'pool'),
    'local_response_normalization': lambda x: model.local_response_normalization(x, 'norm'),
    'matmul': tf.matmul,
}


class Operation(NamedTuple):
    """Operation of the network, for sub-batches or, if fully connected, for whole batches."""

    name: str
    function: str  # key of _FUNCTIONS
    shapes: Sequence[Tuple[int, ...]]  # of the arguments; the first one without the images
    gradients: Sequence[str]  # names; '' for a gradient that the program does not compute
    types: Sequence[str] = _TYPES


_BOTH = ['input', 'weights']
_LAYERS = [  # name, shapes and gradients of the products of the book's network
    ('conv1', [(24, 24, 3), (5, 5, 3, 64)], ['', 'weights']),
    ('conv2', [(12, 12, 64), (5, 5, 64, 64)], _BOTH),
    ('local3', [(6 * 6 * 64,), (6 * 6 * 64, 384)], _BOTH),
    ('local4', [(384,), (384, 192)], _BOTH),
    ('softmax_linear', [(192,), (192, NUM_CLASSES)], _BOTH),
]
OPERATIONS = [
    Operation(
        name,
        'conv2d' if len(shapes[0]) > 1 else 'matmul',
        shapes,
        gradients,
        ['float32'] if name == 'softmax_linear' else _TYPES,
    )
    for name, shapes, gradients in _LAYERS
] + [
    Operation(name, function, [(size, size, 64)], ['input'], types)
    for name, function, size, types in [
        ('pool1', 'max_pool', 24, _TYPES),
        ('norm1', 'local_response_normalization', 12, ['float32']),
        ('norm2', 'local_response_normalization', 12, ['float32']),
        ('pool2', 'max_pool', 12, ['float32']),
    ]
]


# The compared steps: hyperparameters and type
STEPS = [
    (CLASSIC, 'float32'),
    (dataclasses.replace(CLASSIC, optimizer='momentum'), 'float32'),
    (FAST, 'bfloat16'),
]


class Plan(NamedTuple):
    """Settings of some trainers of this machine."""

    device_groups: List[List[str]]  # The devices of a group compute at the same time.
    threads: Threads
    num_sub_batches: Sequence[int]  # per tower, of each trainer
    batch_size: int = CLASSIC.batch_size

    @property
    def session_config(self):
        """The tf.ConfigProto with the devices of all groups.

        A session that has only /gpu:1 would compute on /gpu:0.
        """
        return machine.session_config(sum(self.device_groups, []), self.threads)


def cpu_plans():
    """Return the Plans of trainers with 1 to 8 towers on the CPU, one per setting of threads."""
    by_threads = collections.defaultdict(set)
    for num_towers in range(1, _MAX_TOWERS + 1):
        devices = [f'/cpu:{i}' for i in range(num_towers)]
        number = machine.num_sub_batches(devices, CLASSIC.batch_size)
        threads = machine.resources(devices, number).threads
        by_threads[threads._replace(prefetch=0)].add(number)
    return [
        Plan([['/cpu:0']], threads, sorted(numbers, reverse=True))
        for threads, numbers in by_threads.items()
    ]


def gpu_plan(num_gpus):
    """Return the Plan of each GPU alone, and of all GPUs at once."""
    gpus = [f'/gpu:{i}' for i in range(num_gpus)]
    groups = [[gpu] for gpu in gpus] + ([gpus] if num_gpus > 1 else [])
    return Plan(groups, machine.resources(gpus[:1], 1).threads, [1])


class Comparison(NamedTuple):
    """Comparison of TensorFlow with NumPy."""

    name: str
    type: str
    devices: str
    num_images: int
    error: float  # the norm of the difference, relative to the norm of the right result
    bound: float

    @property
    def is_right(self):
        """True if the error is within the bound, False if it is not a number."""
        return self.error <= self.bound

    def __str__(self):
        return (
            f'{"right" if self.is_right else "WRONG"}: {self.name}, {self.type}, {self.devices}, '
            f'{self.num_images} images: relative error {self.error:.1e} (bound {self.bound:g})'
        )


def is_books_network():
    """Return True if cifar10/model.py has the variables of the book's network."""
    with tf.Graph().as_default():
        model.inference(tf.zeros([1, 24, 24, 3]))
        found = {v.op.name: tuple(v.shape.as_list()) for v in tf.global_variables()}
    expected = {name: value.shape for name, value in initial_values(np.random).items()}
    return found == expected


def compare(plan):
    """Return the Comparisons of a Plan. The first session of a process fixes its threads."""
    machine.set_up_tensorflow()
    sizes = {
        (plan.batch_size + i) // number for number in plan.num_sub_batches for i in (0, number - 1)
    }
    found = []
    for operation in OPERATIONS:
        for num_images in {plan.batch_size} if operation.function == 'matmul' else sorted(sizes):
            found += compare_operation(operation, num_images, plan)
    return found + list(compare_steps(plan))


def compare_operation(operation, num_images, plan):
    """Yield the Comparisons of an Operation and its gradients on `num_images` images."""
    rng = np.random.RandomState(num_images)
    (first, *others), name = operation.shapes, operation.function
    draw = {
        'max_pool': _random_without_ties,
        # Small values would be normalized by almost 1.
        'local_response_normalization': lambda *args: 32 * _random(*args),
    }.get(name, _random)
    arguments = [draw(rng, (num_images, *first)), *(_random(rng, shape) for shape in others)]
    exact = [argument.astype(np.float64) for argument in arguments]
    expected = {'result': getattr(numpy_network, name)(*exact)}
    dy = _random(rng, expected['result'].shape)
    gradients = getattr(numpy_network, name + '_gradients')(dy.astype(np.float64), *exact)
    for argument, gradient in zip(operation.gradients, gradients):
        if argument:
            expected['gradient of ' + argument] = gradient
    for devices, type_name in itertools.product(plan.device_groups, operation.types):
        if not can_compute(type_name):
            continue
        where = ', '.join(devices), num_images
        try:
            results = _compute(operation, type_name, devices, plan, [*arguments, dy])
        except tf.errors.OpError as error:
            yield _failure(operation.name, type_name, *where, error)
            continue
        bound = _BOUNDS[type_name]
        if machine.is_gpu(devices[0]):
            bound = max(bound, _GPU_BOUND)
        for (result, right), found in zip(expected.items(), zip(*results)):
            error = _worst(_relative_error(value, right) for value in found)
            yield Comparison(f'{operation.name}, {result}', type_name, *where, error, bound)


def _compute(operation, type_name, devices, plan, values):
    """Return the result and the gradients for each device of a group.

    `values` are the arguments, and the gradient of the result.
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


def compare_steps(plan):
    """Yield the Comparisons of STEPS."""
    rng = np.random.RandomState(0)
    variables = initial_values(rng)
    images = _random(rng, (plan.batch_size, 24, 24, 3))
    labels = rng.randint(0, NUM_CLASSES, plan.batch_size)
    exact = {name: value.astype(np.float64) for name, value in variables.items()}
    for hparams, wanted_type in STEPS:
        right = numpy_network.loss_gradients(images.astype(np.float64), labels, exact, hparams)
        for devices, number in itertools.product(plan.device_groups, plan.num_sub_batches):
            type_name = wanted_type if can_compute(wanted_type) else 'float32'
            used = dataclasses.replace(hparams, compute_dtype=type_name)
            name = f'step of {hparams.recipe} ({hparams.optimizer})'
            where = ', '.join(devices), plan.batch_size // number
            try:
                gradients, after = _train(used, devices, number, [images, labels], variables, plan)
            except tf.errors.OpError as error:
                yield _failure(name, type_name, *where, error)
                continue
            bound = _GRADIENT_BOUNDS[type_name]
            if machine.is_gpu(devices[0]):
                bound = _GPU_GRADIENT_BOUND
            error = _worst(_relative_error(gradients[key], right[key]) for key in right)
            yield Comparison(f'{name}, gradients', type_name, *where, error, bound)
            for result, error in _update_errors(used, exact, gradients, after):
                yield Comparison(f'{name}, {result}', 'float32', *where, error, _UPDATE_BOUND)


def _update_errors(hparams, before, gradients, after):
    """Yield (result, error) of the update, which TensorFlow computes in float32.

    `before`, `gradients` and `after` are dicts from the names of the variables to arrays.
    """
    errors_of_weights, errors_of_averages = [], []
    for name, weights in before.items():
        values = weights, gradients[name].astype(np.float64), np.zeros_like(weights)
        change = numpy_network.update(name, values, hparams, _LEARNING_RATE)[0] - weights
        errors_of_weights.append(_relative_error(after[name] - weights, change))
        average = after[name + '/ExponentialMovingAverage']
        # The decay of the first update is (1 + 1) / (10 + 1).
        errors_of_averages.append(_relative_error(average - weights, 9 / 11 * change))
    yield 'update', _worst(errors_of_weights)
    yield 'moving averages', _worst(errors_of_averages)


def _train(hparams, devices, num_sub_batches, batch, variables, plan):
    """Make a step of at least two towers with the same batch, one per device.

    Returns the average gradients and, after the update, all variables: dicts from names to arrays.
    """
    towers = devices if len(devices) > 1 else devices * 2

    def initialize(getter, name, **kwargs):
        return getter(name, **dict(kwargs, initializer=tf.constant_initializer(variables[name])))

    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = [[tf.constant(x) for x in batch]] * len(towers)
        global_step = tf.train.get_or_create_global_step()
        opt = optimizer.create(tf.constant(_LEARNING_RATE), hparams)
        with multi_gpu.variables_on(devices[0]), tf.variable_scope('', custom_getter=initialize):
            network = Network(hparams=hparams, num_sub_batches=num_sub_batches)
            _, tower_grads = multi_gpu.tower_gradients(towers, batches, opt, network)
        gradients = multi_gpu.average_gradients(tower_grads)
        run_length = RunLength(plan.batch_size, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN)
        train_op = optimizer.train_op(opt, gradients, global_step, run_length, hparams)
        fetches = {variable.op.name: gradient for gradient, variable in gradients}
        with tf.Session(config=plan.session_config) as session:
            session.run(tf.global_variables_initializer())
            found, _ = session.run([fetches, train_op])
            return found, session.run({v.op.name: v for v in tf.global_variables()})


def initial_values(rng):
    """Return random values, similar to the initial ones, of the variables by their names."""
    values = {}
    for name, (_, shape), _ in _LAYERS:
        # With matrix_weight_rms, the update of `fast` hardly scales these weights.
        stddev = 1 / 192 if name == 'softmax_linear' else FAST.matrix_weight_rms
        values[name + '/weights'] = rng.normal(0, stddev, shape).astype(np.float32)
        values[name + '/biases'] = np.full(shape[-1], 0.1, np.float32)
    return values


def can_compute(type_name):
    """Return False for bfloat16 with TensorFlow 1.15, which cannot convolve in it."""
    return type_name != 'bfloat16' or not tf.__version__.startswith('1.')


def _failure(name, type_name, devices, num_images, error):
    """Return a Comparison for operations that have raised an error."""
    name = f'{name} fails ({errors.reason(error)})'
    return Comparison(name, type_name, devices, num_images, math.nan, 0.0)


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


def _relative_error(found, expected):
    """Return the norm of the difference, relative to the norm of `expected`."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def _worst(values):
    """Return the greatest of some errors; NaN is greater than all others."""
    return max(values, key=lambda value: (math.isnan(value), value))
