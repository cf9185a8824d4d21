"""The tables of `cifar10_benchmark.py plan`."""

import re

import pytest

from cifar10.measure import calibration, division, scaling_tables, traffic
from cifar10.measure.traffic import ALLREDUCE, ASYNC, AVERAGE, LOCAL, SYNC, Machines, Scheme
from cifar10.parallelism import layers
from tests.helpers import programs

P = 4 * 1068298
# Milliseconds of an update with batches of 64, by the number of workers: see the table of measured
# updates in docs/distributed.md.
MEASURED = {
    LOCAL: {2: 57.4, 4: 112.6},
    SYNC: {2: 82.6, 4: 165.1},
    ASYNC: {2: 40.2, 4: 42.0},
    ALLREDUCE: {2: 69.4, 4: 153.8},
    AVERAGE: {2: 61.4, 4: 127.5},
}


def _cells(line):
    return [cell.strip() for cell in line.strip('|').split('|')]


def test_card_limit():
    """4 MB each way at 1 GB/s: 8 ms of the card per worker."""
    assert scaling_tables.card_limit([1e6, 3e6], 8, 0.024) == pytest.approx(3)


def test_plan(monkeypatch):
    """Without costs but bytes and operations, the cells have closed formulas."""
    monkeypatch.setattr(scaling_tables, 'WORKERS', (2, 4))
    monkeypatch.setattr(scaling_tables, 'GIGABITS', (10,))
    monkeypatch.setattr(scaling_tables, 'COSTS', scaling_tables.Costs(0, 0, 0, 0, 0, 0))
    monkeypatch.setattr(
        division, 'plan', lambda batch_size, gpu_gflops: 'And %d, %d' % (batch_size, gpu_gflops)
    )
    status, stdout, stderr = programs.call(
        'cifar10_benchmark', 'plan', '--batch_size=64', '--gpu_gflops=5000'
    )
    assert (status, stderr) == (0, '')
    assumptions, _, rates, _, larger, _, limits, _, sent, more = stdout.strip().split('\n\n')
    assert more == 'And 64, 5000'
    compute = layers.total(layers.step_products(64)) / 5e12
    alone = 'computes 5000 GFLOP/s in this network: alone %.0f images/sec, or %.2f ms for 64,'
    assert alone % (64 / compute, compute * 1e3) in assumptions
    header, _, two, four = map(_cells, rates.split('\n'))
    assert header[:3] == ['workers', 'Gb/s', 'sync, 1 server'] and header[-1] == 'allreduce'
    rate, share = map(float, re.match(r'(\d+) \((\S+) %\)$', four[2]).groups())
    seconds = compute + 8 * P / 1.25e9 + 1e-4  # fetch and push, each after a latency
    assert rate == pytest.approx(4 * 64 / seconds, rel=1e-3) and share == pytest.approx(
        100 * compute / seconds, rel=0.06
    )
    assert float(two[-1].split()[0]) == pytest.approx(
        2 * 64 / (compute + P / 1.25e9 + 1e-4), rel=1e-3
    )
    header, _, two, four = map(_cells, larger.split('\n'))
    assert header[2:] == [
        '%s, batch %d' % (name, batch)
        for name in ('sync, 1 server', 'allreduce')
        for batch in (64, 256, 512)
    ]
    assert float(four[4].split()[0]) == pytest.approx(4 * 512 / (seconds + 7 * compute), rel=1e-3)
    assert _cells(limits.split('\n')[2]) == ['10'] + [
        '%.2g' % (times * compute * 1.25e9 / 2 / P) for times in (1, 4, 8)
    ]
    assert _cells(sent.split('\n')[3])[:3] == ['4', '4.3, 17.1', '4.3, 14.2']


@pytest.mark.slow
def test_two_measured_times_give_the_other_eight():
    scheme, machines = (
        Scheme(SYNC, traffic.variable_bytes(), batch_size=64),
        Machines(1, cores=2, one_machine=True, latency=0),
    )
    fitted = calibration.fit(
        scheme,
        machines,
        scaling_tables.COSTS._replace(compute=0.06, copy=1e-9),
        {mode: {2: MEASURED[mode][2]} for mode in (LOCAL, SYNC)},
        ['compute', 'copy'],
    )
    assert fitted.copy == pytest.approx(scaling_tables.COSTS.copy, rel=0.01)
    found = calibration.ratios(scheme, machines, fitted, MEASURED)
    assert all(0.94 < ratio < 1.02 for times in found.values() for ratio in times.values()), found
