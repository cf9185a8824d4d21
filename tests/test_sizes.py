"""Operations and predictions at the sizes that are chosen on 1 to 64 cores, against NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import distortions
from cifar10.config import CLASSIC
from cifar10.network import Network
from cifar10.system import machine
from cifar10.system.machine import Threads
from tests.helpers import oracle
from tests.machine import comparisons
from tests.machine.comparisons import OPERATIONS, Plan

BATCH_SIZES = [1, 2, 4, 8, 10, 16, 32, 50, 64, 100, 128, 200, 256, 500, 512]
# (batch size, number of sub-batches) of trainers with 1 to 8 towers
SPLITS = sorted(
    {
        (size, machine.num_sub_batches(['/cpu:0'] * num_towers, size, cores))
        for size in BATCH_SIZES
        for num_towers in range(1, 9)
        for cores in range(1, 65)
    }
)
TYPES = [name for name in ('float32', 'bfloat16') if comparisons.can_compute(name, '/cpu:0')]


def _with_long(values, is_quick):
    """Return parameters; those that are not quick are marked `long`."""
    return [
        value if is_quick(value) else pytest.param(value, marks=pytest.mark.long)
        for value in values
    ]


def _sizes(splits):
    return {(size + i) // number for size, number in splits for i in (0, number - 1)}


DEFAULT_SIZES = _sizes(split for split in SPLITS if split[0] == CLASSIC.batch_size)
ALL_SIZES = sorted(
    _sizes(SPLITS)
    | set(range(1, 65))
    | {72, 80, 96, 112, 144, 160, 192, 224, 288, 320, 384, 448, 480, 496, 511}
)


@pytest.mark.parametrize('num_images', _with_long(ALL_SIZES, DEFAULT_SIZES.__contains__))
def test_operations_on_sub_batches(num_images):
    plan = Plan([['/cpu:0']], Threads(1, 2), [1], num_images)
    found = [
        comparison
        for operation in OPERATIONS
        if operation.function != 'matmul'
        for comparison in comparisons.compare_operation(operation, num_images, plan)
    ]
    assert len(found) == (20 if len(TYPES) == 2 else 13)
    assert not [comparison for comparison in found if not comparison.is_right]


@pytest.mark.parametrize('cores', _with_long([1, 2, 3, 5, 64], [2, 64].__contains__))
def test_predictions_for_any_number_of_images(cores):
    """There may be fewer images than sub-batches."""
    rng = np.random.RandomState(cores)
    images = rng.randint(0, 256, [128, 3, 32, 32]).astype(np.uint8)
    given = tf.placeholder(tf.uint8, [None, 3, 32, 32])
    number = machine.num_sub_batches(['/cpu:0'], CLASSIC.batch_size, cores)
    output = tf.nn.log_softmax(Network(num_sub_batches=number).inference(distortions.crop(given)))
    values = comparisons.initial_values(rng)
    with tf.Session(config=machine.session_config(['/cpu:0'], Threads(1, 2))) as session:
        for variable in tf.trainable_variables():
            variable.load(values[variable.op.name], session)
        logits = oracle.logits(oracle.evaluation_images(images.transpose(0, 2, 3, 1)), values)
        shifted = logits - logits.max(1, keepdims=True)
        expected = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        for num_images in (1, 2, 8, 16, 127, 128):
            found = session.run(output, {given: images[:num_images]})
            np.testing.assert_allclose(found, expected[:num_images], atol=1e-4)
