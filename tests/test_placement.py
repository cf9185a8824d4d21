"""Which layer and which variable is on which device, and that this changes nothing of the
update."""

import functools
import itertools
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import model, multi_gpu, optimizer
from cifar10.hparams import CLASSIC, FAST, Pace
from cifar10.runs import machine
from tests.helpers import networks

SLOW, LONG = pytest.mark.slow, pytest.mark.long
IMAGES = np.random.RandomState(0).randn(8, 24, 24, 3).astype(np.float32)
LABELS = np.arange(8, dtype=np.int32)
PACE = Pace(examples_per_step=8, examples_per_epoch=16)
RECIPES = {
    'classic': CLASSIC._replace(initial_learning_rate=0.02),
    'fast': FAST._replace(warmup_epochs=0.0, moving_average_fraction=0.0, moving_average_decay=0.3),
}
LAYERS = ['conv1', 'conv2', 'local3', 'local4', 'softmax_linear']
OPERATIONS = dict(
    zip(
        LAYERS,
        [2 * 576 * 75 * 64, 3 * 144 * 1600 * 64, 3 * 2304 * 384, 3 * 384 * 192, 3 * 192 * 10],
    )
)
SIZES = {
    'conv1': [4800, 64],
    'conv2': [102400, 64],
    'local3': [884736, 384],
    'local4': [73728, 192],
    'softmax_linear': [1920, 10],
}
VARIABLES = ['%s/%s' % (layer, kind) for layer in LAYERS for kind in ('weights', 'biases')]
DIVISIONS = {
    1: [LAYERS],
    2: [['conv1', 'conv2'], ['local3', 'local4', 'softmax_linear']],
    3: [['conv1'], ['conv2'], ['local3', 'local4', 'softmax_linear']],
    4: [['conv1'], ['conv2'], ['local3'], ['local4', 'softmax_linear']],
    5: [[layer] for layer in LAYERS],
}


@pytest.mark.parametrize('num_devices', range(1, 6))
def test_layers_are_divided(num_devices):
    assert multi_gpu.divide_layers(num_devices) == DIVISIONS[num_devices]


@pytest.mark.parametrize('num_devices', [3, 4])
def test_work_is_as_even_as_whole_layers_allow(num_devices):
    """Against all ways to give each layer to a device, of which those count that keep the layers in
    order."""

    def loads(devices):
        return sorted(
            (
                sum(OPERATIONS[layer] for layer, own in zip(LAYERS, devices) if own == i)
                for i in range(num_devices)
            ),
            reverse=True,
        )

    ways = [
        devices
        for devices in itertools.product(range(num_devices), repeat=5)
        if list(devices) == sorted(devices) and set(devices) == set(range(num_devices))
    ]
    found = multi_gpu.divide_layers(num_devices)
    assert loads([i for i, part in enumerate(found) for _ in part]) == min(map(loads, ways))


def test_more_devices_than_layers():
    with pytest.raises(ValueError, match='^6 devices are more than the 5 layers$'):
        multi_gpu.divide_layers(6)


def test_unknown_strategy():
    with pytest.raises(ValueError, match='^Unknown variable_strategy: gpu$'):
        multi_gpu.variable_devices('gpu', ['/cpu:0'])


def _build(hparams, devices, num_towers, strategy):
    """The towers and their update; returns losses, the averaged gradients and the train op."""
    global_step = tf.train.get_or_create_global_step()
    opt = optimizer.create(optimizer.learning_rate(global_step, PACE, hparams), hparams)
    batches = list(zip(tf.split(IMAGES, num_towers), tf.split(LABELS, num_towers)))
    with multi_gpu.variables_on(multi_gpu.variable_devices(strategy, devices)):
        losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt, networks.of(hparams))
    gradients = multi_gpu.average_gradients(tower_grads)
    return losses, gradients, optimizer.train(opt, gradients, global_step, PACE, hparams)


def _build_on_one_device(hparams):
    """The same without towers."""
    global_step = tf.train.get_or_create_global_step()
    opt = optimizer.create(optimizer.learning_rate(global_step, PACE, hparams), hparams)
    logits = model.inference(tf.constant(IMAGES), fc_weight_decay=hparams.fc_weight_decay)
    loss = model.loss(logits, LABELS, label_smoothing=hparams.label_smoothing)
    gradients = opt.compute_gradients(loss)
    return [loss], gradients, optimizer.train(opt, gradients, global_step, PACE, hparams)


def _update(build, devices):
    """Three updates from the same values of all variables; returns the loss of each, and the
    variables."""
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        losses, _, train_op = build()
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        rng = np.random.RandomState(1)
        with tf.Session(config=machine.session_config(devices)) as session:
            session.run(tf.global_variables_initializer())
            for name, variable in sorted(variables.items()):
                if name != 'global_step':
                    variable.load(rng.normal(0, 0.03, variable.shape.as_list()), session)
            return [np.mean(session.run([losses, train_op])[0]) for _ in range(3)], session.run(
                variables
            )


@functools.lru_cache(maxsize=None)
def _update_on_one_device(recipe):
    return _update(lambda: _build_on_one_device(RECIPES[recipe]), ['/cpu:0'])


def _placements():
    """The quick ones have towers, divided towers and variables on several devices; the others
    combine all values."""
    quick = [(2, 1, 'cpu', 'classic'), (2, 2, 'spread', 'fast')]
    slow = [
        (1, 5, 'spread', 'classic'),
        (2, 2, 'first_device', 'classic'),
        (1, 2, 'first_device', 'fast'),
        (2, 1, 'spread', 'fast'),
    ]
    combinations = itertools.product((1, 2), (1, 2), multi_gpu.VARIABLE_STRATEGIES, RECIPES)
    rest = [values for values in combinations if values not in quick + slow] + [
        (1, 5, 'spread', 'fast')
    ]
    return (
        quick
        + [pytest.param(*values, marks=SLOW) for values in slow]
        + [pytest.param(*values, marks=LONG) for values in rest]
    )


@pytest.mark.parametrize('num_towers, devices_per_tower, strategy, recipe', _placements())
def test_every_placement_makes_the_update_of_one_device(
    num_towers, devices_per_tower, strategy, recipe
):
    devices = ['/cpu:%d' % i for i in range(num_towers * devices_per_tower)]
    losses, variables = _update(
        lambda: _build(RECIPES[recipe], devices, num_towers, strategy), devices
    )
    one_losses, one_variables = _update_on_one_device(recipe)
    np.testing.assert_allclose(losses, one_losses, rtol=1e-5)
    assert abs(losses[2] - losses[0]) > 1e-3 and variables.keys() == one_variables.keys()
    assert len(variables) == (31 if recipe == 'fast' else 21)
    for name, value in one_variables.items():
        np.testing.assert_allclose(variables[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def _holders(devices, strategy):
    """The device of each variable of the network."""
    places = {'cpu': ['/device:CPU:0'], 'first_device': devices[:1], 'spread': devices}[strategy]
    held, holders = [0] * len(places), {}
    for variable, size in zip(VARIABLES, sum(SIZES.values(), [])):
        emptiest = held.index(min(held))
        held[emptiest] += 4 * size
        holders[variable] = places[emptiest]
    return holders


def _layer(name, default):
    """The layer to which an operation of a tower belongs, by its name alone."""
    scope = re.match('tower_[0-9]/(?:gradients/tower_[0-9]/)?([a-z0-9A-Z_]+)', name).group(1)
    scope = re.sub('_[0-9]+$', '', scope[: -len('_grad')] if scope.endswith('_grad') else scope)
    return {
        'pool1': 'conv1',
        'norm1': 'conv1',
        'norm2': 'conv2',
        'pool2': 'conv2',
        'Reshape': 'conv2',
        'concat': 'conv2',
    }.get(scope, scope if scope in LAYERS else default)


GPUS, CPUS = ['/device:GPU:%d' % i for i in range(10)], ['/device:CPU:%d' % i for i in range(10)]


@pytest.mark.parametrize('recipe', ['fast', pytest.param('classic', marks=LONG)])
@pytest.mark.parametrize('strategy', multi_gpu.VARIABLE_STRATEGIES)
@pytest.mark.parametrize(
    'devices, num_towers, devices_per_tower',
    [
        (GPUS, 2, 1),
        pytest.param(GPUS, 1, 2, marks=SLOW),
        (GPUS, 2, 2),
        pytest.param(GPUS, 2, 5, marks=SLOW),
        pytest.param(CPUS, 2, 2, marks=SLOW),
    ],
    ids=['2 GPUs', '1 x 2 GPUs', '2 x 2 GPUs', '2 x 5 GPUs', '2 x 2 CPUs'],
)
def test_every_operation_is_on_its_device(
    graph, devices, num_towers, devices_per_tower, strategy, recipe
):
    devices = devices[: num_towers * devices_per_tower]
    with tf.device('/cpu:0'):
        losses, gradients, _ = _build(RECIPES[recipe], devices, num_towers, strategy)
    holders, kinds = _holders(devices, strategy), set()
    for variable in tf.global_variables():  # with slots and moving averages
        owner = '/'.join(variable.op.name.split('/')[:2])
        assert variable.device == holders.get(owner, '/device:CPU:0'), variable.op.name
    for gradient, variable in gradients:
        assert gradient.device == (
            holders[variable.op.name] if num_towers > 1 else _gradient_device(variable, devices)
        )
    for op in graph.get_operations():
        # for the first values alone
        if op.type == 'NoOp' or re.match('moving_averages/(VarIsInitializedOp|cond)', op.name):
            continue
        if not op.device:  # reads a variable, and so runs where that is, or makes its first value
            assert op.type == 'ReadVariableOp' or op.colocation_groups() != [
                b'loc:@' + op.name.encode()
            ], op.name
            continue
        kinds.add((op.type, op.device))
        update = re.match('update/[A-Za-z]+/update_([a-z0-9_]+/[a-z]+)/', op.name)
        # 1 - decay
        average = re.match(
            'moving_averages/ExponentialMovingAverage/AssignMovingAvg(?:_([0-9]+))?/(?!sub$|sub/x$)',
            op.name,
        )
        if op.name.startswith('tower_'):
            tower = int(op.name[6])
            assert op.device == _device_of_layer(
                op, devices[tower * devices_per_tower : (tower + 1) * devices_per_tower]
            ), op.name
        elif update:
            assert op.device == holders[update.group(1)], op.name
        elif average:
            assert op.device == holders[VARIABLES[int(average.group(1) or 0)]], op.name
        elif not op.name.startswith(tuple(VARIABLES) + ('average_gradients',)):
            assert op.device == '/device:CPU:0', op.name
    assert {('Conv2D', device) for device in devices[::devices_per_tower]} <= kinds
    assert {
        ('SparseSoftmaxCrossEntropyWithLogits', device)
        for device in devices[devices_per_tower - 1 :: devices_per_tower]
    } <= kinds


def _gradient_device(variable, devices):
    layer = variable.op.name.split('/')[0]
    return next(device for device, part in zip(devices, DIVISIONS[len(devices)]) if layer in part)


def _device_of_layer(op, devices):
    """The device of a tower's operation; a sum of gradients is where all of them are."""
    if re.match('tower_[0-9]/gradients/(AddN|zeros_like)', op.name):
        assert {tensor.device for tensor in op.inputs} == {op.device}
        return op.device
    layer = _layer(op.name, None)
    before = 'conv1' if re.match('tower_[0-9]/split', op.name) else 'softmax_linear'
    return next(
        device
        for device, part in zip(devices, DIVISIONS[len(devices)])
        if (layer or before) in part
    )
