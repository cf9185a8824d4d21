"""CPU quotas of the control groups of this process, such as those of its container."""

import os
import pathlib

_CGROUPS = '/sys/fs/cgroup'  # on Linux, as the next file
_OWN_CGROUPS_FILE = '/proc/self/cgroup'


def read():
    """Yield the quotas of the control groups of this process and of their ancestors, in cores.

    A quota is the CPU time per period. Sources of the formats: Linux, Documentation,
    admin-guide/cgroup-v2.rst (one file) and scheduler/sched-bwc.rst (version 1, two files).
    """
    for directory in _directories():
        for names in (['cpu.max'], ['cpu.cfs_quota_us', 'cpu.cfs_period_us']):
            paths = [directory / name for name in names]
            if all(map(os.path.exists, paths)):
                quota, period = ' '.join(path.read_text() for path in paths).split()
                if quota not in ('max', '-1'):
                    yield int(quota) / int(period)


def _directories():
    """Yield the directories of the control groups of this process, and all directories above.

    In a container, the file may have the paths of the host. Then the group has no directory, but
    the root of the hierarchy is above it, and has the quota of the container.
    """
    if not os.path.exists(_OWN_CGROUPS_FILE):
        return
    with open(_OWN_CGROUPS_FILE) as file:
        for line in file.read().splitlines():
            _, controllers, group = line.split(':', 2)
            names = controllers.split(',')
            # Version 2 has one hierarchy, and names no controllers. Version 1 may have a link to
            # the hierarchy for each controller.
            if names == [''] or 'cpu' in names:
                for hierarchy in {controllers, *names}:
                    own = pathlib.Path(f'{_CGROUPS}/{hierarchy}/{group}')
                    yield from [own, *own.parents]
