"""Processes that lock directories."""

import contextlib
import os
import subprocess
import sys
import threading

import pytest

from cifar10.system import directories
from tests.helpers import programs

needed = pytest.mark.skipif(directories.fcntl is None, reason='this system has no locks')


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
    timer = threading.Timer(programs.DEADLINE_SECS, started.kill)
    timer.start()
    try:
        yield started
    finally:
        timer.cancel()
        started.kill()
        started.communicate()
