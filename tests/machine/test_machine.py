"""Comparison of this machine with NumPy: `python -m pytest -m machine tests/machine`.

Each setting of threads has a process of its own, because the first session fixes the threads.
"""

import pytest
import tensorflow.compat.v1 as tf

from cifar10.benchmark import processes
from cifar10.cli import program
from tests.machine import comparisons

pytestmark = pytest.mark.machine


def _assert_right(plan):
    """Fail with a line for each result that is wrong, or with one line for another network."""
    if not comparisons.is_books_network():
        pytest.fail(
            "cifar10/model.py is not the book's network: these comparisons are of the book's. "
            'Nothing was compared',
            pytrace=False,
        )
    found = processes.call_in_new_process(comparisons.compare, plan)
    print(program.versions(), *found, sep='\n')
    wrong = [str(comparison) for comparison in found if not comparison.is_right]
    if wrong:
        verdict = f'{len(wrong)} of {len(found)} results are WRONG on this machine with TensorFlow {tf.__version__}:'
        pytest.fail('\n'.join([verdict, *wrong]), pytrace=False)


@pytest.mark.parametrize(
    'plan',
    comparisons.cpu_plans(),
    ids=lambda plan: f'intra-op {plan.threads.intra_op}, inter-op {plan.threads.inter_op}',
)
def test_the_cpu(plan):
    _assert_right(plan)


def test_the_gpus():
    """Each GPU alone, and all at once."""
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    if not num_gpus:
        pytest.skip('TensorFlow sees no GPU, or was started without -m machine')
    _assert_right(comparisons.gpu_plan(num_gpus))
