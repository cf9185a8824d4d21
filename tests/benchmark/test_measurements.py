"""Metrics of input and step, measured in the process of the test."""

import dataclasses

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
