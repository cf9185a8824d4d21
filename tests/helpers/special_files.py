"""Paths that are not regular files, belong to another user, or were left by another process."""

import os
import signal
import socket

import pytest

needs_root = pytest.mark.skipif(
    not hasattr(os, 'getuid') or os.getuid() != 0,
    reason='only root can give a file to another user',
)
# see directories.process_mark
ABANDONED = f'~{socket.gethostname()}~999999999~'  # larger than every process id
ELSEWHERE = f'~{socket.gethostname()}-2~999999999~'
KINDS = ['a directory', 'a FIFO', 'a socket', 'a device']


def make(path, kind):
    """Create a special file; for a device, a link to one."""
    path = str(path)
    if kind == 'a directory':
        os.mkdir(path)
    elif kind == 'a FIFO':
        os.mkfifo(path)
    elif kind == 'a socket':
        _make_socket(path)
    elif kind == 'a device':
        os.symlink(os.devnull, path)
    else:
        raise ValueError(f'Unknown kind: {kind}')


def _make_socket(path):
    before = os.getcwd()
    os.chdir(os.path.dirname(path))  # socket names must be short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.basename(path))
    finally:
        os.chdir(before)


@pytest.fixture(autouse=True)
def deadline(request):
    """End a test that blocks on a FIFO; slow tests have their own deadline."""

    def end(*unused):
        raise AssertionError('the test blocks')

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(0 if request.node.get_closest_marker('slow') else 100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
