"""What workers on many machines send to each other: the bytes of an update on paper."""

from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, model

# LOCAL: one process with N towers
LOCAL, SYNC, ASYNC, ALLREDUCE, AVERAGE = 'local', 'sync', 'async', 'allreduce', 'average'
MODES = (LOCAL, SYNC, ASYNC, ALLREDUCE, AVERAGE)


class Machines(NamedTuple):
    """The machines: one for each worker and each parameter server."""

    num_workers: int
    num_ps: int = 1
    # each variable is cut into num_ps equal parts; else each is on one server as a whole
    sharded: bool = False
    gigabits: float = 10  # of each card per second, in each direction
    latency: float = 50e-6  # seconds until a message arrives, beyond what its bytes take
    cores: int = 16  # of each machine, for messages and updates; workers compute on their GPUs
    # everything shares the cores of one machine, computing too, and no card is in the way
    one_machine: bool = False


class Scheme(NamedTuple):
    """How the workers train together."""

    mode: str
    variables: list  # the bytes of each
    batch_size: int = 128  # per worker
    # for SYNC: how many gradients make an update, 0 means those of all workers
    replicas_to_aggregate: int = 0
    average_period: int = 10  # for AVERAGE, in steps


class Traffic(NamedTuple):
    """Bytes of an update on paper: weights and gradients alone; for ASYNC, of one worker's
    update."""

    worker: float  # that a worker sends, and as many that it receives
    server: float  # that the busiest parameter server sends, and as many that it receives
    total: float  # that all together send


def variable_bytes(num_classes=model.NUM_CLASSES):
    """The bytes of each variable of the network."""
    with tf.Graph().as_default():
        model.inference(
            tf.zeros([1, cifar10_input.IMAGE_SIZE, cifar10_input.IMAGE_SIZE, 3]),
            num_classes=num_classes,
        )
        return [
            int(np.prod(variable.shape.as_list())) * variable.dtype.size
            for variable in tf.trainable_variables()
        ]


def server_bytes(variables, machines):
    """The bytes of the variables on each parameter server: each goes to the emptiest one, the
    largest first."""
    if machines.sharded:
        return [sum(variables) / machines.num_ps] * machines.num_ps
    servers = [0] * machines.num_ps
    for size in sorted(variables, reverse=True):
        servers[servers.index(min(servers))] += size
    return servers


def on_paper(scheme, machines):
    """The Traffic of an update."""
    size, num_workers = sum(scheme.variables), machines.num_workers
    if scheme.mode == LOCAL:
        return Traffic(0, 0, 0)
    if scheme.mode == ALLREDUCE:  # first the sums of N parts go round the ring, then their totals
        sent = 2 * size * (num_workers - 1) / num_workers
        return Traffic(sent, 0, num_workers * sent)
    # weights and their moving averages, once per period
    share = 2 / scheme.average_period if scheme.mode == AVERAGE else 1
    num_clients = 1 if scheme.mode == ASYNC else num_workers
    largest = max(server_bytes(scheme.variables, machines))
    return Traffic(share * size, share * largest * num_clients, 2 * share * size * num_clients)
