"""CPU quotas of control groups, in an imitation of /sys/fs/cgroup on a computer of 64 cores."""

import os

import pytest

from cifar10.system import machine

QUOTA, PERIOD = 'cpu.cfs_quota_us', 'cpu.cfs_period_us'


@pytest.mark.parametrize(
    'own, files, expected',
    [
        # Version 2.
        ('0::/a/b', {'a/cpu.max': '200000 100000', 'a/b/cpu.max': '900000 100000'}, 2),
        ('0::/a', {'a/cpu.max': 'max 100000', 'other/cpu.max': '100000 100000'}, 64),
        ('0::/of/host', {'cpu.max': '400000 100000'}, 4),  # outside of its namespace
        # Version 1.
        (
            '11:memory:/m\n4:cpu,cpuacct:/a/b\n0::/v2',
            {
                f'cpu,cpuacct/{QUOTA}': '-1',
                f'cpu,cpuacct/{PERIOD}': '100000',
                f'cpu,cpuacct/a/{QUOTA}': '500000',
                f'cpu,cpuacct/a/{PERIOD}': '100000',
                f'cpu,cpuacct/a/b/{QUOTA}': '-1',
                f'cpu,cpuacct/a/b/{PERIOD}': '100000',
            },
            5,
        ),
        # No control groups, as on macOS.
        (None, {}, 64),
    ],
)
def test_the_smallest_quota_counts(monkeypatch, tmp_path, own, files, expected):
    for path, content in files.items():
        (tmp_path / 'cgroup' / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'cgroup' / path).write_text(content + '\n')
    if own:
        (tmp_path / 'own').write_text(own + '\n')
    monkeypatch.setattr(machine, '_CGROUPS', str(tmp_path / 'cgroup'))
    monkeypatch.setattr(machine, '_OWN_CGROUPS_FILE', str(tmp_path / 'own'))
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: set(range(64)), raising=False)
    assert machine.num_cores() == expected
