"""Cluster and strategy of the flags and TF_CONFIG; no test starts a server."""

import json

from absl import flags
import pytest
import tensorflow.compat.v1 as tf

from cifar10.cli import cluster_flags, training_flags
from cifar10.data import download, synthetic
from cifar10.distributed.cluster import Cluster, Strategy, Task, Timeouts
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


def test_flags_alone(capsys):
    assert _given(*HOSTS + TASK) == (CLUSTER, Task('worker', 1))
    _parsed(HOSTS + TASK, cluster_flags.check)
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize('words', [[], HOSTS + TASK, ['--task_index=1', '--worker_hosts=b:2, c:3']])
def test_tf_config_and_flags_that_agree_with_it(monkeypatch, capsys, words):
    monkeypatch.setenv('TF_CONFIG', TF_CONFIG)
    assert _given(*words) == (CLUSTER, Task('worker', 1))
    _parsed(words, cluster_flags.check)
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize(
    'words, expected, told',
    [
        (
            ['--ps_hosts=d:4,e:5'],
            (CLUSTER._replace(ps_hosts=('d:4', 'e:5')), Task('worker', 1)),
            ['ps_hosts overrides TF_CONFIG (a:1)'],
        ),
        (
            ['--ps_hosts='],
            (CLUSTER._replace(ps_hosts=()), Task('worker', 1)),
            ['ps_hosts overrides TF_CONFIG (a:1)'],
        ),
        (
            ['--task_index=0'],
            (CLUSTER, Task('worker', 0)),
            ['task_index overrides TF_CONFIG (1)'],
        ),
        (
            ['--ps_hosts=d:4', '--worker_hosts=e:5,f:6', '--job_name=ps', '--task_index=0'],
            (Cluster(('d:4',), ('e:5', 'f:6')), Task('ps', 0)),
            [
                'ps_hosts overrides TF_CONFIG (a:1)',
                'worker_hosts overrides TF_CONFIG (b:2,c:3)',
                'job_name overrides TF_CONFIG (worker)',
                'task_index overrides TF_CONFIG (1)',
            ],
        ),
    ],
)
def test_flags_win(monkeypatch, capsys, words, expected, told):
    monkeypatch.setenv('TF_CONFIG', TF_CONFIG)
    assert _given(*words) == expected
    assert capsys.readouterr().out == ''
    _parsed(words, cluster_flags.check)
    assert capsys.readouterr().out.splitlines() == [f'--{line}' for line in told]


def test_a_value_that_tf_config_does_not_have(monkeypatch, capsys):
    monkeypatch.setenv(
        'TF_CONFIG',
        '{"cluster": {"worker": ["b:2", "c:3"]}, "task": {"type": "worker", "index": 0}}',
    )
    assert _given('--ps_hosts=a:1') == (CLUSTER, Task('worker', 0))
    _parsed(['--ps_hosts=a:1'], cluster_flags.check)
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize('words', [[], ['--task_index=0']])
def test_an_evaluator_needs_no_index(words):
    words = HOSTS + ['--job_name=evaluator'] + words
    assert _given(*words) == (CLUSTER, Task('evaluator', 0))
    _parsed(words, cluster_flags.check)


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
            ['--mode=sync', '--replicas_to_aggregate=1'],
            Strategy('sync', 2, replicas_to_aggregate=1),
        ),
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
        (
            CLUSTER,
            ['--deterministic', '--replicas_to_aggregate=2'],
            Strategy('sync', 2, replicas_to_aggregate=2),
        ),
    ],
)
def test_strategies(cluster, words, strategy):
    assert _strategy(cluster, *words) == strategy


def test_timeouts():
    assert _parsed([], cluster_flags.timeouts_from_flags) == Timeouts() == (300, 120)
    words = ['--connect_timeout_secs=7', '--stall_timeout_secs=8']
    assert _parsed(words, cluster_flags.timeouts_from_flags) == Timeouts(connect=7, stall=8)


MISTAKES = [  # flags after HOSTS and TASK, complaint
    (['--ps_hosts=', '--worker_hosts='], 'No worker is given: '),
    (['--worker_hosts=b:2,c'], "'c' is not an address: "),
    (['--worker_hosts=b:2,a:1'], 'The address a:1 is given 2 times: '),
    (['--task_index=2'], 'There is no worker 2: --worker_hosts has 2 addresses'),
    (['--job_name=ps'], 'There is no ps 1: --ps_hosts has 1 addresses'),
    (['--mode=allreduce'], '--mode=allreduce has no parameter servers: '),
    (['--ps_hosts=', '--mode=average'], '--mode=average needs parameter servers: '),
    (['--mode=async', '--average_period=2'], '--average_period has no effect with --mode=async: '),
    (['--ps_hosts=', '--push_steps=2'], '--push_steps has no effect with --mode=allreduce: '),
    (['--replicas_to_aggregate=3'], '--replicas_to_aggregate=3 is more than the 2 workers: '),
    (
        ['--deterministic', '--seed=1', '--mode=async'],
        '--mode=async and --replicas_to_aggregate make the order of the gradients random: ',
    ),
    (
        ['--deterministic', '--seed=1', '--replicas_to_aggregate=1'],
        '--mode=async and --replicas_to_aggregate make ',
    ),
    (['--momentum=0.5'], '--momentum has no effect with '),
]
IN_THE_COMMAND_LINE = [
    '--mode=ring',
    '--job_name=chief',
    '--task_index=-1',
    '--fetch_steps=0',
    '--push_steps=0',
    '--average_period=0',
    '--replicas_to_aggregate=-1',
    '--connect_timeout_secs=0',
    '--stall_timeout_secs=0',
    'worker',
]


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Runs the trainer without a server; returns its status and its line; it writes no file."""

    def fail(*unused, **unused_too):
        raise AssertionError('too late for a complaint')

    for module, name in [
        (tf.train, 'Server'),
        (download, 'maybe_download_and_extract'),
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


@pytest.mark.parametrize('words, complaint', MISTAKES)
def test_mistakes(program, words, complaint):
    status, line = program(*HOSTS + TASK + words)
    assert status == 1 and line.startswith('cifar10_distributed_train.py: error: ' + complaint)


@pytest.mark.parametrize('word', IN_THE_COMMAND_LINE)
def test_mistakes_in_the_command_line(program, word):
    status, line = program(*HOSTS + TASK + [word])
    assert status == 2 and word in line


def test_a_mistake_in_tf_config(program, monkeypatch):
    monkeypatch.setenv('TF_CONFIG', '{"cluster": {"worker": ["a:1"]}}')
    status, line = program('--task_index=0')
    assert status == 1
    assert line.startswith(
        "cifar10_distributed_train.py: error: TF_CONFIG is malformed ('task' is missing): write "
    )
