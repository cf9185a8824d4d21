"""Tasks that join a cluster: with other addresses or data, twice on different hosts, late, or
described by a TF_CONFIG."""

import contextlib
import json
import re
import socket
import threading

import pytest

from cifar10.distributed import launcher
from cifar10.runs import checkpoint_files
from tests.helpers import clusters, events

pytestmark = pytest.mark.slow
LONG = pytest.mark.long
SCRIPT = 'cifar10_distributed_train.py: '
FLAGS = [
    '--batch_size=8',
    '--eval_steps=0',
    '--log_frequency=1',
    '--intra_op_threads=1',
    '--inter_op_threads=1',
    '--input_threads=1',
]


@pytest.fixture
def make_cluster(tmp_path, data_dir):
    """See clusters.maker."""
    return clusters.maker(tmp_path, data_dir, FLAGS)


def _start_elsewhere(cluster, name, port=None):
    """Starts a task of this name on what looks like another host."""
    return cluster.another(name, listens_at=port or launcher.free_ports(1)[0])


def _rejection(cluster, name):
    return (
        SCRIPT
        + 'error: Another process answers at the address of %s (%s), as %s: check --task_index and the addresses, or end '
        'that process' % (name, cluster.addresses[name], name)
    )


@pytest.mark.parametrize(
    'num_ps, old, new',
    [(1, 2, 3), (0, 3, 2)] + [pytest.param(*case, marks=LONG) for case in [(1, 3, 2), (0, 2, 3)]],
)
def test_another_number_of_workers(make_cluster, num_ps, old, new):
    """A host that still runs, after the workers of the old job, has its addresses: all workers of
    the new one end, and say so."""
    cluster = make_cluster(num_ps, 3, '--connect_timeout_secs=60')
    specs = {
        number: '--worker_hosts='
        + ','.join(cluster.addresses['worker %d' % i] for i in range(number))
        for number in (2, 3)
    }
    host, *others = (['ps 0'] if num_ps else []) + ['worker %d' % i for i in range(new)]
    cluster.start(host, flags=[specs[old]])
    # without parameter servers, a host that has lost a worker ends; it has just been started again
    if num_ps:
        workers = ['worker %d' % i for i in range(old)]
        cluster.start(*workers, flags=[specs[old]])
        cluster.wait_for('worker 0', ': step 2, loss')
        for name in workers:
            cluster.kill(name)
    cluster.start(*others, flags=[specs[new]])
    texts = [
        ('--ps_hosts=%s ' % cluster.addresses['ps 0'] if num_ps else '') + specs[number]
        for number in (old, new)
    ]
    for name in others:
        assert cluster.tasks[name].end() == 1
        assert cluster.tasks[name].complaints == [
            SCRIPT + 'error: %s (%s) was started with %s, but %s (%s) with %s: give all tasks '
            'the same'
            % (host, cluster.addresses[host], texts[0], name, cluster.addresses[name], texts[1])
        ]


@pytest.mark.parametrize(
    'mode, name',
    [('sync', 'worker 1')]
    + [
        pytest.param(*case, marks=LONG)
        for case in [
            ('allreduce', 'worker 1'),
            ('async', 'worker 1'),
            ('average', 'worker 0'),
            ('sync', 'worker 0'),
            ('allreduce', 'worker 0'),
            ('sync', 'ps 0'),
        ]
    ],
)
def test_a_second_task_on_another_host(tmp_path, make_cluster, mode, name):
    """It ends with one line, and the run does not notice it."""
    cluster = make_cluster(int(mode != 'allreduce'), 2, '--mode=' + mode, '--max_steps=20', gate=7)
    cluster.start()
    cluster.wait_until_held(7)
    second = _start_elsewhere(cluster, name)
    assert second.end() == 1 and second.complaints == [_rejection(cluster, name)]
    cluster.allow()
    cluster.succeed()
    for task in cluster.names:
        assert (
            'Lost' not in cluster.text(task)
            and 'Joining' not in cluster.text(task)
            and 'Resuming' not in cluster.text(task)
        )
    assert re.search(r'-2[01]$', checkpoint_files.listed_latest(str(tmp_path / 'run')))


def test_a_task_behind_a_service(make_cluster):
    """Its address is not one of its host, but leads to it."""
    cluster = make_cluster(1, 2, '--max_steps=5')
    (port,) = launcher.free_ports(1)
    with socket.socket() as service:
        service.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        service.bind(('127.0.0.1', int(cluster.addresses['worker 1'].split(':')[1])))
        service.listen(16)
        threading.Thread(target=_forward, args=(service, port), daemon=True).start()
        cluster.start('ps 0', 'worker 0')
        cluster.tasks['worker 1'] = _start_elsewhere(cluster, 'worker 1', port)
        cluster.succeed()


def _forward(service, port):
    """Forwards each connection to a port, until the service is closed."""
    with contextlib.suppress(OSError):
        while True:
            client, _ = service.accept()
            with contextlib.suppress(ConnectionRefusedError):
                server = socket.create_connection(('localhost', port))
                for pair in [(client, server), (server, client)]:
                    threading.Thread(target=_copy, args=pair, daemon=True).start()
                continue
            client.close()


def _copy(source, target):
    with contextlib.suppress(OSError), source, target:
        for data in iter(lambda: source.recv(1 << 16), b''):
            target.sendall(data)


@LONG
def test_a_second_task_that_comes_first(make_cluster):
    """It does not join while nobody can reach it at its address, and ends when another process has
    that."""
    cluster = make_cluster(1, 2, '--max_steps=5', gate=2)
    second = _start_elsewhere(cluster, 'worker 1')
    cluster.start('ps 0', 'worker 0')
    second.wait_for(
        r'^Connecting: waiting for worker 1 \(%s: Connection refused\), the address of this task$'
        % cluster.addresses['worker 1']
    )
    cluster.start('worker 1')
    assert second.end() == 1 and second.complaints == [_rejection(cluster, 'worker 1')]
    cluster.allow()
    cluster.succeed()
    assert 'Lost' not in cluster.text('worker 0') + cluster.text('worker 1')


@LONG
def test_a_task_on_the_wrong_host(make_cluster):
    """Nobody has its address."""
    cluster = make_cluster(0, 2, '--connect_timeout_secs=2')
    second = _start_elsewhere(cluster, 'worker 1')
    assert second.end() == 1 and second.complaints == [
        SCRIPT
        + 'Connecting: waited 6 seconds (3 times --connect_timeout_secs) for worker 1 (%s: Connection refused), the address of '
        'this task: check --task_index and the addresses' % cluster.addresses['worker 1']
    ]


def test_tf_config_with_a_chief_and_an_evaluator(tmp_path, make_cluster):
    """In the form of tf.estimator: the chief is worker 0, the only worker is worker 1, and the
    evaluator has no address."""
    cluster = make_cluster(1, 2, '--max_steps=4')
    hosts = {
        'chief': [cluster.addresses['worker 0']],
        'worker': [cluster.addresses['worker 1']],
        'ps': [cluster.addresses['ps 0']],
    }
    flags = [flag for flag in cluster.flags if '_hosts=' not in flag]
    tasks = {
        job: clusters.Task(
            flags, {'TF_CONFIG': json.dumps({'cluster': hosts, 'task': {'type': job, 'index': 0}})}
        )
        for job in ('evaluator', 'ps', 'chief', 'worker')
    }
    assert {job: task.end() for job, task in reversed(list(tasks.items()))} == dict.fromkeys(
        tasks, 0
    )
    assert [task.complaints for task in tasks.values()] == [[]] * 4
    for job, index in [('chief', 0), ('worker', 1)]:
        assert 'this is worker %d (%s)' % (
            index,
            cluster.addresses['worker %d' % index],
        ) in '\n'.join(tasks[job].seen)
    assert 'of 50, step 4)' in '\n'.join(tasks['evaluator'].seen)
    assert events.shown_steps(tmp_path / 'run' / 'eval')['Precision @ 1'] == [4]


@pytest.mark.parametrize(
    'flags', [['--max_steps=6'], pytest.param(['--max_steps=4', '--fresh'], marks=LONG)]
)
def test_an_evaluator_before_the_chief(tmp_path, make_cluster, flags):
    """It does not take an ended run, which the chief resumes or moves aside, for the new one."""
    cluster = make_cluster(0, 1, '--max_steps=4')
    cluster.start()
    assert cluster.tasks['worker 0'].end() == 0
    evaluator = clusters.Task(['--job_name=evaluator'] + cluster.flags + flags)
    evaluator.wait_for(r'^Waiting for worker 0 \(%s\) to train$' % cluster.addresses['worker 0'])
    cluster.start(flags=flags)
    assert (cluster.tasks['worker 0'].end(), evaluator.end()) == (0, 0)
    assert 'of 50, step %s)' % flags[0][-1] in '\n'.join(evaluator.seen)
    assert events.shown_steps(tmp_path / 'run' / 'eval')['Precision @ 1'][-1] == int(flags[0][-1])
