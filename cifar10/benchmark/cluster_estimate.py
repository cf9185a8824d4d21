"""Closed formulas for the throughput of training on many machines.

A worker computes, then communicates, without overlap. Sizes are in bytes, times in seconds.
"""

import collections
import math

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, model, placement

# LOCAL: one process with N towers
LOCAL, SYNC, ASYNC, ALLREDUCE, AVERAGE = 'local', 'sync', 'async', 'allreduce', 'average'
AVERAGE_PERIOD = 10  # steps
# Milliseconds per update of 2 and 4 workers, batches of 64, on MEASURED_CORES shared cores: see
# docs/distributed.md
MEASURED_MS = {
    LOCAL: (57.4, 112.6),
    ALLREDUCE: (69.4, 153.8),
    SYNC: (82.6, 165.1),
    ASYNC: (40.2, 42.0),
    AVERAGE: (61.4, 127.5),
}
MEASURED_CORES = 2
# Assumed: seconds of latency per message; cores per machine for messages; relative standard
# deviation of the compute time
LATENCY, CORES_PER_MACHINE, JITTER = 250e-6, 16, 0.03


def server_bytes(num_ps=1, num_classes=model.NUM_CLASSES):
    """Return the bytes of variables on each parameter server that has any."""
    held = collections.Counter()
    size = cifar10_input.IMAGE_SIZE
    with tf.Graph().as_default(), placement.variables_on([f'/cpu:{i}' for i in range(num_ps)]):
        model.inference(tf.zeros([1, size, size, 3]), num_classes=num_classes)
        for variable in tf.trainable_variables():
            held[variable.device] += variable.shape.num_elements() * variable.dtype.size
    return list(held.values())


def traffic(mode, num_workers, bytes_per_server):
    """Return the bytes that a worker and the busiest server send per update.

    Each receives as many bytes. A ring all-reduce sends 2 (N - 1) / N times the gradients
    (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    2009). A parameter server sends its variables to each worker (Li et al., "Scaling distributed
    machine learning with the parameter server", 2014). An ASYNC update takes
    the gradients of one worker.

    Args:
      mode: one of the modes.
      num_workers: the number of workers.
      bytes_per_server: bytes of variables on each server; ALLREDUCE uses their sum.
    """
    size, largest = sum(bytes_per_server), max(bytes_per_server)
    if mode == LOCAL:
        return 0, 0
    if mode == ALLREDUCE:
        return 2 * (num_workers - 1) / num_workers * size, 0
    # AVERAGE sends weights and moving averages, once per period.
    share = 2 / AVERAGE_PERIOD if mode == AVERAGE else 1
    return share * size, share * largest * (1 if mode == ASYNC else num_workers)


def shared_cores_seconds(mode, num_workers, size, compute_seconds, copy_seconds_per_byte):
    """Return the seconds per update of workers on MEASURED_CORES shared cores.

    Args:
      mode: see `traffic`.
      num_workers: see `traffic`.
      size: bytes of all variables.
      compute_seconds: seconds of the gradients of one batch.
      copy_seconds_per_byte: seconds of a core per byte, for the sender and for the receiver.
    """
    worker, server = traffic(mode, num_workers, [size])
    batches = 1 if mode == ASYNC else num_workers
    return (
        batches * (compute_seconds + 2 * copy_seconds_per_byte * worker)
        + 2 * copy_seconds_per_byte * server
    ) / MEASURED_CORES


def fit(size):
    """Fit (compute_seconds, copy_seconds_per_byte) to LOCAL and SYNC with 2 workers."""
    local, sync = [MEASURED_MS[mode][0] * 1e-3 for mode in (LOCAL, SYNC)]
    return local, (sync - local) * MEASURED_CORES / (8 * size)


def expected_maximum(num_workers):
    """Return the expected maximum of `num_workers` standard normal values.

    Integral of x dF(x)^N, by parts (David and Nagaraja, "Order statistics", 2003, section 3.1).
    """
    x = np.arange(-8, 8, 0.01) + 0.005
    normal = np.array([0.5 + 0.5 * math.erf(value / math.sqrt(2)) for value in x])
    return 8 - (normal**num_workers).sum() * 0.01


def seconds_per_batch(mode, num_workers, bytes_per_server, gigabits_per_sec, compute_seconds):
    """Return the seconds in which each worker trains on one batch.

    A message takes a latency, and a time per byte on the network, on a core of the sender and on a
    core of the receiver (Hockney, "The communication challenge for MPP", 1994). Synchronous workers
    wait for the slowest worker. Asynchronous workers are limited by their own cycle or by the
    busiest resource of the server (Denning and Buzen, "The operational analysis of queueing network
    models", 1978).

    Args:
      mode: SYNC, ASYNC, ALLREDUCE or AVERAGE.
      num_workers: see `traffic`.
      bytes_per_server: see `traffic`.
      gigabits_per_sec: bandwidth of each network card in each direction, 10^9 bits per second.
      compute_seconds: mean seconds of the gradients of a batch.
    """
    per_byte, (_, copy_seconds_per_byte) = 8e-9 / gigabits_per_sec, fit(sum(bytes_per_server))
    worker, server = traffic(mode, num_workers, bytes_per_server)
    period = AVERAGE_PERIOD if mode == AVERAGE else 1
    # The mean of several steps varies less than one step.
    slowest_compute = compute_seconds * (
        1 + JITTER / math.sqrt(period) * expected_maximum(num_workers)
    )
    if mode == ALLREDUCE:  # 2 (N - 1) messages in sequence
        return (
            slowest_compute
            + 2 * (num_workers - 1) * LATENCY
            + worker * (per_byte + 2 * copy_seconds_per_byte)
        )
    # Messages of several servers are copied in parallel.
    message = worker * max(bytes_per_server) / sum(bytes_per_server)
    copying = copy_seconds_per_byte * (message + max(message, server / CORES_PER_MACHINE))
    exchange = 2 * (LATENCY / period + max(worker, server) * per_byte + copying)
    if mode == ASYNC:
        return max(
            compute_seconds + exchange,
            num_workers * server * max(per_byte, 2 * copy_seconds_per_byte / CORES_PER_MACHINE),
        )
    return slowest_compute + exchange
