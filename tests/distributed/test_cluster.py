"""Addresses and tasks, from lists and from TF_CONFIG; the numbers of the modes."""

import dataclasses
import json
import re

import pytest

from cifar10.config import CLASSIC, RunLength
from cifar10.data import dataset
from cifar10.distributed.cluster import Cluster, Strategy, Task, from_tf_config
from cifar10.training import create_job
from tests.helpers import messages

CLUSTER = Cluster(('a:1',), ('b:2', 'c:3'))


def test_tasks():
    chief, other = Task('worker', 0), Task('worker', 1)
    assert CLUSTER.ps_tasks == [Task('ps', 0)] and CLUSTER.worker_tasks == [chief, other]
    assert chief.is_chief and not other.is_chief
    assert CLUSTER.describe(other) == 'worker 1 (c:3)'
    for task in CLUSTER.ps_tasks + CLUSTER.worker_tasks:
        CLUSTER.check(task)


@pytest.mark.parametrize(
    'address',
    ['10.0.0.1:65535', 'my_worker-0.workers.default.svc.:2222', '[2001:db8::8A2e:370:7334]:80'],
)
def test_addresses(address):
    Cluster((), (address,)).check()


@pytest.mark.parametrize(
    'address', ['host', ':2222', 'host:0', 'host:65536', '::1:2222', '[host]:1']
)
def test_what_is_no_address(address):
    complaint = re.escape(
        f'{address!r} is not an address: write host:port, with a port from 1 to 65535'
    )
    for cluster in (Cluster((), ('a:1', address)), Cluster((address,), ('a:1',))):
        with messages.raises(f'^{complaint}$'):
            cluster.check()


@pytest.mark.parametrize(
    'cluster, complaint',
    [
        (Cluster(('a:1', 'a:1'), ('b:1', 'a:1')), 'The address a:1 is given 3 times: each task '),
        (Cluster(('a:1',), ()), 'No worker is given: give --worker_hosts=host:port,'),
    ],
)
def test_a_number_of_addresses(cluster, complaint):
    with messages.raises('^' + complaint):
        cluster.check()


@pytest.mark.parametrize('job, index, count', [('worker', 2, 2), ('ps', 1, 1)])
def test_a_wrong_index(job, index, count):
    with messages.raises(
        f'^There is no {job} {index}: the number of {job} addresses is {count}, and indexes begin'
    ):
        CLUSTER.check(Task(job, index))


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
        # as from a shell template
        (
            _config({'ps': [], 'worker': ['b:2', 'c:3']}, index='1', rpc_layer='grpc'),
            Cluster((), ('b:2', 'c:3')),
            Task('worker', 1),
        ),
        (
            _config({'chief': ['b:2'], 'ps': ['a:1'], 'worker': ['c:3']}, 'worker'),
            CLUSTER,
            Task('worker', 1),
        ),
        (
            _config(
                {'master': ['b:2'], 'ps': ['a:1'], 'worker': ['c:3']}, 'master', environment='cloud'
            ),
            CLUSTER,
            Task('worker', 0),
        ),
    ],
)
def test_tf_config(text, cluster, task):
    assert from_tf_config(text) == (cluster, task)


@pytest.mark.parametrize(
    'text, what',
    [
        ('{"cluster": ', 'line 1 column'),
        ('{"task": {"type": "worker", "index": 0}}', "'cluster'"),
        ('{"cluster": {"worker": ["a:1"]}}', "'task'"),
        (_config({'worker': 5}), 'not iterable'),
        (_config({'chief': ['a:1'], 'worker': ['b:2']}, 'worker', -1), 'there is no worker -1'),
        (_config({'master': ['a:1']}, 'master', 1), 'there is no master 1'),
    ],
)
def test_malformed_tf_config(text, what):
    with messages.raises(rf'^TF_CONFIG is malformed \(.*{what}.*\): write {{"cluster": {{"ps": '):
        from_tf_config(text)


@pytest.mark.parametrize(
    'strategy, examples',
    [
        (Strategy('sync', 4), 4 * 2 * 128),
        (Strategy('sync', 4, replicas_to_aggregate=3), 3 * 2 * 128),
        (Strategy('async', 4, fetch_steps=5, push_steps=3), 3 * 2 * 128),
        (Strategy('average', 4, average_period=5), 4 * 2 * 128),
    ],
)
def test_a_step_of_the_run(strategy, examples):
    """With two towers per worker: examples per global step."""
    job = create_job(
        dataset.WITHOUT_FILES,
        dataclasses.replace(CLASSIC, epochs=2.0),
        ['/cpu:0', '/cpu:1'],
        batches_per_tower=strategy.batches_per_tower,
    )
    assert job.run_length == RunLength(
        examples, 50000, last_step=-(-100000 // examples), batches_per_step=examples // 128
    )
