"""Graphs of a cluster's workers, built by the trainer without servers."""

import dataclasses
from typing import NamedTuple
from unittest import mock

import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.distributed.cluster import Cluster, Strategy
from cifar10.distributed.exchange import Update
from cifar10.distributed.worker import Worker
from scripts import cifar10_distributed_train

GENERATION = 5  # of the variables


class WorkerGraph(NamedTuple):
    """Graph and operations of one worker."""

    graph: tf.Graph
    update: Update


def build(data_dir, mode, num_servers, num_workers, index=0, hparams=CLASSIC, **numbers):
    """Build the WorkerGraph of the worker `index`, with batches of two, without a session.

    `numbers` are fields of Strategy and of Job.
    """
    cluster = Cluster(
        tuple(f'ps{i}:1' for i in range(num_servers)),
        tuple(f'worker{i}:1' for i in range(num_workers)),
    )
    strategy = Strategy(
        mode,
        num_workers,
        **{name: value for name, value in numbers.items() if name in Strategy._fields},
    )
    job = training.Job(
        dataset.read(data_dir),
        dataclasses.replace(hparams, batch_size=2),
        batches_per_tower=strategy.batches_per_tower,
        steps_per_execution=strategy.steps_per_execution,
        **{name: value for name, value in numbers.items() if name in training.Job._fields},
    )
    worker = Worker(mock.Mock(cluster=cluster, task=cluster.worker_tasks[index]), strategy, job)
    # as by join()
    worker.generation, worker.initializes_variables = GENERATION, index == 0
    made, update = [], worker.update
    with mock.patch.object(worker, 'train'), mock.patch.object(
        worker, 'update', lambda *arguments: made.append(update(*arguments)) or made[0]
    ):
        cifar10_distributed_train.train(job, None, worker)
    return WorkerGraph(made[0].train_op.graph, made[0])


def ancestors(*fetches):
    """Return the operations that a session runs for these fetches."""
    found, waiting = set(), [getattr(fetch, 'op', fetch) for fetch in fetches]
    while waiting:
        operation = waiting.pop()
        if operation not in found:
            found.add(operation)
            waiting.extend(
                [tensor.op for tensor in operation.inputs] + list(operation.control_inputs)
            )
    return found


def task_of(operation):
    """Return the task of an operation, like 'ps 0': that of its variable, if it has one."""
    handles = [tensor.op for tensor in operation.inputs if tensor.dtype == tf.resource]
    spec = tf.DeviceSpec.from_string((handles or [operation])[0].device)
    return f'{spec.job} {spec.task}'


def sent(*fetches):
    """Return a dict from (sender, receiver) to the bytes that these fetches send between tasks."""
    moved = {}
    for operation in ancestors(*fetches):
        for tensor in operation.inputs:
            arrow = task_of(tensor.op), task_of(operation)
            if arrow[0] != arrow[1] and tensor.dtype != tf.resource:
                moved.setdefault(arrow, {})[tensor.name] = (
                    tensor.shape.num_elements() * tensor.dtype.size
                )
    return {arrow: sum(tensors.values()) for arrow, tensors in moved.items()}
