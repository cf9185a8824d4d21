"""Costs from measured times: with times that known costs gave."""

import pytest

from cifar10.measure import calibration, scaling
from cifar10.measure.scaling import Costs
from cifar10.measure.traffic import ALLREDUCE, ASYNC, AVERAGE, LOCAL, SYNC, Machines, Scheme

SCHEME, MACHINES = (
    Scheme(SYNC, [3.2e6, 0.8e6], batch_size=64),
    Machines(1, cores=2, one_machine=True),
)
COSTS = Costs(compute=2e-2, jitter=0.05, message=2e-4, copy=1e-9, add=5e-10, apply=1e-9)


def _times(costs, counts):
    return {
        mode: {
            n: 1e3
            * scaling.speed(
                SCHEME._replace(mode=mode), MACHINES._replace(num_workers=n), costs
            ).seconds
            for n in ns
        }
        for mode, ns in counts.items()
    }


def test_ratios():
    """Predicted over measured: 1 where the measured time is the predicted one, 2 where it is half
    of it."""
    measured = _times(COSTS, {SYNC: [1, 2], ALLREDUCE: [2]})
    measured[SYNC][2] /= 2
    assert calibration.ratios(SCHEME, MACHINES, COSTS, measured) == {
        SYNC: {1: pytest.approx(1), 2: pytest.approx(2)},
        ALLREDUCE: {2: pytest.approx(1)},
    }


@pytest.mark.slow
def test_fit_finds_the_costs_and_predicts_other_times():
    measured = _times(COSTS, {LOCAL: [1, 2], SYNC: [2]})
    start = COSTS._replace(compute=5e-3, copy=1e-8)
    fitted = calibration.fit(SCHEME, MACHINES, start, measured, ['compute', 'copy'])
    assert fitted == pytest.approx(COSTS, rel=0.02)
    others = calibration.ratios(
        SCHEME,
        MACHINES,
        fitted,
        _times(COSTS, {SYNC: [1, 4], ASYNC: [2], ALLREDUCE: [2], AVERAGE: [2]}),
    )
    assert [ratio for row in others.values() for ratio in row.values()] == pytest.approx(
        [1] * 5, rel=0.02
    )
