"""Cluster and strategy of the flags and TF_CONFIG."""

import json

from absl import flags
import pytest

from cifar10.cli import cluster_flags, training_flags
from cifar10.distributed.cluster import Cluster, Strategy, Task
from tests.helpers import messages, programs

HOSTS = ['--ps_hosts=a:1', '--worker_hosts=b:2,c:3']
CLUSTER = Cluster(('a:1',), ('b:2', 'c:3'))
TASK = ['--job_name=worker', '--task_index=1']
TF_CONFIG = json.dumps(
    {'cluster': {'ps': ['a:1'], 'worker': ['b:2', 'c:3']}, 'task': {'type': 'worker', 'index': 1}}
)


@pytest.fixture(autouse=True)
def without_tf_config(monkeypatch):
    """The tests set their own TF_CONFIG."""
    monkeypatch.delenv('TF_CONFIG', raising=False)


def _parsed(words, function, *args):
    """Calls a function with parsed flags."""
    with programs.own_flags():
        training_flags.define()
        cluster_flags.define()
        flags.FLAGS(['a script'] + list(words))
        return function(*args)


def _given(*words):
    return _parsed(words, cluster_flags.cluster_from_flags)


def test_flags_alone():
    assert _given(*HOSTS, *TASK) == (CLUSTER, Task('worker', 1))


@pytest.mark.parametrize(
    'words, expected',
    [
        ([], (CLUSTER, Task('worker', 1))),
        (['--worker_hosts=b:2, c:3'], (CLUSTER, Task('worker', 1))),
        (['--ps_hosts='], (CLUSTER._replace(ps_hosts=()), Task('worker', 1))),
        (['--task_index=0'], (CLUSTER, Task('worker', 0))),
        (
            ['--ps_hosts=d:4', '--worker_hosts=e:5,f:6', '--job_name=ps', '--task_index=0'],
            (Cluster(('d:4',), ('e:5', 'f:6')), Task('ps', 0)),
        ),
    ],
)
def test_flags_override_tf_config(monkeypatch, words, expected):
    monkeypatch.setenv('TF_CONFIG', TF_CONFIG)
    assert _given(*words) == expected


def _strategy(cluster, *words):
    return _parsed(words, cluster_flags.strategy_from_flags, cluster)


WITHOUT_SERVERS = CLUSTER._replace(ps_hosts=())


@pytest.mark.parametrize(
    'cluster, words, strategy',
    [
        (CLUSTER, [], Strategy('sync', 2)),
        (WITHOUT_SERVERS, [], Strategy('allreduce', 2)),
        (
            CLUSTER,
            ['--mode=async', '--fetch_steps=3', '--push_steps=4'],
            Strategy('async', 2, fetch_steps=3, push_steps=4),
        ),
        (
            CLUSTER,
            ['--mode=average', '--average_period=7'],
            Strategy('average', 2, average_period=7),
        ),
        (CLUSTER, ['--replicas_to_aggregate=1'], Strategy('sync', 2, replicas_to_aggregate=1)),
        (WITHOUT_SERVERS, ['--mode=allreduce', '--deterministic'], Strategy('allreduce', 2)),
    ],
)
def test_strategies(cluster, words, strategy):
    assert _strategy(cluster, *words) == strategy


@pytest.mark.parametrize(
    'words, complaint',
    [
        (HOSTS + TASK[1:], '--job_name is missing: give --worker_hosts, '),
        (HOSTS + TASK[:1], '--task_index is missing: give --worker_hosts, '),
        ([*HOSTS, *TASK, '--worker_hosts=b:2,a:1'], 'The address a:1 is given 2 times: '),
        ([*HOSTS, *TASK, '--mode=allreduce'], '--mode=allreduce has no parameter servers: '),
        (
            [*HOSTS, *TASK, '--ps_hosts=', '--mode=average'],
            '--mode=average needs parameter servers: ',
        ),
        (
            [*HOSTS, *TASK, '--replicas_to_aggregate=3'],
            r'.* is more than the number of workers \(2\): ',
        ),
        (
            [*HOSTS, *TASK, '--deterministic', '--seed=1'],
            '--deterministic does not work with --mode=sync: ',
        ),
        ([*HOSTS, *TASK, '--momentum=0.5'], '--momentum has no effect with '),
    ],
)
def test_mistakes(words, complaint):
    with messages.raises('^' + complaint):
        _parsed(words, cluster_flags.check)


@pytest.mark.parametrize('cluster', [CLUSTER, WITHOUT_SERVERS])
def test_the_command_of_a_task(cluster):
    """The trainer reads the Cluster and the Task back. Each flag of the launcher would differ."""
    own = ['--max_steps=5', '--fresh']
    command = cluster_flags.TrainerCommand(['python', 'trainer.py'], own)
    for task in cluster.ps_tasks + cluster.worker_tasks:
        for has_begun, others in [(False, own), (True, ['--max_steps=5', '--nofresh'])]:
            words = command(cluster, task, has_begun)
            assert words[:4] == ['python', 'trainer.py', *others]
            assert _given(*words[2:]) == (cluster, task)


@pytest.mark.parametrize(
    'words, num_gpus, is_async',
    [
        ([], 1, False),
        (['--num_gpus=12', '-num_gpus', '3', '--num_gpus=2x', '--no_num_gpus=4'], 3, False),
        (['--mode=sync', '-mode', 'async'], 1, True),
        (['--mode=async', '--mode=average', '--train_dir=mode=async'], 1, False),
    ],
)
def test_what_the_launcher_must_know(words, num_gpus, is_async):
    command = cluster_flags.TrainerCommand([], words)
    assert (command.num_gpus, command.is_async) == (num_gpus, is_async)
