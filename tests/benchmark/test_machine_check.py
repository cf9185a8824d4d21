"""Check of a machine: plans, injected wrong kernels, lines, verdict."""

import math

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import model, multi_gpu, muon
from cifar10.benchmark import comparisons, machine_check, processes, step_comparisons
from cifar10.benchmark.comparisons import OPERATIONS, Comparison, Plan
from cifar10.errors import UserError
from cifar10.system import machine
from cifar10.system.machine import Threads
from tests.helpers import messages, programs

CONVOLUTION = tf.nn.conv2d
CONV2, POOL2 = [
    [found for found in OPERATIONS if found.name == name] for name in ('conv2', 'pool2')
]
HAS_BFLOAT16 = comparisons.can_compute('bfloat16', '/cpu:0')  # TensorFlow 1.15 has not
needs_bfloat16 = pytest.mark.skipif(not HAS_BFLOAT16, reason='no convolutions in bfloat16')


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
    assert machine_check.make_plans(128, Threads(), 0) == [
        Plan([['/cpu:0']], threads, 128, numbers) for threads, numbers in expected
    ]
    assert machine_check.make_plans(128, Threads(inter_op=2), 0)[0].num_sub_batches == [4, 2, 1]


@pytest.mark.parametrize(
    'num_gpus, groups', [(1, [['/gpu:0']]), (2, [['/gpu:0'], ['/gpu:1'], ['/gpu:0', '/gpu:1']])]
)
def test_each_gpu_is_checked_alone_and_all_at_once(num_gpus, groups):
    *_, plan = machine_check.make_plans(64, Threads(), num_gpus)
    assert (plan.device_groups, plan.batch_size, plan.num_sub_batches) == (groups, 64, [1])


def _wrong_gradient(is_wrong):
    """Return model.conv2d, with a wrong gradient of the weights where `is_wrong(x)` is true."""

    def conv2d(x, weights, name=None):
        if is_wrong(x):
            weights = 2 * weights - tf.stop_gradient(weights)
        return CONVOLUTION(x, weights, [1, 1, 1, 1], 'SAME', name=name)

    return conv2d


def _run(monkeypatch, plans, operations=CONV2):
    """Run the check of some operations in this process."""
    monkeypatch.setattr(comparisons, 'OPERATIONS', operations)
    monkeypatch.setattr(step_comparisons, 'compare_steps', lambda plan: [])
    monkeypatch.setattr(processes, 'call_in_new_process', lambda function, *args: function(*args))
    machine_check.run(plans)


def test_a_wrong_kernel_for_one_size_is_found(monkeypatch, capsys):
    plan = Plan([['/cpu:0']], Threads(1, 2), 16, [2, 1])
    _run(monkeypatch, [plan])
    out = capsys.readouterr().out
    count = 6 if HAS_BFLOAT16 else 3
    assert out.endswith(f'\nThis machine computes right: all {count} results agree with NumPy\n')
    monkeypatch.setattr(model, 'conv2d', _wrong_gradient(lambda x: int(x.shape[0]) == 8))
    with messages.raises(f'^{count // 3} of {count} results are WRONG .* TF_ENABLE_ONEDNN_OPTS=0 '):
        _run(monkeypatch, [plan])
    out = capsys.readouterr().out
    assert (
        'WRONG: conv2, gradient of weights, float32, /cpu:0, images: 8, 16; relative error 1.0e+00 with 8 (limit 0.0001)\n'
    ) in out
    assert out.count('WRONG') == count // 3 and out.count('right: ') == count - count // 3


@needs_bfloat16
def test_a_kernel_that_is_wrong_in_bfloat16_only(monkeypatch, capsys):
    monkeypatch.setattr(model, 'conv2d', _wrong_gradient(lambda x: x.dtype == tf.bfloat16))
    with messages.raises('^1 of 6 results are WRONG .*: train with `compute_dtype`=float32, and '):
        _run(monkeypatch, [Plan([['/cpu:0']], Threads(1, 2), 8, [1])])


def test_a_device_that_is_wrong_beside_another_one(monkeypatch, capsys):
    """CPU devices stand for two GPUs."""
    monkeypatch.setattr(model, 'conv2d', _wrong_gradient(lambda x: x.device.endswith(':1')))
    with pytest.raises(UserError):
        _run(monkeypatch, [Plan([['/cpu:0'], ['/cpu:0', '/cpu:1']], Threads(1, 2), 8, [1])])
    out = capsys.readouterr().out
    assert 'right: conv2, gradient of weights, float32, /cpu:0, images: 8; ' in out
    assert 'WRONG: conv2, gradient of weights, float32, /cpu:0, /cpu:1, images: 8; ' in out


def _wrong_results_of_steps(num_sub_batches, devices=('/cpu:0',)):
    plan = Plan([list(devices)], Threads(1, 2), 16, num_sub_batches)
    return [found.name for found in step_comparisons.compare_steps(plan) if not found.is_right]


def test_a_wrong_gradient_in_a_step(monkeypatch):
    """With one of the numbers of sub-batches, on two devices."""
    assert _wrong_results_of_steps([1], ['/cpu:0', '/cpu:1']) == []
    # Sub-batches of 8 images.
    monkeypatch.setattr(model, 'conv2d', _wrong_gradient(lambda x: int(x.shape[0]) == 8))
    assert _wrong_results_of_steps([1, 2]) == [
        'step of classic, gradients',
        'step of fast, gradients',
    ]


def test_a_sum_of_the_towers_instead_of_their_mean(monkeypatch):
    average = multi_gpu.average_gradients
    monkeypatch.setattr(
        multi_gpu, 'average_gradients', lambda grads: [(2 * g, v) for g, v in average(grads)]
    )
    assert _wrong_results_of_steps([1]) == ['step of classic, gradients', 'step of fast, gradients']


def test_a_wrong_product_of_muon(monkeypatch):
    """The update is in float32: another type for the convolutions would be no remedy."""
    orthogonalize = muon.orthogonalize
    monkeypatch.setattr(
        muon, 'orthogonalize', lambda *args: [1.1 * x for x in orthogonalize(*args)]
    )
    plan = Plan([['/cpu:0']], Threads(1, 2), 16, [1])
    wrong = [found for found in step_comparisons.compare_steps(plan) if not found.is_right]
    assert {found.type for found in wrong} == {'float32'}
    assert [found.name for found in wrong] == [
        'step of fast, update (muon)',
        'step of fast, moving averages (muon)',
    ]


def test_an_operation_that_fails(monkeypatch, capsys):
    def conv2d(x, weights, name=None):
        with tf.control_dependencies([tf.Assert(x[0, 0, 0, 0] > 1e9, ['no algorithm worked'])]):
            return CONVOLUTION(x, weights, [1, 1, 1, 1], 'SAME', name=name)

    monkeypatch.setattr(model, 'conv2d', conv2d)
    with messages.raises('WRONG on this machine'):
        _run(monkeypatch, [Plan([['/cpu:0']], Threads(1, 2), 8, [1])], CONV2 + POOL2)
    out = capsys.readouterr().out
    assert 'WRONG: conv2 fails (' in out and 'no algorithm worked' in out
    assert 'right: pool2, gradient of input, float32, ' in out


def test_a_device_alone_is_that_device():
    """A session with /cpu:1 alone would compute on /cpu:0."""
    config = Plan(
        [['/cpu:0'], ['/cpu:1'], ['/cpu:0', '/cpu:1']], Threads(1, 2), 8, [1]
    ).session_config
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


@needs_bfloat16
def test_the_gradient_that_was_wrong_on_amx(monkeypatch):
    """A gradient as a convolution with 8 channels, if oneDNN computes that wrongly here."""
    rng = np.random.RandomState(0)
    factors = [rng.normal(size=shape) for shape in ([64, 24, 24, 8], [12, 12, 8, 64])]
    with tf.Session() as session:
        wrong, right = session.run(
            [
                tf.cast(CONVOLUTION(*(tf.cast(x, t) for x in factors), 1, 'VALID'), tf.float32)
                for t in (tf.bfloat16, tf.float32)
            ]
        )
    if np.linalg.norm(wrong - right) < 0.1 * np.linalg.norm(right):
        pytest.skip('this processor and version of oneDNN compute it right')

    @tf.custom_gradient
    def transposed(x, weights):
        def gradient(dy):
            dx = tf.nn.conv2d_backprop_input(tf.shape(x), weights, dy, [1, 1, 1, 1], 'SAME')
            images, filters = tf.transpose(x, [3, 1, 2, 0]), tf.transpose(dy, [1, 2, 0, 3])
            dw = CONVOLUTION(images, filters, 1, [[0, 0], [2, 2], [2, 2], [0, 0]])
            return dx, tf.transpose(dw, [1, 2, 0, 3])

        return CONVOLUTION(x, weights, 1, 'SAME'), gradient

    monkeypatch.setattr(model, 'conv2d', transposed)
    for num_images, is_right in ((7, True), (8, False), (9, True)):
        plan = Plan([['/cpu:0']], Threads(1, 2), num_images, [1])
        found = list(comparisons.compare_operation(CONV2[0], num_images, plan))
        wrong = [(c.name, c.type) for c in found if not c.is_right]
        assert wrong == ([] if is_right else [('conv2, gradient of weights', 'bfloat16')])


def test_nan_is_wrong():
    found = [
        Comparison('x', 'float32', '/cpu:0', n, e, 0.1) for n, e in ((1, 9), (2, math.nan), (3, 0))
    ]
    assert machine_check.summarize(found).startswith('WRONG: x, float32, /cpu:0, images: 1, 2, 3; ')
    assert machine_check.summarize(found[2:]).startswith('right: ')


@pytest.mark.parametrize(
    'wrong, remedy',
    [
        (['bfloat16 /gpu:0'], 'train with `compute_dtype`=float32'),
        (['bfloat16 /gpu:1', 'float32 /gpu:0, /gpu:1'], 'train without these GPUs'),
        (['float32 /gpu:1', 'float32 /cpu:0'], 'check again with TF_ENABLE_ONEDNN_OPTS=0'),
    ],
)
def test_remedies(monkeypatch, capsys, wrong, remedy):
    found = [Comparison('x', *line.split(' ', 1), 8, 1.0, 0.1) for line in wrong]
    monkeypatch.setattr(processes, 'call_in_new_process', lambda *unused: found)
    with messages.raises(f'^{len(wrong)} of {len(wrong)} results are WRONG .*: {remedy}'):
        machine_check.run([Plan([], Threads(), 8, [1])])


@pytest.mark.slow
def test_the_script():
    flags = ['--batch_size=16', '--inter_op_threads=2']  # one plan
    lines = programs.succeed('cifar10_benchmark', 'check', *flags).splitlines()
    assert lines[0].startswith('cifar10 ')
    assert lines[1].startswith('Threads: intra-op 1, inter-op 2; oneDNN: ')
    assert len(lines) == (44 if HAS_BFLOAT16 else 31)
    assert all(line.startswith('right: ') for line in lines[2:-1])
    assert lines[-1].startswith('This machine computes right: ')
