"""Check of this machine: lines and verdict.

The check uses the types, sizes and threads that the trainers choose on this machine.
"""

import collections

import tensorflow.compat.v1 as tf

from cifar10.benchmark import comparisons, processes, step_comparisons
from cifar10.benchmark.comparisons import Plan
from cifar10.errors import UserError
from cifar10.system import machine

_MAX_TOWERS = 8


def make_plans(batch_size, requested, num_gpus):
    """Return the Plans of this machine.

    Args:
      batch_size: examples per tower.
      requested: the Threads of the flags.
      num_gpus: the number of GPUs.
    """
    by_threads = collections.defaultdict(set)
    for num_towers in range(1, _MAX_TOWERS + 1):
        devices = [f'/cpu:{i}' for i in range(num_towers)]
        threads = machine.choose_threads(devices, batch_size, requested)._replace(prefetch=0)
        number = machine.num_sub_batches(devices, batch_size, requested.inter_op)
        by_threads[threads].add(number)
    plans = [
        Plan([['/cpu:0']], threads, batch_size, sorted(numbers, reverse=True))
        for threads, numbers in by_threads.items()
    ]
    if num_gpus:
        gpus = [f'/gpu:{i}' for i in range(num_gpus)]
        groups = [[gpu] for gpu in gpus] + ([gpus] if num_gpus > 1 else [])
        threads = machine.choose_threads(gpus[:1], batch_size, requested)
        plans.append(Plan(groups, threads, batch_size, [1]))
    return plans


def compare(plan):
    """Return the Comparisons of a Plan."""
    machine.set_up_tensorflow()
    sizes = {
        (plan.batch_size + i) // number for number in plan.num_sub_batches for i in (0, number - 1)
    }
    found = []
    for operation in comparisons.OPERATIONS:
        for num_images in {plan.batch_size} if operation.function == 'matmul' else sorted(sizes):
            found += comparisons.compare_operation(operation, num_images, plan)
    return found + list(step_comparisons.compare_steps(plan))


def run(plans):
    """Compare; print one line per operation, type and group of devices, and the verdict.

    Raises:
      UserError: a result is wrong.
    """
    lines = []
    for plan in plans:
        print(
            f'Threads: intra-op {plan.threads.intra_op}, inter-op {plan.threads.inter_op}; oneDNN: {machine.onednn_setting()}'
        )
        by_line = collections.defaultdict(list)
        # A process of its own, because the first session of a process fixes the threads.
        for comparison in processes.call_in_new_process(compare, plan):
            by_line[comparison.name, comparison.type, comparison.devices].append(comparison)
        new_lines = [summarize(found) for found in by_line.values()]
        print('\n'.join(new_lines))
        lines += new_lines
    wrong = [line for line in lines if line.startswith('WRONG')]
    if wrong:
        raise UserError(
            f'{len(wrong)} of {len(lines)} results are WRONG on this machine with TensorFlow {tf.__version__}',
            f'{_remedy(wrong)}, and report the lines above (docs/versions.md)',
            'compute_dtype',
        )
    print(f'This machine computes right: all {len(lines)} results agree with NumPy')


def summarize(found):
    """Return a line about Comparisons that differ in the number of images only."""
    worst = max(found, key=lambda comparison: (not comparison.is_right, comparison.error))
    sizes = ', '.join(map(str, sorted({comparison.num_images for comparison in found})))
    return (
        f'{"right" if worst.is_right else "WRONG"}: {worst.name}, {worst.type}, {worst.devices}, images: {sizes}; '
        f'relative error {worst.error:.1e} with {worst.num_images} (limit {worst.limit:g})'
    )


def _remedy(wrong):
    """Return what avoids the operations of the wrong lines."""
    if all(', bfloat16,' in line for line in wrong):
        return 'train with {compute_dtype}=float32'
    if all(', /gpu:' in line for line in wrong):
        return 'train without these GPUs (CUDA_VISIBLE_DEVICES=0 shows only GPU 0, -1 none)'
    return 'check again with TF_ENABLE_ONEDNN_OPTS=0 in the environment, or with another version of TensorFlow'
