"""From flags and TF_CONFIG to a cluster and a strategy; no case starts a server."""

import json

from absl import flags
import pytest
import tensorflow.compat.v1 as tf

from cifar10.cli import cluster_flags, job_flags
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
    """Whatever the tests' own environment says."""
    monkeypatch.delenv('TF_CONFIG', raising=False)


def _parsed(words, function, *args):
    """Calls a function while the flags have been parsed."""
    with programs.own_flags():
        job_flags.define()
        cluster_flags.define()
        flags.FLAGS(['a script'] + list(words))
        return function(*args)


def _given(*words):
    return _parsed(words, cluster_flags.given_cluster)


def test_flags_alone(capsys):
    assert _given(*HOSTS + TASK) == (CLUSTER, Task('worker', 1))
    _parsed(HOSTS + TASK, cluster_flags.check)
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize(
    'words', [[], HOSTS, TASK, HOSTS + TASK, ['--task_index=1', '--worker_hosts=b:2, c:3']]
)
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
            (CLUSTER._replace(ps=('d:4', 'e:5')), Task('worker', 1)),
            ['ps_hosts (a:1)'],
        ),
        (['--ps_hosts='], (CLUSTER._replace(ps=()), Task('worker', 1)), ['ps_hosts (a:1)']),
        (['--task_index=0'], (CLUSTER, Task('worker', 0)), ['task_index (1)']),
        (
            ['--ps_hosts=d:4', '--worker_hosts=e:5,f:6', '--job_name=ps', '--task_index=0'],
            (Cluster(('d:4',), ('e:5', 'f:6')), Task('ps', 0)),
            ['ps_hosts (a:1)', 'worker_hosts (b:2,c:3)', 'job_name (worker)', 'task_index (1)'],
        ),
    ],
)
def test_flags_win(monkeypatch, capsys, words, expected, told):
    monkeypatch.setenv('TF_CONFIG', TF_CONFIG)
    assert _given(*words) == expected
    assert capsys.readouterr().out == ''
    _parsed(words, cluster_flags.check)
    assert capsys.readouterr().out.splitlines() == [
        'TF_CONFIG gives another --%s: the flag wins' % flag for flag in told
    ]


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
        UserError, match='^--%s is missing: say with .* which task of which cluster this is' % name
    ):
        _given(*words)


def _strategy(cluster, *words):
    return _parsed(words, cluster_flags.given_strategy, cluster)


WITHOUT_SERVERS = CLUSTER._replace(ps=())


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
        (CLUSTER, ['--mode=average', '--deterministic'], Strategy('average', 2)),
    ],
)
def test_strategies(cluster, words, strategy):
    assert _strategy(cluster, *words) == strategy


def test_timeouts():
    assert _parsed([], cluster_flags.given_timeouts) == Timeouts() == (300, 120)
    words = ['--connect_timeout_secs=7', '--stall_timeout_secs=8']
    assert _parsed(words, cluster_flags.given_timeouts) == Timeouts(connect=7, stall=8)


NO_EFFECT = '--%s has no effect with --mode=%s: leave it out, or give --mode=%s'
CHANCE = '--deterministic cannot be with --mode=async or with --replicas_to_aggregate: which gradients come first is left to chance'
MISTAKES = (
    [  # flags beside HOSTS and TASK, the complaint
        (
            ['--ps_hosts=', '--worker_hosts='],
            'No worker is given: name the workers with --worker_hosts=host:port,host:port or in TF_CONFIG',
        ),
        (
            ['--worker_hosts=b:2,c'],
            "'c' is not an address: write host:port, with a port from 1 to 65535",
        ),
        (
            ['--worker_hosts=b:2,,c:3'],
            "'' is not an address: write host:port, with a port from 1 to 65535",
        ),
        (
            ['--worker_hosts=b:2,a:1'],
            'The address a:1 is given 2 times: each task needs a port of its own',
        ),
        (
            ['--task_index=2'],
            'There is no worker 2: --worker_hosts has 2 addresses, and indexes count from 0',
        ),
        (
            ['--job_name=ps'],
            'There is no ps 1: --ps_hosts has 1 addresses, and indexes count from 0',
        ),
        (
            ['--mode=allreduce'],
            '--mode=allreduce has no parameter servers: leave out --ps_hosts, or give another --mode',
        ),
    ]
    + [
        (
            ['--ps_hosts=', '--mode=average'],
            '--mode=average needs a parameter server: give --ps_hosts=host:port, or --mode=allreduce',
        ),
        (
            ['--mode=async', '--average_period=2'],
            NO_EFFECT % ('average_period', 'async', 'average'),
        ),
    ]
    + [
        (['--ps_hosts=', '--push_steps=2'], NO_EFFECT % ('push_steps', 'allreduce', 'async')),
        (
            ['--replicas_to_aggregate=3'],
            '--replicas_to_aggregate=3 is more than the 2 workers: give at most their number',
        ),
        (['--deterministic', '--seed=1', '--mode=async'], CHANCE),
        (['--deterministic', '--seed=1', '--replicas_to_aggregate=1'], CHANCE),
    ]
)
IN_THE_COMMAND_LINE = [
    (['--mode=ring'], '--mode'),
    (['--job_name=chief'], '--job_name'),
    (['--task_index=-1'], '--task_index'),
    (['--fetch_steps=0'], '--fetch_steps'),
    (['--push_steps=0'], '--push_steps'),
    (['--average_period=0'], '--average_period'),
    (['--replicas_to_aggregate=-1'], '--replicas_to_aggregate'),
    (['--connect_timeout_secs=0'], '--connect_timeout_secs'),
    (['--stall_timeout_secs=0'], '--stall_timeout_secs'),
    (['worker'], 'worker'),
]


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Runs the program with flags and without a server; returns its status and its one line, after
    which nothing is written."""

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
            '--train_dir=%s' % (tmp_path / 'run'),
            '--data_dir=%s' % (tmp_path / 'data'),
            *words,
        )
        assert out == '' and list(tmp_path.iterdir()) == []
        (line,) = err.splitlines()
        return status, line

    return call


@pytest.mark.parametrize('words, complaint', MISTAKES)
def test_mistakes(program, words, complaint):
    assert program(*HOSTS + TASK + words) == (
        1,
        'cifar10_distributed_train.py: error: ' + complaint,
    )


@pytest.mark.parametrize('words, culprit', IN_THE_COMMAND_LINE)
def test_mistakes_in_the_command_line(program, words, culprit):
    status, line = program(*HOSTS + TASK + words)
    assert (
        status == 2 and line.startswith('cifar10_distributed_train.py: error: ') and culprit in line
    )


def test_nothing_is_given(program):
    assert program() == (
        1,
        'cifar10_distributed_train.py: error: --job_name is missing: say with --worker_hosts, --ps_hosts, --job_name and '
        '--task_index which task of which cluster this is, or set TF_CONFIG',
    )


def test_a_mistake_in_tf_config(program, monkeypatch):
    monkeypatch.setenv('TF_CONFIG', '{"cluster": {"worker": ["a:1"]}}')
    status, line = program('--task_index=0')
    assert status == 1
    assert line.startswith(
        "cifar10_distributed_train.py: error: TF_CONFIG is malformed ('task' is missing): write "
    )


def test_a_mistake_in_the_recipe_comes_before_the_server(program):
    assert program(*HOSTS + TASK + ['--momentum=0.5']) == (
        1,
        'cifar10_distributed_train.py: error: --momentum has no effect with --optimizer=gradient_descent: leave it out, or give '
        '--optimizer=momentum or muon',
    )
