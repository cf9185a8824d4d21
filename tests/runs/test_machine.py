"""Threads and slices by the number of cores."""
import os

import pytest

from cifar10.runs import machine as threads
from cifar10.runs.machine import Threads


def _cpus(count):
    return ['/cpu:%d' % i for i in range(count)]


@pytest.mark.parametrize('cores, devices, batch_size, given, expected', [
    (2, _cpus(1), 128, {}, Threads(1, 0, 2, 4)),
    (2, _cpus(2), 128, {}, Threads(1, 0, 2, 2)),
    (2, _cpus(4), 32, {}, Threads(1, 0, 2, 1)),
    (2, _cpus(3), 128, {}, Threads(1, 0, 2, 1)),
    (8, _cpus(2), 128, {}, Threads(1, 0, 2, 8)),
    (8, _cpus(4), 128, {}, Threads(1, 0, 4, 4)),
    (64, _cpus(1), 128, {}, Threads(0, 0, 2, 16)),  # no slice has fewer than 8 examples: too few slices for the cores
    (2, _cpus(1), 5, {}, Threads(0, 0, 2, 1)),
    (8, _cpus(1), 128, {'inter_op': 2}, Threads(1, 2, 2, 4)),
    (8, _cpus(1), 128, {'intra_op': 4, 'inter_op': 2, 'input_threads': 3}, Threads(4, 2, 3, 4)),
    (8, ['/gpu:0'], 128, {}, Threads(0, 0, 2, 1)),
    (8, ['/gpu:%d' % i for i in range(4)], 128, {}, Threads(0, 0, 4, 1)),
    (1, ['/gpu:0', '/gpu:1'], 128, {}, Threads(0, 0, 1, 1)),
    (8, ['/gpu:0'], 128, {'intra_op': 4, 'inter_op': 2, 'input_threads': 3}, Threads(4, 2, 3, 1))])
def test_choice(monkeypatch, cores, devices, batch_size, given, expected):
    monkeypatch.setattr(threads, 'num_cores', lambda: cores)
    assert threads.choose(devices, batch_size, **given) == expected


@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity'), reason='this system does not bind processes to cores')
def test_only_the_cores_that_the_process_may_use_count():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert threads.num_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert threads.num_cores() == len(allowed)
