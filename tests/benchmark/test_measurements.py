"""Metrics of input, step and profile, measured in the process of the test."""

import json
import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10.benchmark import measurements
from cifar10.benchmark.measurements import StepCounts
from cifar10.config import CLASSIC
from cifar10.data import dataset, watch
from cifar10.errors import UserError
from cifar10.training import Job

FORMULATIONS = pytest.mark.parametrize('formulation', ['ours', 'classic'])
INPUT_METRICS = [
    'images/sec',
    'CPU microseconds per image',
    'seconds to build the graph',
    'seconds from the start of the queues to the first batch',
    'peak memory, MB',
]


def _job(data_dir=''):
    return Job(dataset.read(data_dir), CLASSIC._replace(batch_size=8), ['/cpu:0', '/cpu:1'])


@FORMULATIONS
def test_input_metrics(data_dir, formulation):
    metrics = measurements.input_metrics(formulation, _job(data_dir), StepCounts(1, 2))
    assert list(metrics) == INPUT_METRICS
    assert all(value > 0 for value in metrics.values())
    assert 100 < metrics['peak memory, MB'] < 100000


@FORMULATIONS
def test_changed_data(own_data_dir, monkeypatch, formulation):
    paths = dataset.read(own_data_dir).train.paths

    def empty():
        for path in paths:
            os.truncate(path, 0)
        return 0, 0

    monkeypatch.setattr(watch, '_POLL_SECS', 0.05)
    # called before the measured steps
    monkeypatch.setattr(measurements.processes, 'resource_usage', empty)
    with pytest.raises(
        UserError,
        match=f'^{paths[0]} has changed: it had 184380 bytes, now 0: restore the data, ',
    ):
        measurements.input_metrics(formulation, _job(own_data_dir), StepCounts(1, 10**9))


def test_the_baseline_has_the_threads_of_tensorflow():
    ours, classic = [
        measurements._session_config(formulation, _job(), ['/cpu:0'])
        for formulation in ('ours', 'classic')
    ]
    assert ours.HasField('graph_options') and not classic.HasField('graph_options')
    assert (classic.intra_op_parallelism_threads, classic.inter_op_parallelism_threads) == (0, 0)


@FORMULATIONS
def test_step_metrics(formulation, monkeypatch):
    """Two towers make two steps in three seconds."""
    times = iter([10, 13])
    monkeypatch.setattr(measurements.time, 'perf_counter', lambda: next(times))
    metrics = measurements.step_metrics(formulation, _job(), StepCounts(1, 2))
    assert metrics == {'ms per step': 1500, 'images/sec': 2 * 8 / 1.5}


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
        assert ('LRNGrad' in found) == (formulation == 'classic')


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
