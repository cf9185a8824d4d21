"""Metrics of input, step and profile, measured in the process of the test."""

import dataclasses
import json

import pytest
import tensorflow.compat.v1 as tf

from cifar10.benchmark import measurements
from cifar10.benchmark.measurements import StepCounts
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.system import machine
from cifar10.training import create_job

FORMULATIONS = pytest.mark.parametrize('formulation', ['ours', 'reference'])


def _job(data_dir=''):
    return create_job(
        dataset.read(data_dir), dataclasses.replace(CLASSIC, batch_size=8), ['/cpu:0', '/cpu:1']
    )


@FORMULATIONS
def test_input_metrics(data_dir, formulation):
    metrics = measurements.input_metrics(formulation, _job(data_dir), StepCounts(1, 2))
    assert len(metrics) == 3 and all(value > 0 for value in metrics.values())


@FORMULATIONS
def test_step_metrics(formulation, monkeypatch):
    """Two towers make two steps in three seconds. The baseline has the threads of TensorFlow."""
    threads, configure = [], machine.session_config
    monkeypatch.setattr(
        machine,
        'session_config',
        lambda devices, chosen: threads.append(chosen) or configure(devices, chosen),
    )
    times = iter([0, 9, 10, 13])  # The warm-up is between the first two.
    monkeypatch.setattr(measurements.time, 'perf_counter', lambda: next(times))
    job = _job()
    metrics = measurements.step_metrics(formulation, job, StepCounts(1, 2))
    assert metrics == {'ms per step': 1500, 'examples/sec': 2 * 8 / 1.5}
    assert threads == [job.resources.threads if formulation == 'ours' else None]


@FORMULATIONS
def test_profile_metrics(formulation):
    """OURS has no LRNGrad: it reformulates the normalization."""
    metrics, trace = measurements.profile_metrics(formulation, _job(), StepCounts(1, 2))
    for i in range(2):
        assert any(name.startswith(f'tower_{i}/') and 'Conv2D)' in name for name in metrics)
    traced = ' '.join(event['name'] for event in json.loads(trace)['traceEvents'])
    for found in (' '.join(metrics), traced):
        assert 'Conv2DBackpropFilter' in found
        assert ('LRNGrad' in found) == (formulation == 'reference')


def test_means_of_the_traced_steps(monkeypatch):
    steps = iter([{'a (Add)': 1, 'sum': 1}, {'a (Add)': 2, 'b (Sub)': 4, 'sum': 6}])
    monkeypatch.setattr(measurements, 'operation_ms', lambda metadata: next(steps))
    metrics, _ = measurements.profile_metrics('ours', _job(), StepCounts(0, 2))
    assert metrics == {'a (Add)': 1.5, 'b (Sub)': 2, 'sum': 3.5}


def test_each_operation_counts_once():
    """The parts of the trace and the names of its nodes are as in TensorFlow with a GPU."""
    metadata = tf.RunMetadata()
    local = '/job:localhost/replica:0/task:0/device:'
    for device, name, label, microseconds in [
        (local + 'CPU:0', 'queue', 'queue = QueueDequeueV2()', 100),
        (local + 'CPU:0', 'x', '[cpu 0.0MB] x = Add(a, b)', 2000),
        (local + 'CPU:1', 'x', 'x = Add(a, b)', 3000),
        (local + 'GPU:0', 'conv1', 'conv1 = Conv2D(x, y)', 10),  # its start
        ('/device:GPU:0/stream:all', 'conv1:Conv2D', 'volta_sgemm', 400),
        ('/device:GPU:0/stream:all', 'conv1:Conv2D', 'another_kernel', 50),
        ('/device:GPU:0/stream:all', 'void a::b<c::d>(e)', 'void a::b<c::d>(e) grid:1', 3),
        ('/device:GPU:0/stream:14', 'conv1:Conv2D', 'volta_sgemm', 400),
        ('/device:GPU:0/memcpy', 'MemcpyH2D', 'MemcpyH2D kind_src:pinned', 7),
        ('/device:GPU:0/memcpy', 'MemcpyH2D', 'MemcpyH2D kind_src:pinned', 8),
        ('/device:GPU:0/stream:15<MemcpyH2D>', 'MemcpyH2D', 'MemcpyH2D kind_src:pinned', 7),
        ('/device:GPU:0/sync', 'cuStreamSynchronize', 'ThreadId 1', 900),
    ]:
        stats = metadata.step_stats.dev_stats.add(device=device)
        stats.node_stats.add(
            node_name=name,
            timeline_label=label,
            op_start_rel_micros=5,
            op_end_rel_micros=5 + microseconds,
        )
    assert measurements.operation_ms(metadata) == {
        'queue (QueueDequeueV2)': 0.1,
        'x (Add)': 5,
        'conv1 (Conv2D)': 0.45,
        'void a::b<c::d>(e)': 0.003,
        'MemcpyH2D': 0.015,
        'sum of all operations': pytest.approx(5.568),
    }


# name, positions per example, inputs and outputs of each, products: conv1 has no gradient of the
# images
LAYERS = [
    ('conv1', 24 * 24, 5 * 5 * 3, 64, 2),
    ('conv2', 12 * 12, 5 * 5 * 64, 64, 3),
    ('local3', 1, 6 * 6 * 64, 384, 3),
    ('local4', 1, 384, 192, 3),
    ('softmax_linear', 1, 192, 10, 3),
]


def test_operations_of_a_step():
    """A product takes a multiplication and an addition per weight and position."""
    assert measurements.step_flops(6) == sum(
        count * 2 * 6 * positions * inputs * outputs
        for _, positions, inputs, outputs, count in LAYERS
    )


@pytest.mark.parametrize('device, num_products', [('/cpu:0', 1), ('/gpu:0', 64)])
def test_matrix_products_have_a_rate(monkeypatch, device, num_products):
    """Median of 1, 4 and 2 seconds; the first run (100 seconds) does not count.

    Another program may compute on the GPU at the same time, so its memory is allocated on demand.
    """
    times = iter([0, 100, 200, 201, 300, 304, 400, 402])
    monkeypatch.setattr(measurements.time, 'perf_counter', lambda: next(times))
    used, session = [], tf.Session
    monkeypatch.setattr(tf, 'Session', lambda config: used.append(config) or session(config=config))
    graph = tf.Graph()
    monkeypatch.setattr(tf, 'Graph', lambda: graph)
    rate = measurements.matmul_flops_per_sec(device, size=64, num_repeats=3)
    assert rate == num_products * 2 * 64**3 / 2
    products = [operation for operation in graph.get_operations() if operation.type == 'MatMul']
    assert len(products) == num_products
    # TensorFlow would compute equal products once, so each one needs the one before.
    assert [product.inputs[0].op for product in products[1:]] == products[:-1]
    assert [config.gpu_options.allow_growth for config in used] == [True]
