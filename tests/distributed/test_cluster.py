"""Addresses and tasks, from lists and from TF_CONFIG."""

import json

import pytest

from cifar10.distributed.cluster import Cluster, Task, from_tf_config
from cifar10.errors import UserError

CLUSTER = Cluster(('a:1',), ('b:2', 'c:3'))


def _complaint(call, *args):
    """The message of the UserError that a call must give: one line."""
    with pytest.raises(UserError) as error:
        call(*args)
    assert '\n' not in str(error.value)
    return str(error.value)


def test_tasks():
    assert CLUSTER.servers == [Task('ps', 0)] and CLUSTER.workers == [
        Task('worker', 0),
        Task('worker', 1),
    ]
    assert [task.is_chief for task in CLUSTER.servers + CLUSTER.workers] == [False, True, False]
    assert (
        CLUSTER.named(CLUSTER.workers[1]) == 'worker 1 (c:3)'
        and CLUSTER.named(CLUSTER.servers[0]) == 'ps 0 (a:1)'
    )
    assert Task('worker', 12).device == '/job:worker/task:12/cpu:0'
    assert CLUSTER.text == '--ps_hosts=a:1 --worker_hosts=b:2,c:3'
    assert Cluster((), ('b:2',)).text == '--worker_hosts=b:2'


@pytest.mark.parametrize(
    'address',
    [
        'localhost:1',
        '10.0.0.1:65535',
        'worker-0.workers.default.svc:2222',
        '[::1]:2222',
        '[2001:db8::8a2e:370:7334]:80',
        '[::ffff:10.0.0.1]:80',
        'my_host:2222',
    ],
)
def test_addresses(address):
    Cluster((), (address,)).check()


@pytest.mark.parametrize(
    'address',
    [
        '',
        'host',
        'host:',
        ':2222',
        'host:0',
        'host:65536',
        'host:99999',
        'host:222222',
        'host:http',
        'host:-1',
        'host:2222\n',
        ' host:1',
        'ho st:1',
        'grpc://host:1',
        'host:1/path',
        '::1',
        '::1:2222',
        '2001:db8::1:2222',
        '[::1]',
        '[host]:1',
        '[]:1',
        'host:\u0661',
        '.host:1',
        'host..org:1',
        64 * 'x' + ':1',
    ],
)
def test_what_is_no_address(address):
    for cluster in (Cluster((), ('a:1', address)), Cluster((address,), ('a:1',))):
        assert (
            _complaint(cluster.check)
            == '%r is not an address: write host:port, with a port from 1 to 65535' % address
        )


@pytest.mark.parametrize(
    'ps, worker, count',
    [
        ((), ('a:1', 'b:1', 'a:1'), 2),
        (('a:1',), ('b:1', 'a:1'), 2),
        (('a:1', 'a:1'), ('a:1', 'b:1'), 3),
    ],
)
def test_duplicate_addresses(ps, worker, count):
    assert (
        _complaint(Cluster(ps, worker).check)
        == 'The address a:1 is given %d times: each task needs a port of its own' % count
    )


def test_one_host_has_several_ports():
    Cluster(('a:1', 'a:2'), ('a:3', 'b:1')).check()


@pytest.mark.parametrize('ps', [(), ('a:1',)])
def test_without_workers(ps):
    assert _complaint(Cluster(ps, ()).check) == (
        'No worker is given: name the workers with --worker_hosts=host:port,host:port or in TF_CONFIG'
    )


@pytest.mark.parametrize('task', CLUSTER.servers + CLUSTER.workers)
def test_a_task_of_the_cluster(task):
    CLUSTER.check(task)


@pytest.mark.parametrize(
    'job, index, count', [('worker', 2, 2), ('worker', -1, 2), ('ps', 1, 1), ('ps', 2**40, 1)]
)
def test_a_wrong_index(job, index, count):
    assert _complaint(CLUSTER.check, Task(job, index)) == (
        'There is no %s %d: the last index in --%s_hosts is %d' % (job, index, job, count - 1)
    )


def test_no_parameter_server_is_there():
    assert _complaint(Cluster((), ('a:1',)).check, Task('ps', 0)) == (
        'There is no ps 0: --ps_hosts is empty'
    )


def _config(jobs, job='worker', index=0, **further):
    return json.dumps(dict({'cluster': jobs, 'task': {'type': job, 'index': index}}, **further))


@pytest.mark.parametrize(
    'text, cluster, task',
    [
        (
            _config({'ps': ['a:1'], 'worker': ['b:2', 'c:3']}, 'worker', 1),
            CLUSTER,
            Task('worker', 1),
        ),
        (_config({'ps': ['a:1'], 'worker': ['b:2', 'c:3']}, 'ps', 0), CLUSTER, Task('ps', 0)),
        (_config({'worker': ['b:2']}), Cluster((), ('b:2',)), Task('worker', 0)),
        (_config({'ps': [], 'worker': ['b:2']}), Cluster((), ('b:2',)), Task('worker', 0)),
        # as a shell's template gives it
        (_config({'worker': ['b:2']}, index='3'), Cluster((), ('b:2',)), Task('worker', 3)),
        (
            _config({'worker': ['b:2']}, environment='cloud', rpc_layer='grpc'),
            Cluster((), ('b:2',)),
            Task('worker', 0),
        ),
        (
            _config({'chief': ['b:2'], 'ps': ['a:1'], 'worker': ['c:3']}, 'chief'),
            CLUSTER,
            Task('worker', 0),
        ),
        (
            _config({'chief': ['b:2'], 'ps': ['a:1'], 'worker': ['c:3']}, 'worker'),
            CLUSTER,
            Task('worker', 1),
        ),
        (
            _config({'chief': ['b:2'], 'ps': ['a:1'], 'worker': ['c:3']}, 'ps'),
            CLUSTER,
            Task('ps', 0),
        ),
        (_config({'chief': ['b:2']}, 'chief'), Cluster((), ('b:2',)), Task('worker', 0)),
        (
            _config({'chief': ['b:2'], 'worker': ['c:3'], 'evaluator': ['d:4']}, 'evaluator'),
            Cluster((), ('b:2', 'c:3')),
            Task('evaluator', 0),
        ),
        (_config({'worker': ['b:2']}, 'evaluator'), Cluster((), ('b:2',)), Task('evaluator', 0)),
    ],
)
def test_tf_config(text, cluster, task):
    assert from_tf_config(text) == (cluster, task)


@pytest.mark.parametrize(
    'text, what',
    [
        ('', 'not valid JSON'),
        ('worker', 'not valid JSON'),
        ('{"cluster": ', 'not valid JSON'),
        ('[' * 200000, 'not valid JSON'),
        ('{}', "'cluster' is missing"),
        ('[]', 'list'),
        ('null', 'NoneType'),
        ('3', 'int'),
        ('"text"', 'str'),
        ('{"cluster": {"worker": ["a:1"]}}', "'task' is missing"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {}}', "'type' is missing"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}', "'index' is missing"),
        ('{"cluster": {"worker": ["a:1"]}, "task": ["worker", 0]}', 'list'),
        ('{"cluster": {"worker": ["a:1"]}, "task": null}', 'NoneType'),
        (_config({'worker': 'a:1,b:2'}), 'not a list'),
        (_config({'worker': {'0': 'a:1'}}), 'not a list'),
        (_config({'worker': None}), 'not a list'),
        (_config({'worker': [['a:1']]}), 'not a string'),
        (_config({'worker': [1]}), 'not a string'),
        (_config(['worker']), 'list'),
        (_config(None), 'NoneType'),
        (_config({'worker': ['a:1']}, index='first'), 'first'),
        (_config({'worker': ['a:1']}, index=None), "'None'"),
        (_config({'worker': ['a:1']}, index=[0]), '[0]'),
        (_config({'worker': ['a:1']}, index=float('nan')), 'nan'),
        (_config({'worker': ['a:1']}, index=float('inf')), 'inf'),
        (_config({'worker': ['a:1']}, index=0.5), '0.5'),
        (_config({'worker': ['a:1']}, index=True), 'True'),
        (_config({'chief': ['a:1', 'b:2']}, 'chief'), '2 chiefs; there can be one'),
        (_config({'chief': ['a:1'], 'worker': ['b:2']}, 'chief', 1), 'there is no chief 1'),
        (_config({'worker': ['b:2']}, 'chief'), 'there is no chief 0'),
    ],
)
def test_malformed_tf_config(text, what):
    complaint = _complaint(from_tf_config, text)
    assert complaint.startswith('TF_CONFIG is malformed (') and what in complaint
    assert complaint.endswith(
        '): write {"cluster": {"ps": ["host:port"], "worker": ["host:port"]}, "task": '
        '{"type": "worker", "index": 0}}'
    )


@pytest.mark.parametrize(
    'text, job',
    [
        (_config({'worker': ['b:2'], 'two\nlines': []}), 'two\nlines'),
        (_config({'worker': ['b:2']}, 'master'), 'master'),
        (_config({'worker': ['b:2']}, None), None),
        (_config({'worker': ['b:2']}, ['worker']), ['worker']),
    ],
)
def test_an_unknown_job(text, job):
    assert _complaint(from_tf_config, text) == (
        'TF_CONFIG has a job %r: only chief, ps, worker and evaluator are known' % (job,)
    )
