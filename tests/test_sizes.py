"""Operations at the numbers of images that trainers choose on 1 to 64 cores, against NumPy."""

import pytest

from cifar10.config import CLASSIC
from cifar10.system import machine
from cifar10.system.machine import Threads
from tests.machine import comparisons
from tests.machine.comparisons import OPERATIONS, Plan

NUM_SUB_BATCHES = {
    machine.num_sub_batches(['/cpu:0'] * num_towers, CLASSIC.batch_size, cores)
    for num_towers in range(1, 9)
    for cores in range(1, 65)
}
SIZES = {(CLASSIC.batch_size + i) // n for n in NUM_SUB_BATCHES for i in (0, n - 1)}
TYPES = [name for name in ('float32', 'bfloat16') if comparisons.can_compute(name)]


@pytest.mark.parametrize('num_images', sorted(SIZES))
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
