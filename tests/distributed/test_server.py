"""Server, connections, and watchdog, with plain sockets and processes."""

import contextlib
import socket

import pytest

from cifar10.distributed import launcher, server
from cifar10.distributed.cluster import Cluster, Task
from tests.helpers import forks

_SCRIPT = """
import signal, sys, threading
import tensorflow.compat.v1 as tf
from cifar10.distributed import launcher, server
from cifar10.distributed.cluster import Cluster, Task

signal.alarm(60)
ports = ['127.0.0.1:' + port for port in sys.argv[1:]]
cluster, task = Cluster(tuple(ports[:1]), tuple(ports[1:])), Task('ps', 0)
server.POLL_SECS = 0.01
"""


@contextlib.contextmanager
def _listening(family=socket.AF_INET, host='127.0.0.1'):
    """Yield the port of a socket that accepts connections and never answers."""
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen(16)
        yield listener.getsockname()[1]


@contextlib.contextmanager
def _closed():
    """Yield a reserved port without a listener."""
    with socket.socket() as bound:
        bound.bind(('127.0.0.1', 0))
        yield bound.getsockname()[1]


@pytest.fixture
def run(tmp_path):
    """Run source after _SCRIPT in a process; return its status, stdout and stderr."""

    def run(source, *ports):
        (tmp_path / 'script.py').write_text(_SCRIPT + source)
        process = forks.Process([str(tmp_path / 'script.py'), *map(str, ports)])
        stdout, stderr = process.communicate()
        return process.returncode, stdout, stderr

    return run


def test_only_who_is_asked_for_and_in_order():
    with _listening() as port, _closed() as closed, _closed() as other:
        cluster = Cluster((f'127.0.0.1:{closed}',), (f'127.0.0.1:{port}', f'127.0.0.1:{other}'))
        assert server.unreachable_tasks(cluster, cluster.ps_tasks + cluster.worker_tasks) == [
            Task('ps', 0),
            Task('worker', 1),
        ]
        assert server.unreachable_tasks(cluster, []) == []


def test_ipv6():
    with contextlib.suppress(OSError), _listening(socket.AF_INET6, '::1') as port:
        cluster = Cluster((), (f'[::1]:{port}',))
        assert server.unreachable_tasks(cluster, cluster.worker_tasks) == []


def test_waiting(monkeypatch, capsys):
    """The missing tasks are printed when they change."""
    cluster = Cluster(('a:1',), ('b:2', 'c:3'))
    absent = [['a:1', 'c:3'], ['a:1', 'c:3'], ['c:3'], []]
    monkeypatch.setattr(server, '_accepts_connection', lambda address: address not in absent[0])
    monkeypatch.setattr(server.time, 'sleep', lambda secs: absent.pop(0))
    server.wait_for(cluster, cluster.ps_tasks + cluster.worker_tasks)
    assert capsys.readouterr().out == (
        'Waiting for ps 0 (a:1), worker 1 (c:3)\nWaiting for worker 1 (c:3)\n'
    )


def test_a_server_ends_after_the_workers(run):
    """A worker that can be reached is progress, until the chief has ended."""
    source = """
target = server.start(cluster, task, tf.ConfigProto())
with tf.Graph().as_default() as graph:
    queue = server.done_queue(task)
    enqueue, size = queue.enqueue(tf.constant(0, tf.int64)), queue.size()
session = tf.Session(target, graph, server.session_config([task]))
count = [0]

class Watchdog:
    def report_progress(self):
        count[0] += 1
        if count[0] == 5:
            session.run(enqueue)
            threading.Timer(0.2, session.run, [enqueue]).start()

server.serve(target, cluster, task, Watchdog())
print(count[0], session.run(size))
"""
    (port,) = launcher.free_ports(1)
    with _listening() as worker, _closed() as lost:
        status, stdout, stderr = run(source, port, worker, lost)
    assert (status, stdout.splitlines()[1:]) == (0, ['5 2']), stderr


def test_a_server_without_workers(run):
    """The watchdog hears of no progress, and ends the process."""
    source = """
target = server.start(cluster, task, tf.ConfigProto())
server.CONNECT_TIMEOUT_SECS = 0.5
server.serve(target, cluster, task, server.Watchdog(cluster, task, 0.5, lambda: False))
"""
    (port,) = launcher.free_ports(1)
    with _closed() as lost:
        status, _, stderr = run(source, port, lost)
    assert status == 75 and f'no connection to worker 0 (127.0.0.1:{lost}): ' in stderr


CHECK = ', and check --ps_hosts and --worker_hosts, or TF_CONFIG'
PROXY = ', and name the hosts in no_proxy, because http_proxy is set'


@pytest.mark.parametrize(
    'reported, proxy, remedy',
    [('', '', CHECK), ('report_progress', 'x', ''), ('', 'x', CHECK + PROXY)],
)
def test_a_stall(run, reported, proxy, remedy):
    """The process ends although its main thread waits; the line has who cannot be reached."""
    source = f"""
import os
for name in server._PROXIES: os.environ.pop(name, None)
os.environ['http_proxy'] = {proxy!r}
"""
    source += """
server.CONNECT_TIMEOUT_SECS = 0.05
watchdog = server.Watchdog(cluster, task, 0.05, lambda: False)
if %r: watchdog.report_progress()
threading.Event().wait()
"""
    with _listening() as port, _closed() as first, _closed() as lost:
        status, _, stderr = run(source % reported, first, port, lost)
    assert (status, stderr) == (
        75,
        f'script.py: no step for 0.05 seconds; no connection to worker 1 (127.0.0.1:{lost}): start '
        f'this task and the missing ones again{remedy}\n',
    )


def test_the_run_has_ended(run):
    source = """
server.CONNECT_TIMEOUT_SECS = 0.05
server.Watchdog(cluster, task, 0.05, lambda: True)
threading.Event().wait()
"""
    status, _, stderr = run(source, 1, 2)
    assert (status, stderr) == (0, 'script.py: the run has ended, and the other tasks too\n')
