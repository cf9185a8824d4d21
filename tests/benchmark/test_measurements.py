"""Metrics of input and step, measured in the process of the test."""

import dataclasses

import pytest

from cifar10.benchmark import measurements
from cifar10.benchmark.measurements import StepCounts
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.training import create_job

FORMULATIONS = pytest.mark.parametrize('formulation', ['ours', 'reference'])


def _job(data=dataset.WITHOUT_FILES):
    return create_job(data, dataclasses.replace(CLASSIC, batch_size=8), ['/cpu:0', '/cpu:1'])


@FORMULATIONS
def test_input_metrics(data_dir, formulation):
    metrics = measurements.input_metrics(
        formulation, _job(dataset.read(data_dir)), StepCounts(1, 2)
    )
    assert len(metrics) == 3 and all(value > 0 for value in metrics.values())


@FORMULATIONS
def test_step_metrics(formulation):
    """A step has 2 x 8 examples."""
    metrics = measurements.step_metrics(formulation, _job(), StepCounts(1, 2))
    assert metrics['ms per step'] * metrics['examples/sec'] == pytest.approx(16 * 1000)
