"""Processes whose locks behave as on network file systems."""

import contextlib
import os
import stat
import subprocess
import sys

import pytest

from cifar10.system import directories
from tests.helpers import programs

needed = pytest.mark.skipif(directories.fcntl is None, reason='this system has no locks')

# Preambles of a process.
NFS = 'from tests.helpers import locks; locks.be_on_nfs()\n'
USELESS = 'import fcntl; fcntl.flock = lambda *unused: None\n'


def be_on_nfs(monkeypatch=None):
    """Let locks on directories succeed, which NFS keeps local to the machine."""
    fcntl = directories.fcntl
    flock = fcntl.flock

    def flock_on_nfs(file, operation):
        handle = file if isinstance(file, int) else file.fileno()
        is_directory = stat.S_ISDIR(os.fstat(handle).st_mode)
        return None if is_directory else flock(file, operation)

    if monkeypatch:
        monkeypatch.setattr(fcntl, 'flock', flock_on_nfs)
    else:
        fcntl.flock = flock_on_nfs


@contextlib.contextmanager
def process(code, *args, wrapper=()):
    """Yield a Python process that runs `code`, with pipes; kill it at the end."""
    started = subprocess.Popen(
        [*wrapper, sys.executable, '-u', '-c', code, *args],
        env=dict(os.environ, PYTHONPATH=programs.ROOT),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()
