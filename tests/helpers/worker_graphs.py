"""Graphs of a cluster's workers, built by the trainer without servers."""

import contextlib
import dataclasses
from unittest import mock

import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.distributed.cluster import Cluster, Strategy
from scripts import cifar10_distributed_train


class _Built(Exception):
    """The graph is complete."""


def build(data_dir, mode, num_servers, num_workers, index=0, hparams=CLASSIC, **numbers):
    """Return the WorkerOps of the worker `index`, on batches of two, in the default graph.

    `numbers` are fields of Strategy and of Job.
    """
    cluster = Cluster(
        tuple(f'ps{i}:1' for i in range(num_servers)),
        tuple(f'worker{i}:1' for i in range(num_workers)),
    )
    fields = {name: value for name, value in numbers.items() if name in Strategy._fields}
    strategy = Strategy(mode, num_workers, **fields)
    job = training.Job(
        dataset.read(data_dir),
        dataclasses.replace(hparams, batch_size=2),
        batches_per_tower=strategy.batches_per_tower,
        **{name: value for name, value in numbers.items() if name in training.Job._fields},
    )
    session = cifar10_distributed_train.worker_session
    worker = session.Worker(cluster, cluster.worker_tasks[index], strategy, job, '', mock.Mock())
    with contextlib.ExitStack() as patches:
        for target, name, value in [
            (cifar10_distributed_train, 'FLAGS', mock.Mock(train_dir='')),
            (tf, 'Graph', tf.get_default_graph),
        ]:
            patches.enter_context(mock.patch.object(target, name, value))
        made = patches.enter_context(mock.patch.object(session, 'session', side_effect=_Built))
        patches.enter_context(contextlib.suppress(_Built))
        cifar10_distributed_train.train(worker, None, 0)
    return made.call_args[0][-1]


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
