"""Places of variables, queues and operations, and transfers between tasks, in the trainer's
graphs."""

import contextlib
import dataclasses
from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import network, training
from cifar10.config import CLASSIC, FAST
from cifar10.data import dataset
from cifar10.distributed.cluster import Cluster, Strategy
from cifar10.scripts import cifar10_distributed_train

MODEL_BYTES = 4 * 1068298
FEW_BYTES = 200  # steps, rates and the like


class _Built(Exception):
    """The graph is complete."""


def _build(data_dir, mode, num_servers, num_workers, index=0, hparams=CLASSIC, **numbers):
    """Return the WorkerOps of the worker `index`, with batches of two, in the default graph.

    `numbers` are fields of Strategy, and arguments of create_job.
    """
    cluster = Cluster(
        tuple(f'ps{i}:1' for i in range(num_servers)),
        tuple(f'worker{i}:1' for i in range(num_workers)),
    )
    fields = {name: value for name, value in numbers.items() if name in Strategy._fields}
    strategy = Strategy(mode, num_workers, **fields)
    job = training.create_job(
        dataset.read(data_dir),
        dataclasses.replace(hparams, batch_size=2),
        batches_per_tower=strategy.batches_per_tower,
        **{name: value for name, value in numbers.items() if name not in Strategy._fields},
    )
    session = cifar10_distributed_train.worker_session
    worker = session.Worker(cluster, cluster.worker_tasks[index], strategy, job, '', mock.Mock())
    module, made = cifar10_distributed_train.MODES[mode], []
    worker_ops = module.worker_ops
    with contextlib.ExitStack() as patches:
        for target, name, value in [
            (cifar10_distributed_train, 'FLAGS', mock.Mock(train_dir='')),
            (tf, 'Graph', tf.get_default_graph),
            (tf.train, 'MonitoredSession', mock.Mock(side_effect=_Built)),
            (module, 'worker_ops', lambda *args: made.append(worker_ops(*args)) or made[0]),
        ]:
            patches.enter_context(mock.patch.object(target, name, value))
        patches.enter_context(contextlib.suppress(_Built))
        cifar10_distributed_train.train(worker, None, 0)
    return made[0]


def _ancestors(*fetches):
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


def _task_of(operation):
    """Return the task of an operation, like 'ps 0': that of its variable, if it has one."""
    handles = [tensor.op for tensor in operation.inputs if tensor.dtype == tf.resource]
    spec = tf.DeviceSpec.from_string((handles or [operation])[0].device)
    return f'{spec.job} {spec.task}'


def _sent(*fetches):
    """Return a dict from (sender, receiver) to the bytes that these fetches send between tasks."""
    moved = {}
    for operation in _ancestors(*fetches):
        for tensor in operation.inputs:
            arrow = _task_of(tensor.op), _task_of(operation)
            if arrow[0] != arrow[1] and tensor.dtype != tf.resource:
                moved.setdefault(arrow, {})[tensor.name] = (
                    tensor.shape.num_elements() * tensor.dtype.size
                )
    return {arrow: sum(tensors.values()) for arrow, tensors in moved.items()}


def _places(variables, num_devices):
    """Each variable goes to the first device with the fewest bytes."""
    held, places = np.zeros(num_devices, int), {}
    for variable in variables:
        places[variable.op.name] = int(held.argmin())
        held[places[variable.op.name]] += variable.shape.num_elements() * variable.dtype.size
    return places


def _layer(variable):
    """Return the name of the variable of a slot, or of a moving average."""
    return '/'.join(variable.op.name.split('/')[:2])


@pytest.mark.parametrize(
    'mode, num_servers, hparams', [('sync', 2, FAST), ('sync', 3, CLASSIC), ('async', 2, FAST)]
)
def test_variables_are_balanced_by_bytes(data_dir, mode, num_servers, hparams):
    """They are whole; their slots and moving averages are with them."""
    _build(data_dir, mode, num_servers, 2, 1, hparams)
    trained = tf.trainable_variables()
    assert sum(4 * v.shape.num_elements() for v in trained) == MODEL_BYTES and len(trained) == 10
    places = _places([tf.train.get_global_step(), *trained], num_servers)
    assert set(places.values()) == set(range(num_servers))
    for variable in tf.global_variables():
        assert _task_of(variable.op) == f'ps {places[_layer(variable)]}', variable.op.name
    assert len(tf.global_variables()) == (21 if hparams == CLASSIC else 31)


@pytest.mark.parametrize('mode', ['sync', 'async', 'average'])
def test_the_input_is_on_the_worker(data_dir, mode):
    """Servers have one queue at most, of tokens."""
    _build(data_dir, mode, 2, 2, 1)
    operations = tf.get_default_graph().get_operations()
    on_servers = [op for op in operations if _task_of(op).startswith('ps ')]
    queues = {op.name for op in on_servers if op.type.endswith('QueueV2')}
    queues.discard('dummy_queue')  # in TensorFlow 1.15
    assert queues == (set() if mode == 'async' else {'sync_token_q'})
    pipeline = {'RandomShuffleQueueV2', 'Conv2D', 'FixedLengthRecordReaderV2', 'MergeSummary'}
    assert not pipeline & {op.type for op in on_servers}
    for variable in tf.local_variables():
        assert _task_of(variable.op) == 'worker 1', variable.op.name


def _up_and_down(*fetches):
    """Return the bytes from and to the worker 1; nothing else is moved, apart from few bytes."""
    up = down = 0
    for (sender, receiver), size in _sent(*fetches).items():
        assert 'worker 1' in (sender, receiver) or size < FEW_BYTES
        up += size * (sender == 'worker 1')
        down += size * (receiver == 'worker 1')
    return up, down


@pytest.mark.parametrize('mode', ['sync', 'async'])
def test_an_update_moves_each_gradient_and_each_weight_once(data_dir, mode):
    """Averages, momentum and orthogonal matrices stay on the servers."""
    for moved in _up_and_down(_build(data_dir, mode, 2, 2, 1, FAST).train_op):
        assert MODEL_BYTES <= moved < MODEL_BYTES + FEW_BYTES


@pytest.mark.parametrize(
    'mode, numbers', [('sync', {}), ('async', {}), ('async', {'push_steps': 2})]
)
def test_variables_of_a_network_without_devices(data_dir, mode, numbers):
    """They are on the CPUs of the servers, although the tower is on a GPU."""
    _build(data_dir, mode, 2, 2, devices=['/gpu:0'], network_name='resnet', **numbers)
    variables = network.variables()
    assert len(variables) > 90
    places = {str(tf.DeviceSpec.from_string(v.device).to_string()) for v in variables.values()}
    assert places == {f'/job:ps/task:{i}/device:CPU:0' for i in range(2)}
