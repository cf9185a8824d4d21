"""The comparisons with NumPy find what is wrong: injected faults, sizes, devices."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import model, multi_gpu, muon, optimizer
from cifar10.benchmark import processes
from cifar10.system import machine
from cifar10.system.machine import Threads
from tests.machine import comparisons, test_machine
from tests.machine.comparisons import OPERATIONS, Plan

CONVOLUTION, ORTHOGONALIZE = tf.nn.conv2d, muon.orthogonalize
(CONV2,) = [operation for operation in OPERATIONS if operation.name == 'conv2']
HAS_BFLOAT16 = comparisons.can_compute('bfloat16')  # TensorFlow 1.15 has not
TYPES = ['float32', 'bfloat16'] if HAS_BFLOAT16 else ['float32']
STEPS = ['step of classic (gradient_descent), gradients', 'step of fast (muon), gradients']


@pytest.mark.parametrize(
    'cores, expected',
    [
        (2, [(Threads(1, 2, 0), [4, 2, 1])]),
        (16, [(Threads(1, 16, 0), [16, 10, 8, 6, 5, 4])]),
        # Only from four towers on, there are enough sub-batches for all cores.
        (64, [(Threads(64, 64, 0), [16]), (Threads(1, 64, 0), [16])]),
    ],
)
def test_plans_have_the_sizes_of_the_trainers(monkeypatch, cores, expected):
    monkeypatch.setattr(machine, 'num_cores', lambda: cores)
    assert comparisons.cpu_plans() == [
        Plan([['/cpu:0']], threads, numbers) for threads, numbers in expected
    ]


@pytest.mark.parametrize(
    'num_gpus, groups', [(1, [['/gpu:0']]), (2, [['/gpu:0'], ['/gpu:1'], ['/gpu:0', '/gpu:1']])]
)
def test_each_gpu_is_compared_alone_and_all_at_once(num_gpus, groups):
    plan = comparisons.gpu_plan(num_gpus)
    assert (plan.device_groups, plan.num_sub_batches, plan.batch_size) == (groups, [1], 128)


def test_a_device_alone_is_that_device():
    """A session with /cpu:1 alone would compute on /cpu:0."""
    config = Plan([['/cpu:0'], ['/cpu:1']], Threads(1, 2), [1]).session_config
    with tf.device('/cpu:1'):
        x = tf.placeholder(tf.float32, [2, 2])
        product = tf.matmul(x, x)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(config=config) as session:
        session.run(product, {x: np.ones([2, 2])}, options, metadata)
    devices = {
        stats.device.split('device:')[-1]
        for stats in metadata.step_stats.dev_stats
        for node in stats.node_stats
        if node.node_name == product.op.name
    }
    assert devices == {'CPU:1'}


def _wrong_gradient(is_wrong):
    """Return model.conv2d, with a wrong gradient of the weights where `is_wrong(x)` is true."""

    def conv2d(x, weights, name=None):
        if is_wrong(x):
            weights = 2 * weights - tf.stop_gradient(weights)
        return CONVOLUTION(x, weights, [1, 1, 1, 1], 'SAME', name=name)

    return conv2d


def _failing(x, weights, name=None):
    with tf.control_dependencies([tf.Assert(x[0, 0, 0, 0] > 1e9, ['no algorithm worked'])]):
        return CONVOLUTION(x, weights, [1, 1, 1, 1], 'SAME', name=name)


def _wrong_results(num_images, devices=('/cpu:0',)):
    """Return (name, type) of the wrong results of conv2 on one device, or on several at once."""
    plan = Plan([list(devices)], Threads(1, 2), [1])
    found = list(comparisons.compare_operation(CONV2, num_images, plan))
    return [(result.name, result.type) for result in found if not result.is_right]


def _wrong_results_of_steps(num_sub_batches, devices=('/cpu:0',)):
    plan = Plan([list(devices)], Threads(1, 2), num_sub_batches, 16)
    return [found for found in comparisons.compare_steps(plan) if not found.is_right]


@pytest.mark.parametrize(
    'is_wrong, num_images, devices, types',
    [
        (lambda x: int(x.shape[0]) == 8, 7, ['/cpu:0'], []),
        (lambda x: int(x.shape[0]) == 8, 8, ['/cpu:0'], TYPES),
        (lambda x: x.dtype == tf.bfloat16, 8, ['/cpu:0'], TYPES[1:]),
        # CPU devices stand for two GPUs.
        (lambda x: x.device.endswith(':1'), 8, ['/cpu:0'], []),
        (lambda x: x.device.endswith(':1'), 8, ['/cpu:0', '/cpu:1'], TYPES),
    ],
)
def test_a_wrong_gradient(monkeypatch, is_wrong, num_images, devices, types):
    monkeypatch.setattr(model, 'conv2d', _wrong_gradient(is_wrong))
    expected = [('conv2, gradient of weights', type_name) for type_name in types]
    assert _wrong_results(num_images, devices) == expected


def test_an_operation_that_fails(monkeypatch):
    monkeypatch.setattr(model, 'conv2d', _failing)
    found = _wrong_results(8)
    assert [type_name for _, type_name in found] == TYPES
    assert all('conv2 fails (' in name and 'no algorithm worked' in name for name, _ in found)


def test_a_wrong_gradient_in_a_step(monkeypatch):
    """With one of the numbers of sub-batches: parts of 4 images."""
    assert _wrong_results_of_steps([1], ['/cpu:0', '/cpu:1']) == []
    monkeypatch.setattr(comparisons, 'STEPS', comparisons.STEPS[::2])
    monkeypatch.setattr(model, 'conv2d', _wrong_gradient(lambda x: int(x.shape[0]) == 4))
    wrong = _wrong_results_of_steps([1, 4])
    assert [(found.name, found.num_images) for found in wrong] == [(name, 4) for name in STEPS]


def test_a_sum_of_the_towers_instead_of_their_mean(monkeypatch):
    average = multi_gpu.average_gradients
    monkeypatch.setattr(comparisons, 'STEPS', comparisons.STEPS[::2])
    monkeypatch.setattr(
        multi_gpu, 'average_gradients', lambda grads: [(2 * g, v) for g, v in average(grads)]
    )
    assert [found.name for found in _wrong_results_of_steps([1])] == STEPS


def _wrong_product(*args):
    return [1.1 * x for x in ORTHOGONALIZE(*args)]


def _without_nesterov(learning_rate, hparams):
    return tf.train.MomentumOptimizer(learning_rate, hparams.momentum)


@pytest.mark.parametrize(
    'module, name, fault, index, step',
    [
        (optimizer, 'create', _without_nesterov, 1, 'step of classic (momentum)'),
        (muon, 'orthogonalize', _wrong_product, 2, 'step of fast (muon)'),
    ],
)
def test_a_wrong_update(monkeypatch, module, name, fault, index, step):
    """The update is in float32: another type for the convolutions would be no remedy."""
    monkeypatch.setattr(comparisons, 'STEPS', [comparisons.STEPS[index]])
    monkeypatch.setattr(module, name, fault)
    assert [(found.name, found.type) for found in _wrong_results_of_steps([1])] == [
        (f'{step}, update', 'float32'),
        (f'{step}, moving averages', 'float32'),
    ]


@pytest.mark.parametrize(
    'name, shape', [('conv1/weights', (5, 5, 3, 32)), ('local5/biases', (192,))]
)
def test_another_network_is_not_compared(monkeypatch, name, shape):
    """One line says so."""
    shapes = {key: value.shape for key, value in comparisons.initial_values(np.random).items()}
    shapes[name] = shape
    monkeypatch.setattr(
        model, 'inference', lambda images: [tf.get_variable(*item) for item in shapes.items()]
    )
    monkeypatch.setattr(processes, 'call_in_new_process', None)
    with pytest.raises(pytest.fail.Exception) as failure:
        test_machine.test_the_cpu(Plan([['/cpu:0']], Threads(1, 2), [2], 16))
    assert str(failure.value) == (
        "cifar10/model.py is not the book's network: these comparisons are of the book's. "
        'Nothing was compared'
    )
