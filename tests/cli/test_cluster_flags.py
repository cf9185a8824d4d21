"""Cluster and strategy of the flags and TF_CONFIG; no test starts a server."""

import json

from absl import flags
import pytest
import tensorflow.compat.v1 as tf

from cifar10.cli import cluster_flags, training_flags
from cifar10.data import preparation, synthetic
from cifar10.distributed.cluster import Cluster, Strategy, Task
from cifar10.errors import UserError
from tests.helpers import programs

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


def test_a_target_in_a_cluster():
    with pytest.raises(UserError, match='^--target_precision does not work in a cluster, '):
        _parsed([*HOSTS, *TASK, '--target_precision=0.5'], cluster_flags.check)


def test_flags_alone():
    assert _given(*HOSTS + TASK) == (CLUSTER, Task('worker', 1))


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


def test_an_evaluator_needs_no_index():
    assert _given(*HOSTS, '--job_name=evaluator') == (CLUSTER, Task('evaluator', 0))


@pytest.mark.parametrize(
    'words, name',
    [(HOSTS + TASK[1:], 'job_name'), (HOSTS + TASK[:1], 'task_index'), (HOSTS, 'job_name')],
)
def test_a_flag_that_is_missing(words, name):
    with pytest.raises(
        UserError, match=f'^--{name} is missing: give --worker_hosts, .*, or set TF_CONFIG'
    ):
        _given(*words)


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
        (WITHOUT_SERVERS, ['--mode=allreduce', '--deterministic'], Strategy('allreduce', 2)),
    ],
)
def test_strategies(cluster, words, strategy):
    assert _strategy(cluster, *words) == strategy


@pytest.mark.parametrize(
    'name, mode',
    [
        ('replicas_to_aggregate', 'sync'),
        ('fetch_steps', 'async'),
        ('push_steps', 'async'),
        ('average_period', 'average'),
    ],
)
def test_numbers_without_effect(name, mode):
    assert getattr(_strategy(CLUSTER, f'--mode={mode}', f'--{name}=2'), name) == 2
    with pytest.raises(UserError) as error:
        _strategy(WITHOUT_SERVERS, f'--{name}=2')
    assert str(error.value) == (
        f'--{name} has no effect with --mode=allreduce: leave it out, or give --mode={mode}'
    )


def test_too_many_backup_workers():
    with pytest.raises(UserError) as error:
        _strategy(CLUSTER, '--replicas_to_aggregate=3')
    assert str(error.value) == (
        '--replicas_to_aggregate=3 is more than the 2 workers: give at most their number'
    )


@pytest.mark.parametrize('cluster', [CLUSTER, WITHOUT_SERVERS])
def test_the_command_of_a_task(cluster):
    """The trainer reads the Cluster and the Task back. Each flag of the launcher would differ."""
    own = ['--max_steps=5', '--fresh']
    command = cluster_flags.TrainerCommand(['python', 'trainer.py'], own)
    for task in cluster.ps_tasks + cluster.worker_tasks:
        for has_begun, others in [(False, own), (True, ['--max_steps=5', '--nofresh'])]:
            words = command(cluster, task, has_begun)
            assert words[:2] == ['python', 'trainer.py'] and words[-2:] == others
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


@pytest.mark.parametrize('name', ['ps_hosts', 'worker_hosts', 'job_name', 'task_index'])
def test_a_flag_of_the_launcher(name):
    for flag in (f'--{name}', f'-{name}=x', f'--{name}=a:1,b:2'):
        with pytest.raises(UserError, match=f'^{flag} is set by the launcher, for each task: '):
            cluster_flags.TrainerCommand([], ['--max_steps=5', flag])
    cluster_flags.TrainerCommand([], [f'--{name}s=1', f'--no{name}', name])


MISTAKES = [  # flags after HOSTS and TASK, exit status, complaint
    (['--worker_hosts=b:2,a:1'], 1, 'The address a:1 is given 2 times: '),
    (['--mode=allreduce'], 1, '--mode=allreduce has no parameter servers: '),
    (['--ps_hosts=', '--mode=average'], 1, '--mode=average needs parameter servers: '),
    (['--mode=async', '--average_period=2'], 1, '--average_period has no effect with --mode=async'),
    (
        ['--deterministic', '--seed=1', '--mode=async'],
        1,
        '--deterministic does not work with --mode=async: ',
    ),
    (['--deterministic', '--seed=1'], 1, '--deterministic does not work with --mode=sync: '),
    (['--momentum=0.5'], 1, '--momentum has no effect with '),
    (['--job_name=chief'], 2, 'flag --job_name=chief: '),
    (['worker'], 2, "the arguments must be flags only, not 'worker'"),
]


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Runs the trainer without a server; returns its status and its line; it writes no file."""

    def fail(*unused, **unused_too):
        raise AssertionError('too late for a complaint')

    for module, name in [
        (tf.train, 'Server'),
        (preparation, 'maybe_download_and_extract'),
        (synthetic, 'maybe_write'),
    ]:
        monkeypatch.setattr(module, name, fail)

    def call(*words):
        status, out, err = programs.call(
            'cifar10_distributed_train',
            f'--train_dir={tmp_path / "run"}',
            f'--data_dir={tmp_path / "data"}',
            *words,
        )
        assert out == '' and list(tmp_path.iterdir()) == []
        (line,) = err.splitlines()
        return status, line

    return call


@pytest.mark.parametrize('words, status, complaint', MISTAKES)
def test_mistakes(program, words, status, complaint):
    found, line = program(*HOSTS + TASK + words)
    assert found == status and line.startswith('cifar10_distributed_train.py: error: ' + complaint)


def test_a_mistake_in_tf_config(program, monkeypatch):
    monkeypatch.setenv('TF_CONFIG', '{"cluster": {"worker": ["a:1"]}}')
    status, line = program('--task_index=0')
    assert status == 1 and "error: TF_CONFIG is malformed ('task' is missing): write " in line
