"""How many threads do what on a CPU, chosen by the number of cores; the benchmark shows what that brings."""
import os
from typing import NamedTuple

_SLICES_PER_CORE = 2  # so that a core that falls behind has less to do
_MIN_EXAMPLES_PER_SLICE = 8  # smaller ones cost more than they bring


class Threads(NamedTuple):
    """Numbers of threads, 0 where TensorFlow chooses, and the slices of a batch that make use of them."""
    intra_op: int  # that share one operation
    inter_op: int  # operations side by side
    input: int  # that fill the prefetch queue
    slices: int  # of each tower's batch, for model.inference


def num_cores():
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()


def choose(devices, batch_size, intra_op=0, inter_op=0, input_threads=0):
    """Chooses what is not given.

    On a CPU, cores that work on examples of their own are faster than cores that share every operation and wait for each
    other at its end. So each operation has one thread, and the towers' batches are cut into slices for the cores.

    Args:
      devices: a device name a tower.
      batch_size: examples a tower.
      intra_op, inter_op, input_threads: as in Threads; 0 means to choose.

    Returns:
      A Threads.
    """
    # Two, for one alone leaves a core spinning, waiting for it, whenever the input is what limits.
    input_threads = input_threads or min(num_cores(), max(2, len(devices)))
    if 'gpu' in devices[0]:
        return Threads(intra_op, inter_op, input_threads, slices=1)
    cores = inter_op or num_cores()
    slices = max(1, min(_SLICES_PER_CORE * cores // len(devices), batch_size // _MIN_EXAMPLES_PER_SLICE))
    if slices * len(devices) >= cores:
        intra_op = intra_op or 1
    return Threads(intra_op, inter_op, input_threads, slices)
