"""Connections to other tasks, their answers, and free ports, with plain sockets."""

import contextlib
import socket
import threading
from unittest import mock

import pytest
import tensorflow.compat.v1 as tf

from cifar10.distributed import server
from cifar10.distributed.cluster import CONNECTING, FILLING, JOINING, TRAINING, Cluster, Task
from cifar10.distributed.server import TaskInfo
from cifar10.errors import UserError
from tests.helpers import forks


@contextlib.contextmanager
def _listening(family=socket.AF_INET, host='127.0.0.1'):
    """Yield the port of a socket that accepts connections and never answers, like a stopped
    process."""
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


def _absent(*addresses):
    cluster = Cluster((), addresses)
    task_infos = server.query_all(server.read_task_info, cluster, cluster.worker_tasks)
    return server.describe_awaited(cluster, task_infos)


def test_ipv6():
    if not socket.has_ipv6:
        pytest.skip('no IPv6 here')
    with contextlib.suppress(OSError), _listening(socket.AF_INET6, '::1') as port:
        cluster = Cluster((), (f'[::1]:{port}',))
        assert server.unreachable_tasks(cluster, cluster.worker_tasks) == []


def test_nobody_listens():
    with _closed() as port:
        assert _absent(f'127.0.0.1:{port}') == [f'worker 0 (127.0.0.1:{port}: Connection refused)']


def test_an_unknown_host():
    (text,) = _absent('no-such-host.invalid:2222')
    assert (
        text.startswith('worker 0 (no-such-host.invalid:2222: ')
        and 'Errno' not in text
        and len(text) > 45
    )


@pytest.mark.parametrize(
    'address, is_local_address',
    [
        ('localhost:2222', True),
        ('192.0.2.1:2222', False),
        ('no-such-host.invalid:2222', False),
    ],
)
def test_addresses_of_this_machine(address, is_local_address):
    """192.0.2.1 is for documentation: no machine has it (RFC 5737)."""
    assert server.is_local_address(address) == is_local_address


def test_no_answer(monkeypatch):
    ignore = mock.Mock(side_effect=socket.timeout('timed out'))
    monkeypatch.setattr(socket, 'create_connection', ignore)
    assert _absent('a:1') == ['worker 0 (a:1: no answer)']


def test_only_who_is_asked_for_and_in_order():
    with _listening() as port, _closed() as closed, _closed() as other:
        cluster = Cluster((f'127.0.0.1:{closed}',), (f'127.0.0.1:{port}', f'127.0.0.1:{other}'))
        assert server.unreachable_tasks(cluster, cluster.ps_tasks + cluster.worker_tasks) == [
            Task('ps', 0),
            Task('worker', 1),
        ]
        assert server.unreachable_tasks(cluster, []) == []


def test_all_are_asked_at_the_same_time():
    # Serial queries would never reach the barrier together.
    barrier, cluster = threading.Barrier(2, timeout=30), Cluster((), ('a:1', 'b:1'))
    assert server.query_all(
        lambda address: (address, barrier.wait() < 2), cluster, cluster.worker_tasks
    ) == {Task('worker', 0): ('a:1', True), Task('worker', 1): ('b:1', True)}


_TASK_INFO = TaskInfo('worker_hosts=a:1,b:2', 'worker 0', 7)


@pytest.mark.parametrize(
    'task_infos, expected',
    [
        ([_TASK_INFO._replace(phase=TRAINING)] * 2, []),
        (['no answer', _TASK_INFO], ['worker 0 (a:1: no answer)']),
        (
            [_TASK_INFO, _TASK_INFO._replace(phase=FILLING)],
            ['worker 0 (a:1: connecting)', 'worker 1 (b:2: filling the queue)'],
        ),
        (
            [_TASK_INFO, _TASK_INFO._replace(cluster='worker_hosts=b:2')],
            ['worker 1 (b:2: started with worker_hosts=b:2)'],
        ),
    ],
)
def test_absent_tasks(task_infos, expected):
    """Phases are listed only if all tasks answer."""
    cluster = Cluster((), ('a:1', 'b:2'))
    assert server.describe_awaited(cluster, dict(zip(cluster.worker_tasks, task_infos))) == expected


_ASK = """
import contextlib, socket, sys, threading
import tensorflow.compat.v1 as tf
from cifar10.distributed import server
from cifar10.distributed.cluster import Cluster, Task

running = tf.train.Server.create_local_server()
address, task = running.target[len('grpc://'):], Task(running.server_def.job_name, 0)
print(server.read_task_info(address))
own = server.OwnTaskInfo(running.target, Cluster((), (address,)), task)
for phase in ('connecting', 'training'):
    own.set_phase(phase)
    assert server.read_task_info(address) == own.task_info == ('worker_hosts=' + address, str(task), own.task_info.incarnation, phase)
another = server.OwnTaskInfo(running.target, Cluster((), (address,)), task)
assert another.task_info.incarnation != own.task_info.incarnation
own._session.run(own._assign, {own._text: '["a task info", "of another version"]'})
print(server.read_task_info(address))
own.set_phase('training')

# Old connections hang, as for minutes after a TCP failure; new ones work.
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(16)
is_cut, pairs = [False], []

def forward(source, target, number):
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(1 << 16)
            if is_cut[0] and number == 0 or not data:
                return threading.Event().wait()  # The connection stays open but silent.
            target.sendall(data)

def accept():
    while True:
        pairs.append((listener.accept()[0], socket.create_connection(address.rsplit(':', 1))))
        for source, target in (pairs[-1], pairs[-1][::-1]):
            threading.Thread(target=forward, args=(source, target, len(pairs) - 1), daemon=True).start()

threading.Thread(target=accept, daemon=True).start()
through = '127.0.0.1:%d' % listener.getsockname()[1]
with tf.Graph().as_default() as graph:
    answer = tf.constant(42)
session = tf.Session('grpc://' + through, graph, tf.ConfigProto(operation_timeout_in_ms=300))
assert session.run(answer) == 42 and len(pairs) == 1
is_cut[0] = True
try:
    session.run(answer)
except tf.errors.DeadlineExceededError:
    print(server.read_task_info(through) == own.task_info)
make_config = tf.ConfigProto

def make_quick_config(operation_timeout_in_ms, **options):
    assert operation_timeout_in_ms < 5000
    return make_config(operation_timeout_in_ms=500, **options)

tf.ConfigProto = make_quick_config
print(server.read_task_info('127.0.0.1:' + sys.argv[1]))
"""


def test_cards(tmp_path):
    """A server answers at once, also after a network failure. A stopped process does not, although
    the system accepts connections for it."""
    (tmp_path / 'ask.py').write_text(_ASK)
    with _listening() as port:
        asked = forks.Process([str(tmp_path / 'ask.py'), str(port)])
        stdout, stderr = asked.communicate(forks.DEADLINE_SECS)
    assert (asked.returncode, stdout.splitlines()) == (
        0,
        [
            'it is starting, or it is another program',
            'it runs another version of this package',
            'True',
            'it does not answer',
        ],
    ), stderr


def test_a_port_in_use():
    with _listening() as port:
        cluster = Cluster((), (f'127.0.0.1:{port}',))
        with pytest.raises(UserError) as error:
            server.start_server(cluster, cluster.worker_tasks[0], tf.ConfigProto())
    assert f'{port}) cannot listen: Address already in use: end the process' in str(error.value)


@pytest.mark.parametrize('phases', [[None, CONNECTING, None, JOINING, FILLING], [JOINING, None]])
def test_a_run_that_is_awaited(monkeypatch, phases):
    """It waits until the chief trains, or has joined and ended with nothing to do."""
    task_infos = [TaskInfo('', 'worker 0', 7, phase) if phase else 'no answer' for phase in phases]
    read = mock.Mock(side_effect=task_infos)
    monkeypatch.setattr(server, 'read_task_info', read)
    monkeypatch.setattr(server, '_POLL_SECS', 0)
    server.wait_for_chief(Cluster((), ('a:1',)), 60)
    assert read.call_count == len(task_infos)
