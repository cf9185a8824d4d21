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
from cifar10.training import Job

FORMULATIONS = pytest.mark.parametrize('formulation', ['ours', 'reference'])


def _job(data_dir=''):
    return Job(
        dataset.read(data_dir), dataclasses.replace(CLASSIC, batch_size=8), ['/cpu:0', '/cpu:1']
    )


@FORMULATIONS
def test_input_metrics(data_dir, formulation):
    metrics = measurements.input_metrics(formulation, _job(data_dir), StepCounts(1, 2))
    assert len(metrics) == 5 and all(value > 0 for value in metrics.values())
    assert 100 < metrics['peak memory, MB'] < 100000


@FORMULATIONS
def test_step_metrics(formulation, monkeypatch):
    """Two towers make two steps in three seconds. The baseline has the threads of TensorFlow."""
    threads, configure = [], machine.session_config
    monkeypatch.setattr(
        machine,
        'session_config',
        lambda devices, chosen: threads.append(chosen) or configure(devices, chosen),
    )
    times = iter([10, 13])
    monkeypatch.setattr(measurements.time, 'perf_counter', lambda: next(times))
    job = _job()
    metrics = measurements.step_metrics(formulation, job, StepCounts(1, 2))
    assert metrics == {'ms per step': 1500, 'examples/sec': 2 * 8 / 1.5}
    assert threads == [job.threads if formulation == 'ours' else None]


@FORMULATIONS
def test_profile_metrics(formulation, monkeypatch):
    """Means of the traced steps. OURS has no LRNGrad: it reformulates the normalisation."""
    traced, make = [], tf.RunMetadata
    monkeypatch.setattr(tf, 'RunMetadata', lambda: traced.append(make()) or traced[-1])
    metrics, trace = measurements.profile_metrics(formulation, _job(), StepCounts(1, 2))
    total = metrics.pop('sum of all operations')
    assert total == pytest.approx(sum(metrics.values())) and len(traced) == 2
    nodes = [
        node for step in traced for dev in step.step_stats.dev_stats for node in dev.node_stats
    ]
    microseconds = sum(node.op_end_rel_micros - node.op_start_rel_micros for node in nodes)
    assert total == pytest.approx(microseconds / 1e3 / 2)
    for i in range(2):
        assert any(name.startswith(f'tower_{i}/') and 'Conv2D)' in name for name in metrics)
    names = ' '.join(
        event['name'] for event in json.loads(trace)['traceEvents'] if event['ph'] == 'X'
    )
    for found in (' '.join(metrics), names):
        assert 'Conv2DBackpropFilter' in found
        assert ('LRNGrad' in found) == (formulation == 'reference')


# name, positions per example, inputs and outputs of each, products: conv1 has no gradient of the
# images
LAYERS = [
    ('conv1', 24 * 24, 5 * 5 * 3, 64, 2),
    ('conv2', 12 * 12, 5 * 5 * 64, 64, 3),
    ('local3', 1, 6 * 6 * 64, 384, 3),
    ('local4', 1, 384, 192, 3),
    ('softmax_linear', 1, 192, 10, 3),
]


def test_operations_of_each_layer():
    """A product takes a multiplication and an addition per weight and position."""
    products = measurements.layer_flops(6)
    assert list(products.items()) == [
        (layer, count * [2 * 6 * positions * inputs * outputs])
        for layer, positions, inputs, outputs, count in LAYERS
    ]
    assert measurements.step_flops(6) == sum(map(sum, products.values()))
    last = measurements.layer_flops(6, 300)['softmax_linear']
    assert last == [30 * operations for operations in products['softmax_linear']]


def test_matrix_product_has_a_rate(monkeypatch):
    """Median of 1, 4 and 2 seconds; the first product (100 seconds) does not count."""
    times = iter([0, 100, 200, 201, 300, 304, 400, 402])
    monkeypatch.setattr(measurements.time, 'perf_counter', lambda: next(times))
    assert measurements.matmul_flops_per_sec('/cpu:0', size=64, num_repeats=3) == 2 * 64**3 / 2


def test_the_matrix_product_leaves_memory_of_the_gpu(monkeypatch):
    """Another program may compute on the GPU at the same time."""
    configs, session = [], tf.Session
    monkeypatch.setattr(
        tf, 'Session', lambda config: configs.append(config) or session(config=config)
    )
    measurements.matmul_flops_per_sec('/gpu:0', size=8, num_repeats=1)
    assert [config.gpu_options.allow_growth for config in configs] == [True]
