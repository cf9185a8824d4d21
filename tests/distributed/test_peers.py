"""Whether other tasks can be reached and answer: against plain sockets."""
import contextlib
import socket
import subprocess
import sys
import threading

import pytest

from cifar10.distributed import peers
from cifar10.distributed.cluster import Cluster
from tests.helpers import programs


@contextlib.contextmanager
def _listening(family=socket.AF_INET, host='127.0.0.1'):
    """Yields the port of a socket that takes connections into its queue, as that of a stopped process does, and never answers."""
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen(16)
        yield listener.getsockname()[1]


@contextlib.contextmanager
def _closed():
    """Yields a port at which nobody listens, and which nobody else gets meanwhile."""
    with socket.socket() as bound:
        bound.bind(('127.0.0.1', 0))
        yield bound.getsockname()[1]


def _unreachable(*addresses):
    cluster = Cluster((), addresses)
    return peers.unreachable(cluster, cluster.workers)


def test_somebody_listens():
    with _listening() as port:
        assert _unreachable('127.0.0.1:%d' % port, 'localhost:%d' % port) == []


def test_ipv6():
    if not socket.has_ipv6:
        pytest.skip('no IPv6 here')
    with contextlib.suppress(OSError), _listening(socket.AF_INET6, '::1') as port:
        assert _unreachable('[::1]:%d' % port) == []


def test_nobody_listens():
    with _closed() as port:
        assert _unreachable('127.0.0.1:%d' % port) == ['worker 0 (127.0.0.1:%d: Connection refused)' % port]


def test_an_unknown_host():
    text, = _unreachable('no-such-host.invalid:2222')
    assert text.startswith('worker 0 (no-such-host.invalid:2222: ') and 'Errno' not in text and len(text) > 45


@pytest.mark.parametrize('address, is_here', [
    ('127.0.0.1:1', True), ('localhost:2222', True), ('192.0.2.1:2222', False), ('no-such-host.invalid:2222', False)])
def test_addresses_of_this_machine(address, is_here):
    """192.0.2.1 is for documentation: no machine has it (RFC 5737)."""
    assert peers.is_here(address) == is_here


def test_no_answer(monkeypatch):
    def ignore(address, timeout):
        assert timeout == peers._CONNECT_SECS
        raise socket.timeout('timed out')
    monkeypatch.setattr(socket, 'create_connection', ignore)
    assert _unreachable('a:1') == ['worker 0 (a:1: no answer)']


def test_only_who_is_asked_for_and_in_order():
    with _listening() as port, _closed() as closed, _closed() as other:
        cluster = Cluster(('127.0.0.1:%d' % closed,), ('127.0.0.1:%d' % port, '127.0.0.1:%d' % other))
        expected = ['ps 0 (127.0.0.1:%d: Connection refused)' % closed, 'worker 1 (127.0.0.1:%d: Connection refused)' % other]
        assert peers.unreachable(cluster, cluster.servers + cluster.workers) == expected
        assert peers.unreachable(cluster, cluster.workers[::-1]) == expected[1:]
        assert peers.unreachable(cluster, cluster.workers[:1]) == peers.unreachable(cluster, []) == []


def test_all_are_asked_at_the_same_time(monkeypatch):
    barrier = threading.Barrier(3, timeout=30)  # which a second one would not reach before the first one has its answer
    monkeypatch.setattr(peers, '_refusal', lambda address: barrier.wait() < 0)
    assert _unreachable('a:1', 'b:1', 'c:1') == []


_ASK = """
import os, sys
import tensorflow.compat.v1 as tf
from cifar10.distributed import peers
from cifar10.distributed.cluster import Cluster, Task

server = tf.train.Server.create_local_server()
peers._ANSWER_SECS = 60
assert peers._silence(server.target[len('grpc://'):], Task(server.server_def.job_name, 0)) is None
peers._ANSWER_SECS = 0.5
cluster = Cluster((), ('a:1', '127.0.0.1:' + sys.argv[1]))
print(peers.unreachable(cluster, cluster.workers[1:]), peers.silent(cluster, cluster.workers[1:]), flush=True)
os._exit(0)
"""


def test_who_does_not_answer():
    """A process that is stopped: the system still takes connections for it. And a server, which answers at once."""
    with _listening() as port:
        asked = subprocess.run([sys.executable, '-c', _ASK, str(port)], cwd=programs.ROOT, timeout=programs.DEADLINE_SECS,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert (asked.returncode, asked.stdout) == (0, "[] ['worker 1 (127.0.0.1:%d: it does not answer)']\n" % port), asked.stderr


def test_a_port_in_use():
    with _listening() as port:
        assert peers.refused_port('127.0.0.1:%d' % port) == 'the port is in use'
    assert peers.refused_port('127.0.0.1:%d' % port) is None
