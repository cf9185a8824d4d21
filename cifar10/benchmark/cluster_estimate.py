"""Speed of training on many machines, by closed formulas.

Nothing overlaps: a worker computes, then exchanges. Sizes are in bytes, times in seconds.
"""

import collections
import math

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, model, placement

# LOCAL: one process with N towers
LOCAL, SYNC, ASYNC, ALLREDUCE, AVERAGE = 'local', 'sync', 'async', 'allreduce', 'average'
AVERAGE_PERIOD = 10  # steps
# Milliseconds of an update of 2 and 4 workers with batches of 64 that share MEASURED_CORES cores,
# see docs/distributed.md
MEASURED_MS = {
    LOCAL: (57.4, 112.6),
    ALLREDUCE: (69.4, 153.8),
    SYNC: (82.6, 165.1),
    ASYNC: (40.2, 42.0),
    AVERAGE: (61.4, 127.5),
}
MEASURED_CORES = 2
# Assumed: latency of a message; cores of a machine for messages; standard deviation of the time of
# a gradient over its mean
LATENCY, CORES_PER_MACHINE, JITTER = 250e-6, 16, 0.03


def server_bytes(num_ps=1, num_classes=model.NUM_CLASSES):
    """Return the bytes of variables on each parameter server, balanced as in training.

    Servers without variables are left out.
    """
    held = collections.Counter()
    size = cifar10_input.IMAGE_SIZE
    with tf.Graph().as_default(), placement.variables_on([f'/cpu:{i}' for i in range(num_ps)]):
        model.inference(tf.zeros([1, size, size, 3]), num_classes=num_classes)
        for variable in tf.trainable_variables():
            held[variable.device] += variable.shape.num_elements() * variable.dtype.size
    return list(held.values())


def traffic(mode, num_workers, bytes_per_server):
    """Return the bytes that a worker and the busiest server send per update; each receives as many.

    An all-reduce in a ring sends 2 (N - 1) / N times the gradients (Patarasuk and Yuan, "Bandwidth
    optimal all-reduce algorithms for clusters of workstations", 2009). A parameter server sends all
    of its variables to each worker (Li et al., "Scaling distributed machine learning with the
    parameter server", 2014). For ASYNC, an update has one worker.

    Args:
      mode: one of the modes.
      num_workers: the number of workers.
      bytes_per_server: the bytes of the variables on each server; for ALLREDUCE their sum counts.
    """
    size, largest = sum(bytes_per_server), max(bytes_per_server)
    if mode == LOCAL:
        return 0, 0
    if mode == ALLREDUCE:
        return 2 * (num_workers - 1) / num_workers * size, 0
    # Weights and their moving averages, once per period.
    share = 2 / AVERAGE_PERIOD if mode == AVERAGE else 1
    return share * size, share * largest * (1 if mode == ASYNC else num_workers)


def shared_cores_seconds(mode, num_workers, size, compute_seconds, copy_seconds_per_byte):
    """Return the time of an update of workers that share MEASURED_CORES on one machine.

    Gradients take `compute_seconds`, and a message `copy_seconds_per_byte` at each end.
    """
    worker, server = traffic(mode, num_workers, [size])
    batches = 1 if mode == ASYNC else num_workers
    return (
        batches * (compute_seconds + 2 * copy_seconds_per_byte * worker)
        + 2 * copy_seconds_per_byte * server
    ) / MEASURED_CORES


def fit(size):
    """Fit (compute_seconds, copy_seconds_per_byte) to the measured times.

    With them, `shared_cores_seconds` is exact for LOCAL and SYNC with 2 workers.
    """
    local, sync = [MEASURED_MS[mode][0] * 1e-3 for mode in (LOCAL, SYNC)]
    return local, (sync - local) * MEASURED_CORES / (8 * size)


def expected_maximum(num_workers):
    """Return the expected maximum of standard normal values, one per worker.

    It is the integral of x dF(x)^N, integrated by parts (David and Nagaraja, "Order statistics",
    2003, section 3.1).
    """
    x = np.arange(-8, 8, 0.01) + 0.005
    normal = np.array([0.5 + 0.5 * math.erf(value / math.sqrt(2)) for value in x])
    return 8 - (normal**num_workers).sum() * 0.01


def seconds_per_batch(mode, num_workers, bytes_per_server, gigabits_per_sec, compute_seconds):
    """Return the time in which each worker trains on one batch.

    A message takes a latency and a time per byte (Hockney, "The communication challenge for MPP",
    1994): on the network, and on a core at each end, which is fitted. Synchronous workers wait for
    the slowest. Asynchronous workers are limited by their own cycle or by the busiest part of the
    server (Denning and Buzen, "The operational analysis of queueing network models", 1978).

    Args:
      mode: SYNC, ASYNC, ALLREDUCE or AVERAGE.
      num_workers: see `traffic`.
      bytes_per_server: see `traffic`.
      gigabits_per_sec: 10^9 bits per second of each network card, in each direction.
      compute_seconds: the mean time of the gradients of a batch.
    """
    per_byte, (_, copy_seconds_per_byte) = 8e-9 / gigabits_per_sec, fit(sum(bytes_per_server))
    worker, server = traffic(mode, num_workers, bytes_per_server)
    period = AVERAGE_PERIOD if mode == AVERAGE else 1
    # The sum of several steps varies less than a step.
    slowest_compute = compute_seconds * (
        1 + JITTER / math.sqrt(period) * expected_maximum(num_workers)
    )
    if mode == ALLREDUCE:  # messages follow each other round the ring
        return (
            slowest_compute
            + 2 * (num_workers - 1) * LATENCY
            + worker * (per_byte + 2 * copy_seconds_per_byte)
        )
    # The messages of several servers are copied at the same time.
    message = worker * max(bytes_per_server) / sum(bytes_per_server)
    copying = copy_seconds_per_byte * (message + max(message, server / CORES_PER_MACHINE))
    exchange = 2 * (LATENCY / period + max(worker, server) * per_byte + copying)
    if mode == ASYNC:
        return max(
            compute_seconds + exchange,
            num_workers * server * max(per_byte, 2 * copy_seconds_per_byte / CORES_PER_MACHINE),
        )
    return slowest_compute + exchange
