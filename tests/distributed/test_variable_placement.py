"""Variables, operations and transfers of the tasks."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.config import CLASSIC, FAST
from cifar10.distributed import averaging
from cifar10.distributed.cluster import Cluster
from tests.helpers import worker_graphs
from tests.helpers.worker_graphs import ancestors, sent, task_of

MODEL_BYTES = 4 * 1068298
PERIODS = {'fetch_steps': 2, 'push_steps': 2}
FEW_BYTES = 200  # steps, rates and the like


@pytest.fixture(scope='module')
def build(data_dir):
    """Return a function that builds each graph once."""
    built = {}

    def build(*args, **numbers):
        key = args, tuple(sorted(numbers.items()))
        if key not in built:
            built[key] = worker_graphs.build(data_dir, *args, **numbers)
        return built[key]

    return build


def _places(sizes, num_servers):
    """Each variable goes to the first server with the fewest bytes."""
    held, places = np.zeros(num_servers, int), []
    for size in sizes:
        places.append(int(held.argmin()))
        held[places[-1]] += size
    return places


@pytest.mark.parametrize('num_servers, hparams', [(2, FAST), (3, CLASSIC)])
def test_variables_are_balanced_by_bytes(build, num_servers, hparams):
    with build('sync', num_servers, 2, 0, hparams).graph.as_default():
        variables, trained = tf.global_variables(), tf.trainable_variables()
    # the global step is an int64
    sizes = [8] + [4 * int(np.prod(variable.shape.as_list())) for variable in trained]
    assert sum(sizes) == 8 + MODEL_BYTES and len(sizes) == 11
    places = dict(
        zip(
            ['global_step'] + [variable.op.name for variable in trained],
            _places(sizes, num_servers),
        )
    )
    assert len(set(places.values())) == num_servers
    for variable in variables:
        layer = '/'.join(variable.op.name.split('/')[:2])
        assert task_of(variable.op) == f'ps {places[layer]}', variable.op.name
    assert len(variables) == (21 if hparams == CLASSIC else 31)


def _arrows(moved, worker, num_servers):
    """Assert that only this worker sends and receives more than a few bytes; return the bytes."""
    servers = [f'ps {i}' for i in range(num_servers)]
    up, down = [
        sum(moved.pop(arrow, 0) for arrow in arrows)
        for arrows in (
            [(worker, server) for server in servers],
            [(server, worker) for server in servers],
        )
    ]
    assert all(set(arrow) <= set(servers) for arrow in moved) and sum(moved.values()) < FEW_BYTES
    return up, down


@pytest.mark.parametrize('index', [0, 1])
def test_a_synchronous_update_moves_each_gradient_and_each_weight_once(build, index):
    """Averages, momentum and orthogonal matrices stay on the servers."""
    worker = build('sync', 2, 2, index, FAST)
    for moved in _arrows(sent(worker.update.train_op), f'worker {index}', 2):
        assert MODEL_BYTES <= moved < MODEL_BYTES + FEW_BYTES


def test_an_asynchronous_update_only_sends(build):
    worker = build('async', 2, 2, 1, CLASSIC, **PERIODS)
    steps = worker.update.hooks[0]
    up, down = _arrows(sent(worker.update.train_op), 'worker 1', 2)
    assert MODEL_BYTES <= up < MODEL_BYTES + FEW_BYTES and down < FEW_BYTES
    up, down = _arrows(sent(steps._fetch), 'worker 1', 2)
    assert up == 0 and MODEL_BYTES <= down < MODEL_BYTES + FEW_BYTES
    # a step between two pushes needs the rate
    assert sum(_arrows(sent(steps._local_op), 'worker 1', 2)) < FEW_BYTES


DIVIDED = dict(devices=('/gpu:0', '/gpu:1'), devices_per_tower=2, variable_strategy='spread')


@pytest.mark.parametrize('mode', ['async', 'average'])
def test_devices_of_a_worker(build, mode):
    """A divided tower, its variables or copies, and sums of gradients are on two GPUs."""
    worker = build(mode, 2, 2, 1, CLASSIC, **PERIODS, **DIVIDED)
    is_local = mode == 'average'
    with worker.graph.as_default():
        trained, local, held = tf.trainable_variables(), tf.local_variables(), tf.global_variables()
    gpus = dict(
        zip(
            [variable.op.name for variable in trained],
            _places([4 * int(np.prod(variable.shape.as_list())) for variable in trained], 2),
        )
    )
    assert set(gpus.values()) == {0, 1}
    for variable in held if is_local else local:
        name = '/'.join(
            variable.op.name.split('/')[(not is_local) + variable.op.name.startswith('sums/') :][:2]
        )
        assert variable.device == '/job:worker/task:1/device:' + (
            f'GPU:{gpus[name]}' if name in gpus else 'CPU:0'
        ), variable.op.name
    if not is_local:
        assert {tf.DeviceSpec.from_string(variable.device).job for variable in held} == {'ps'}
        assert not any('GPU' in variable.device for variable in held)
    for kind, gpu in [('Conv2DBackpropFilter', 0), ('SparseSoftmaxCrossEntropyWithLogits', 1)]:
        assert {op.device for op in worker.graph.get_operations() if op.type == kind} == {
            f'/job:worker/task:1/device:GPU:{gpu}'
        }


def test_averaging_moves_weights_and_averages_once(build):
    """Nothing else is sent: neither the optimizer's state nor tensors of local steps."""
    worker = build('average', 2, 2, 1, FAST)
    for moved in _arrows(sent(worker.update.train_op), 'worker 1', 2):
        assert 2 * MODEL_BYTES <= moved < 2 * MODEL_BYTES + FEW_BYTES
    assert sent(worker.update.hooks[0]._local_op) == {}
    with worker.graph.as_default():
        assert {task_of(variable.op) for variable in tf.global_variables()} == {'worker 1'}


def test_the_weight_averager_averages_where_the_parts_are():
    cluster = Cluster(('a:1', 'b:1', 'c:1'), ('d:1', 'e:1'))
    averaged = averaging.average_op(
        cluster, tf.placeholder(tf.bool, [2]), tf.placeholder(tf.int64, [])
    )
    sums = [op for op in ancestors(averaged) if op.type == 'Mean']
    assert {task_of(op) for op in sums} == {'ps 0', 'ps 1', 'ps 2'}
    assert all(task_of(tensor.op) == task_of(op) for op in sums for tensor in op.inputs)


def test_all_reduce(build):
    """There is one collective for all gradients, and one per variable for the start. Nothing is
    elsewhere."""
    worker = build('allreduce', 0, 2, 1, FAST)
    assert {task_of(op) for op in worker.graph.get_operations() if op.device} == {'worker 1'}
    with worker.graph.as_default():
        shapes = [str(variable.shape) for variable in tf.global_variables()]
    for fetch, wanted in [
        (worker.update.train_op, [f'({MODEL_BYTES // 4},)']),
        (worker.update.worker_init_op, shapes),
    ]:
        found = [op for op in ancestors(fetch) if op.type.startswith('Collective')]
        assert sorted(str(op.inputs[0].shape) for op in found) == sorted(wanted)
