"""Tables of `cifar10_benchmark.py estimate`."""

import functools

import pytest

from cifar10.benchmark import cluster_estimate, estimates, measurements
from cifar10.config import VARIABLE_STRATEGIES
from tests.helpers import programs

P = 4 * 1068298
FC = 4 * (2304 * 384 + 384 + 384 * 192 + 192 + 192 * 10 + 10)  # bytes of the fully connected layers
BATCH = 64 * (24 * 24 * 3 + 1) * 4  # bytes of images and labels


def _cells(table):
    """Return the cells of each row, without the line below the heading."""
    rows = [[cell.strip() for cell in row.strip('|').split('|')] for row in table.split('\n')]
    return rows[:1] + rows[2:]


def test_estimate(monkeypatch):
    monkeypatch.setattr(estimates, 'NUM_WORKERS', (2, 4))
    monkeypatch.setattr(estimates, 'NETWORK_GIGABITS_PER_SEC', (10,))
    monkeypatch.setattr(estimates, 'NUM_GPUS', (2,))
    monkeypatch.setattr(estimates, 'BATCH_SIZES', (16,))
    monkeypatch.setattr(
        estimates,
        'multi_gpu_estimate',
        functools.lru_cache(maxsize=None)(estimates.multi_gpu_estimate),
    )
    status, stdout, stderr = programs.call(
        'cifar10_benchmark', 'estimate', '--batch_size=64', '--gpu_gflops=5000'
    )
    assert (status, stderr) == (0, '')
    parts = stdout.strip().split('\n\n')
    second = measurements.step_flops(64) / 5e12
    alone = '- GPU: 5000 GFLOP/s in this network, %.0f images/sec, %.2f ms per batch of 64,'
    assert alone % (64 / second, second * 1e3) in parts[0]
    checks, rates, cpus, sent, gpus, ratios = [_cells(part) for part in parts if part[0] == '|']
    assert ['sync', '4', '165.1', '1.00'] in checks and len(checks) == 11
    assert rates[0][:3] == ['workers', 'Gb/s', 'sync, 1 server']
    assert rates[0][-2:] == ['sync, batch 512', 'allreduce, batch 512']
    seconds = cluster_estimate.seconds_per_batch('sync', 4, [P], 10, second)
    assert rates[2][:2] == ['4', '10']
    assert rates[2][2] == f'{4 * 64 / seconds:.0f} ({4 * second / seconds:.2g})'
    for table, gflops in ((rates, 5000), (cpus, 316)):
        compute = 8 * second * 5000 / gflops
        rate = 2 * 512 / cluster_estimate.seconds_per_batch('allreduce', 2, [P], 10, compute)
        assert table[1][-1] == f'{rate:.0f} ({rate * second / 64:.2g})'
    assert sent[2][:2] == ['4', '4.3, 17.1'] and sent[2][-1] == '6.4, 0.0'
    assert [row[:3] for row in gpus[1:]] == [
        ['2', towers, variable_strategy]
        for towers in ('2 x 1', '1 x 2')
        for variable_strategy in VARIABLE_STRATEGIES
    ]
    link_bytes, speeds = estimates.multi_gpu_estimate(2, 2, 'spread', 64, second / 64)
    assert gpus[-1][3:] == [f'{link_bytes / 1e6:.1f}'] + [f'{speed:.0f}' for speed in speeds]
    best = [
        max(
            estimates.multi_gpu_estimate(2, devices_per_tower, variable_strategy, 16, second / 64)[
                1
            ][1]
            for variable_strategy in VARIABLE_STRATEGIES
        )
        for devices_per_tower in (2, 1)
    ]
    assert ratios[1][::2] == ['16', f'{best[0] / best[1]:.2f}']


@pytest.mark.parametrize(
    'arguments, link_bytes, update, examples',
    [
        ((2, 1, 'cpu'), 2 * P + BATCH, 0.22e-3 + 2 * 0.23e-3, 128),
        # weights and gradients of three other towers
        ((4, 1, 'first_device'), 6 * P + BATCH, 8 * P / 500e9, 256),
        # local3/weights on one GPU
        ((2, 1, 'spread'), 2 * P + BATCH, 6 * 4 * (4800 + 64 + 884736) / 500e9, 128),
        # activations and images
        ((2, 2, 'first_device'), 2 * (FC + 64 * 2304 * 4) + BATCH - 256, 5 * P / 500e9, 64),
        # without images, which go to the first GPU
        ((2, 2, 'cpu'), 2 * (FC + 64 * 2304 * 4) + 256, 0.22e-3 + 0.23e-3, 64),
    ],
)
def test_estimate_of_several_gpus(arguments, link_bytes, update, examples):
    found, speeds = estimates.multi_gpu_estimate(*arguments, batch_size=64, seconds_per_image=1e-5)
    assert found == link_bytes
    seconds = [64e-5 + link_bytes / link + update for link in (8e9, 25e9, 300e9)]
    assert speeds == pytest.approx([examples / second for second in seconds])
