"""CPU quota of a container, in an imitation of /sys/fs/cgroup on a computer of 64 cores."""

import os

import pytest

from cifar10.system import machine


@pytest.mark.parametrize(
    'files, expected',
    [
        ({'cpu.max': '150000 100000'}, 2),  # version 2 of control groups
        ({'cpu.max': 'max 100000'}, 64),
        ({'cpu/cpu.cfs_quota_us': '500000', 'cpu/cpu.cfs_period_us': '100000'}, 5),  # version 1
        ({'cpu/cpu.cfs_quota_us': '-1', 'cpu/cpu.cfs_period_us': '100000'}, 64),
        ({}, 64),  # as on macOS
    ],
)
def test_the_quota_limits_the_cores(monkeypatch, tmp_path, files, expected):
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content + '\n')
    monkeypatch.setattr(machine, '_CGROUP', str(tmp_path))
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: set(range(64)), raising=False)
    assert machine.num_cores() == expected
