"""Formulas for clusters, compared with manual calculations and measurements."""

import numpy as np
import pytest

from cifar10.benchmark import cluster_estimate
from cifar10.benchmark.cluster_estimate import ALLREDUCE, ASYNC, AVERAGE, LOCAL, SYNC

P = 4 * 1068298
COPY = 0.0252 / (
    4 * P
)  # sync takes 25.2 ms more than one process, for 4 P copied at sender and receiver


def test_variables_are_balanced_over_servers():
    """local3/weights (83 %) stays on one server."""
    assert cluster_estimate.server_bytes() == [P]
    assert cluster_estimate.server_bytes(1, 300) == [P + 4 * 290 * 193]
    bytes_per_server = cluster_estimate.server_bytes(2)
    assert (
        sum(bytes_per_server) == P
        and 4 * 2304 * 384 < max(bytes_per_server) < 1.01 * 4 * 2304 * 384
    )


@pytest.mark.parametrize(
    'mode, bytes_per_server, expected',
    [
        (LOCAL, [5, 3], (0, 0)),
        (SYNC, [8], (8, 4 * 8)),
        (SYNC, [5, 3], (8, 4 * 5)),
        (ASYNC, [5, 3], (8, 5)),
        (AVERAGE, [5, 3], (2 * 8 / 10, 4 * 2 * 5 / 10)),
        (ALLREDUCE, [5, 3], (2 * 3 / 4 * 8, 0)),
    ],
)
def test_traffic(mode, bytes_per_server, expected):
    assert cluster_estimate.traffic(mode, 4, bytes_per_server) == pytest.approx(expected)


def test_slowest_of_normal_values():
    """Exact values for 1 to 3 (David and Nagaraja), random draws for 50."""
    found = [cluster_estimate.expected_maximum(n) for n in (1, 2, 3)]
    assert found == pytest.approx([0, np.pi**-0.5, 1.5 * np.pi**-0.5], abs=1e-5)
    draws = np.random.default_rng(0).standard_normal([20000, 50]).max(1)
    assert cluster_estimate.expected_maximum(50) == pytest.approx(draws.mean(), abs=0.01)


def _seconds(mode, num_workers, bytes_per_server, gigabits_per_sec=10, compute_seconds=0.002):
    return cluster_estimate.seconds_per_batch(
        mode, num_workers, bytes_per_server, gigabits_per_sec, compute_seconds
    )


def test_seconds_of_synchronous_modes(monkeypatch):
    monkeypatch.setattr(cluster_estimate, 'JITTER', 0)
    byte, latency = 0.8e-9, 250e-6
    # 16 cores copy 8 messages at once, 32 in two turns.
    for num_workers, turns in ((8, 1), (32, 2)):
        one_way = latency + num_workers * P * byte + (1 + turns) * P * COPY
        assert _seconds(SYNC, num_workers, [P]) == pytest.approx(0.002 + 2 * one_way)
    cut = latency + P * byte + 2 * P / 8 * COPY  # the worker's card is the limit
    assert _seconds(SYNC, 4, [P / 8] * 8) == pytest.approx(0.002 + 2 * cut)
    copies = latency + 8 * 2 * P * byte + 2 * 2 * P * COPY
    assert _seconds(AVERAGE, 8, [P]) == pytest.approx(0.002 + 2 * copies / 10)
    ring = 14 * (latency + P / 8 * (byte + 2 * COPY))
    assert _seconds(ALLREDUCE, 8, [P]) == pytest.approx(0.002 + ring)
    assert _seconds(ALLREDUCE, 8, [P], 100) == pytest.approx(0.002 + ring - 14 * P / 8 * 0.9 * byte)


def test_asynchronous_workers_meet_a_limit():
    byte = 0.8e-9
    cycle = 0.002 + 2 * (250e-6 + P * byte + 2 * P * COPY)
    assert _seconds(ASYNC, 2, [P]) == pytest.approx(cycle)
    assert _seconds(ASYNC, 128, [P]) == pytest.approx(128 * P * byte)  # the card
    assert _seconds(ASYNC, 128, [P], 100) == pytest.approx(128 * P * 2 * COPY / 16)  # the cores


def test_synchronous_workers_wait_for_the_slowest():
    for mode, jitter in ((SYNC, 0.03), (ALLREDUCE, 0.03), (AVERAGE, 0.03 / 10**0.5)):
        more = _seconds(mode, 8, [P], compute_seconds=1) - _seconds(mode, 8, [P], compute_seconds=0)
        assert more == pytest.approx(1 + jitter * cluster_estimate.expected_maximum(8)), mode


def test_two_measured_times_give_the_other_eight():
    """Within 4 %: see docs/distributed.md."""
    compute_seconds, copy_seconds_per_byte = cluster_estimate.fit(P)
    assert (compute_seconds, copy_seconds_per_byte) == pytest.approx((0.0574, COPY))
    for mode, times in cluster_estimate.MEASURED_MS.items():
        found = [
            1e3
            * cluster_estimate.shared_cores_seconds(
                mode, n, P, compute_seconds, copy_seconds_per_byte
            )
            for n in (2, 4)
        ]
        exact = mode in (LOCAL, SYNC)
        assert found[0] == pytest.approx(times[0], rel=1e-6 if exact else 0.04), mode
        assert found[1] == pytest.approx(times[1], rel=0.04), mode
