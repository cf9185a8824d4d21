"""The figures of input, step and profile, measured inside the test's process."""

import json
import os

import pytest

from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC
from cifar10.measure import measurements
from cifar10.measure.measurements import Steps
from cifar10.runs import watch
from cifar10.training import Job

FORMULATIONS = pytest.mark.parametrize('formulation', ['ours', 'classic'])
INPUT_FIGURES = [
    'images/sec',
    'CPU microseconds per image',
    'seconds to build the graph',
    'seconds from the start of the queues to the first batch',
    'peak memory, MB',
]


def _job(data_dir=''):
    return Job(dataset.read(data_dir), 300, CLASSIC._replace(batch_size=8), ['/cpu:0', '/cpu:1'])


@FORMULATIONS
def test_input_figures(data_dir, formulation):
    figures = measurements.input_figures(formulation, _job(data_dir), Steps(1, 2))
    assert list(figures) == INPUT_FIGURES
    assert all(value > 0 for value in figures.values())
    assert 100 < figures['peak memory, MB'] < 100000


@FORMULATIONS
def test_data_that_change_meanwhile(own_data_dir, monkeypatch, formulation):
    paths = dataset.read(own_data_dir).train.paths

    def empty():
        for path in paths:
            os.truncate(path, 0)
        return 0, 0

    monkeypatch.setattr(watch, '_SECONDS', 0.05)
    # which is called before the measured steps
    monkeypatch.setattr(measurements.processes, 'usage', empty)
    with pytest.raises(
        UserError,
        match='^%s has changed: it had 184380 bytes, now 0: put the data back as it was, '
        % paths[0],
    ):
        measurements.input_figures(formulation, _job(own_data_dir), Steps(1, 10**9))


def test_the_baseline_has_the_threads_of_tensorflow():
    ours, classic = [
        measurements._config(formulation, _job(), ['/cpu:0']) for formulation in ('ours', 'classic')
    ]
    assert ours.HasField('graph_options') and not classic.HasField('graph_options')
    assert (classic.intra_op_parallelism_threads, classic.inter_op_parallelism_threads) == (0, 0)


def test_unknown_formulation():
    with pytest.raises(ValueError, match='^Unknown formulation: fast$'):
        measurements.step_figures('fast', _job(), Steps(1, 2))


@FORMULATIONS
def test_step_figures(formulation):
    figures = measurements.step_figures(formulation, _job(), Steps(1, 2))
    assert list(figures) == ['ms per step', 'images/sec']
    assert figures['images/sec'] == pytest.approx(2 * 8 / figures['ms per step'] * 1e3)


@FORMULATIONS
def test_profile_figures(formulation):
    """Ours has made its own normalisation for CPUs."""
    figures, trace = measurements.profile_figures(formulation, _job(), Steps(1, 1))
    total = figures.pop('sum of all operations')
    assert total == pytest.approx(sum(figures.values()))
    for i in range(2):
        assert any(name.startswith('tower_%d/' % i) and 'Conv2D)' in name for name in figures)
    classic_ops = [name for name in figures if name.endswith(' (LRNGrad)')]
    assert bool(classic_ops) == (formulation == 'classic')
    events = ' '.join(
        event['name'] for event in json.loads(trace)['traceEvents'] if event['ph'] == 'X'
    )
    assert ('LRNGrad' in events) == (formulation == 'classic') and 'Conv2DBackpropFilter' in events
