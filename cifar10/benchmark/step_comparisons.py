"""Comparisons of a whole training step with NumPy in float64."""

import dataclasses
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu, optimizer, placement
from cifar10.benchmark import numpy_network
from cifar10.benchmark.comparisons import (
    OPERATIONS,
    Comparison,
    can_compute,
    failure,
    random,
    relative_error,
    worst,
)
from cifar10.config import (
    CLASSIC,
    FAST,
    NUM_CLASSES,
    NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN,
    RunLength,
)
from cifar10.system import machine

# In the gradients of a whole step, rounding decides between nearly equal activations in a pooling.
# In bfloat16, this gives 0.15. 0.2 is a cosine of 0.98 between two gradients.
_GRADIENT_LIMITS = {'float32': 0.02, 'bfloat16': 0.2}
_GPU_GRADIENT_LIMIT = 0.2  # With TF32 it gives up to 0.05.
_UPDATE_LIMIT = 0.02
_LEARNING_RATE = 0.1


def compare_steps(plan):
    """Yield the Comparisons of a step of `classic` in float32, and of `fast` in bfloat16."""
    rng = np.random.RandomState(0)
    variables = initial_values(rng)
    images = random(rng, (plan.batch_size, 24, 24, 3))
    labels = rng.randint(0, NUM_CLASSES, plan.batch_size)
    exact = {name: value.astype(np.float64) for name, value in variables.items()}
    for hparams, wanted_type in ((CLASSIC, 'float32'), (FAST, 'bfloat16')):
        right = numpy_network.loss_gradients(images.astype(np.float64), labels, exact, hparams)
        for devices, number in itertools.product(plan.device_groups, plan.num_sub_batches):
            type_name = wanted_type if can_compute(wanted_type, devices[0]) else 'float32'
            used = dataclasses.replace(hparams, compute_dtype=type_name)
            name = f'step of {hparams.recipe}'
            where = ', '.join(devices), plan.batch_size // number
            try:
                gradients, after = _train(used, devices, number, [images, labels], variables, plan)
            except tf.errors.OpError as error:
                yield failure(name, type_name, *where, error)
                continue
            limit = _GRADIENT_LIMITS[type_name]
            if machine.is_gpu(devices[0]):
                limit = _GPU_GRADIENT_LIMIT
            error = worst(relative_error(gradients[key], right[key]) for key in right)
            yield Comparison(f'{name}, gradients', type_name, *where, error, limit)
            for result, error in _update_errors(used, exact, gradients, after):
                name_of_result = f'{name}, {result} ({hparams.optimizer})'
                yield Comparison(name_of_result, 'float32', *where, error, _UPDATE_LIMIT)


def _update_errors(hparams, before, gradients, after):
    """Yield (result, error) of the update, which TensorFlow computes in float32.

    Args:
      hparams: an HParams.
      before: the weights before the step, a dict from the names of the variables to float64 arrays.
      gradients: the gradients of TensorFlow, likewise in float32.
      after: the values of all variables after the step, likewise.
    """
    errors_of_weights, errors_of_averages = [], []
    for name, weights in before.items():
        values = weights, gradients[name].astype(np.float64), np.zeros_like(weights)
        change = numpy_network.updated_weights(name, values, hparams, _LEARNING_RATE) - weights
        errors_of_weights.append(relative_error(after[name] - weights, change))
        average = after[name + '/ExponentialMovingAverage']
        # The decay of the first update is (1 + 1) / (10 + 1).
        errors_of_averages.append(relative_error(average - weights, 9 / 11 * change))
    yield 'update', worst(errors_of_weights)
    yield 'moving averages', worst(errors_of_averages)


def _train(hparams, devices, num_sub_batches, batch, variables, plan):
    """Make one step with a tower on each device, all with the same batch; at least two towers.

    Returns:
      The average gradients and, after the update, all variables; dicts from names to arrays.
    """
    towers = devices if len(devices) > 1 else devices * 2

    def initialize(getter, name, **kwargs):
        return getter(name, **dict(kwargs, initializer=tf.constant_initializer(variables[name])))

    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = [[tf.constant(x) for x in batch]] * len(towers)
        global_step = tf.train.get_or_create_global_step()
        opt = optimizer.create(tf.constant(_LEARNING_RATE), hparams)
        with placement.variables_on(devices[0]), tf.variable_scope('', custom_getter=initialize):
            _, tower_grads = multi_gpu.tower_gradients(
                towers, batches, opt, hparams=hparams, num_sub_batches=num_sub_batches
            )
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
    for operation in OPERATIONS:
        for shape in operation.shapes[1:]:
            # With matrix_weight_rms, the update of `fast` hardly scales these weights.
            stddev = 1 / 192 if operation.name == 'softmax_linear' else FAST.matrix_weight_rms
            values[operation.name + '/weights'] = rng.normal(0, stddev, shape).astype(np.float32)
            values[operation.name + '/biases'] = np.full(shape[-1], 0.1, np.float32)
    return values
