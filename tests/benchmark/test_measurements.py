"""Metrics of input and step, measured in the process of the test."""

import dataclasses

import pytest
import tensorflow.compat.v1 as tf

from cifar10.benchmark import measurements
from cifar10.benchmark.measurements import StepCounts
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.network import Network
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
    """Two towers make two steps in three seconds.

    The baseline has the threads of TensorFlow, and LRN, which OURS reformulates.
    """
    job = _job()
    threads, configure = [], machine.session_config
    monkeypatch.setattr(
        machine,
        'session_config',
        lambda devices, chosen: threads.append(chosen) or configure(devices, chosen),
    )
    times = iter([0, 9, 10, 13])  # The warm-up is between the first two.
    monkeypatch.setattr(measurements.time, 'perf_counter', lambda: next(times))
    graph = tf.Graph()
    monkeypatch.setattr(tf, 'Graph', lambda: graph)
    metrics = measurements.step_metrics(formulation, job, StepCounts(1, 2))
    assert metrics == {'ms per step': 1500, 'examples/sec': 2 * 8 / 1.5}
    assert threads == [job.resources.threads if formulation == 'ours' else None]
    types = {operation.type for operation in graph.get_operations()}
    assert ('LRNGrad' in types) == (formulation == 'reference')


# name, positions per example, inputs and outputs of each, products: conv1 has no gradient of the
# images
LAYERS = [
    ('conv1', 24 * 24, 5 * 5 * 3, 64, 2),
    ('conv2', 12 * 12, 5 * 5 * 64, 64, 3),
    ('local3', 1, 6 * 6 * 64, 384, 3),
    ('local4', 1, 384, 192, 3),
    ('softmax_linear', 1, 192, 10, 3),
]


@pytest.mark.parametrize('num_sub_batches', [1, 8])
def test_operations_of_a_step(num_sub_batches):
    """A product takes a multiplication and an addition per weight and position."""
    network = Network(num_sub_batches=num_sub_batches)
    assert measurements.step_flops(network, 6) == sum(
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
