"""Variables, operations and transfers of the tasks."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import model
from cifar10.config import CLASSIC, FAST
from cifar10.distributed import averaging, variable_placement
from cifar10.distributed.cluster import Cluster, Task
from tests.helpers import tasks_here, worker_graphs
from tests.helpers.worker_graphs import ancestors, sent, task_of

MOMENTUM = FAST._replace(optimizer='momentum')
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


@pytest.mark.parametrize('num_servers, hparams', [(2, MOMENTUM), (2, FAST), (3, CLASSIC)])
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


def test_workers_agree_on_the_places(build):
    """This holds in all modes, although the chief of sync has more operations."""
    places = []
    for mode, index in [('sync', 0), ('sync', 1), ('async', 1)]:
        with build(mode, 2, 2, index, FAST).graph.as_default():
            places.append({variable.op.name: variable.device for variable in tf.global_variables()})
    assert (
        len(places[1]) == 11
        and set(places[1].items()) < set(places[0].items())
        and places[2] == places[0]
    )


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


def test_local_variables_are_at_their_worker(build):
    """On a parameter server, all workers would share them."""
    with build('async', 2, 2, 1, CLASSIC, **PERIODS).graph.as_default():
        places = [task_of(variable.op) for variable in tf.local_variables()]
    assert places == ['worker 1'] * 21


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


FULLY_CONNECTED = 4 * (2304 * 384 + 384 + 384 * 192 + 192 + 192 * 10 + 10)
ACTIVATIONS, IMAGES, LABELS = [4 * 2 * size for size in (2304, 24 * 24 * 3, 1)]
ONE_WAY = FULLY_CONNECTED + ACTIVATIONS


@pytest.mark.parametrize(
    'mode, to_first, to_cpu, back',
    [
        # gradients go to the sums, and from there to the servers
        ('async', MODEL_BYTES, (0, 0), ONE_WAY),
        # the all-reduce runs on CPUs
        (
            'allreduce',
            MODEL_BYTES,
            (MODEL_BYTES - FULLY_CONNECTED, FULLY_CONNECTED),
            ACTIVATIONS,
        ),
        # so is the exchange of weights and averages
        ('average', 2 * MODEL_BYTES, (2 * MODEL_BYTES, 0), ONE_WAY),
    ],
)
def test_a_worker_tells_what_its_devices_send(build, capsys, mode, to_first, to_cpu, back):
    """One tower is on two GPUs; the first one has the variables or their copies."""
    worker = build(
        mode,
        0 if mode == 'allreduce' else 1,
        2,
        1,
        CLASSIC,
        **PERIODS,
        **dict(DIVIDED, variable_strategy='first_device'),
    )
    sent = {
        ('/cpu:0', '/gpu:0'): to_first + IMAGES,
        ('/cpu:0', '/gpu:1'): LABELS,
        ('/gpu:0', '/gpu:1'): ONE_WAY,
        ('/gpu:1', '/gpu:0'): back,
        ('/gpu:0', '/cpu:0'): to_cpu[0],
        ('/gpu:1', '/cpu:0'): to_cpu[1],
    }
    with worker.graph.as_default():
        variable_placement.print_layout(worker.replica, worker.update, worker.copies)
    held, between = capsys.readouterr().out.splitlines()
    subject = 'Weights' if mode in ('allreduce', 'average') else 'Copies of the weights'
    assert held == f'{subject}: 4.27 MB on /gpu:0 (--variable_strategy=first_device)'
    most = max(sent.values())
    source, target = min(arrow for arrow, size in sent.items() if size == most)
    unit = 'in a step with an exchange' if mode in ('async', 'average') else 'per step'
    assert between == (
        f'Between devices: {sum(sent.values())} bytes {unit}, including images and labels; '
        f'most from {source} to {target} ({most})'
    )


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


def test_nothing_of_all_reduce_is_elsewhere(build):
    worker = build('allreduce', 0, 2, 1, FAST)
    assert {task_of(op) for op in worker.graph.get_operations() if op.device} == {'worker 1'}


def test_bytes_held(capsys):
    """A moving average is on the device of its variable, and counts as much."""
    with tf.device(
        variable_placement.ps_device_setter(Cluster(('a:1', 'b:1'), ('c:1',)), Task('worker', 0))
    ):
        step = tf.train.get_or_create_global_step()
        weights = tf.get_variable('weights', [300, 500])
        tf.get_variable('half', [150000], tf.float16)
        tf.train.ExponentialMovingAverage(0.9, step).apply([weights])
    variable_placement.print_variable_sizes(tf.global_variables())
    assert capsys.readouterr().out == 'Variables: 0.3 MB on ps 0, 1.2 MB on ps 1\n'


def _loss(images, labels):
    return model.loss(model.inference(images, fc_weight_decay=0.01), labels)


def test_copies():
    """Gradients with respect to copies equal those of a graph without copies."""
    images, labels = (
        tf.constant(np.random.RandomState(0).randn(4, 24, 24, 3).astype(np.float32)),
        tf.constant([1, 2, 3, 4]),
    )
    global_step = tf.train.get_or_create_global_step()
    copies = variable_placement.Copies(tasks_here.LocalTask('worker', 0))
    with copies.read():
        loss = _loss(images, labels)
        copied = tf.trainable_variables()
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):  # as a second tower
            assert tf.get_variable('conv1/weights') is copied[0]
    gradients = list(zip(tf.gradients(loss, copied), copied))
    originals = tf.trainable_variables()
    tf.get_collection_ref('losses').clear()
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        expected_loss = _loss(images, labels)
    expected = tf.gradients(expected_loss, originals)
    assert (
        len(copied) == 10
        and set(copied) < set(tf.local_variables())
        and not set(copied) & set(tf.global_variables())
    )
    assert set(originals) == set(tf.global_variables()) - {global_step}
    of_originals = copies.map_to_originals(gradients[::-1])
    assert [variable.op.name for _, variable in of_originals] == [
        variable.op.name for variable in originals[::-1]
    ]
    fetch, descend = copies.fetch(), copies.descend(gradients, 0.5)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(global_step.assign(7))
        session.run(fetch)
        want, want_loss, have, have_loss, step = session.run(
            [expected[::-1], expected_loss, of_originals, loss, copies.step]
        )
        assert (step, have_loss) == (7, want_loss)
        for (gradient, _), wanted in zip(have, want):
            np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-7)
            assert np.abs(gradient).max() > 0
        before, other = session.run([originals, expected_loss])
        session.run([original.initializer for original in originals] + [global_step.assign(8)])
        # not fetched yet
        assert session.run(expected_loss) != other and session.run([loss, copies.step]) == [
            want_loss,
            7,
        ]
        session.run(descend)
        after = session.run(copied)
        for value, start, wanted in zip(after, before, want[::-1]):
            np.testing.assert_allclose(value, start - 0.5 * wanted, rtol=1e-5, atol=1e-6)
        session.run(fetch)
        assert session.run(loss) == session.run(expected_loss) and session.run(copies.step) == 8
