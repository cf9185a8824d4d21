"""A worker's joins and its recovery after a loss, with mocks of cluster state and context."""

import itertools
from unittest import mock

import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import dataset, verification
from cifar10.distributed import cluster_state, exchange, worker
from cifar10.distributed.cluster import Cluster, Strategy, Timeouts
from cifar10.distributed.cluster_state import ClusterState
from cifar10.distributed.server import TaskInfo
from cifar10.training import Job
from tests.helpers import messages

CLUSTER = Cluster(('p:1', 'q:1'), ('a:1', 'b:1'))


@pytest.fixture
def make(monkeypatch, data_dir):
    """Return a function that makes a Worker and the mock of its cluster state.

    `incarnations` is called for the incarnation of a parameter server.
    """
    monkeypatch.setattr(worker.time, 'sleep', lambda secs: None)
    monkeypatch.setattr(worker.server, 'unreachable_tasks', lambda cluster, tasks: [])

    def make(index=1, incarnations=lambda: 1):
        context = mock.Mock(cluster=CLUSTER, task=CLUSTER.worker_tasks[index], timeouts=Timeouts())
        context.read_task_infos.side_effect = lambda tasks: {
            task: TaskInfo(CLUSTER.addresses, str(task), incarnations()) for task in tasks
        }
        state = mock.Mock()
        monkeypatch.setattr(cluster_state, 'ClusterStateVariables', lambda *unused: state)
        update = exchange.Update(None, [], None, None)
        monkeypatch.setitem(worker._UPDATES, 'async', lambda *unused: update)
        return worker.Worker(context, Strategy('async', 2), Job(dataset.read(data_dir))), state

    return make


def _under_way(made, generation=7, **fields):
    """Return the ClusterState of both tasks of an active run."""
    checksum = verification.total_checksum(made.job.dataset.train)
    config = cluster_state.run_config(made.job, made.strategy, checksum)
    return [ClusterState(config, generation, **fields) for _ in CLUSTER.ps_tasks]


@pytest.mark.parametrize(
    'starts_new_run, is_running, initializes',
    [(False, True, False), (True, True, True), (False, False, True)],
)
def test_what_the_chief_begins(make, starts_new_run, is_running, initializes):
    """Only --fresh disturbs the others of a run in progress."""
    made, state = make(index=0)
    state.read.return_value = _under_way(made, 7 if is_running else 0, step=30)
    assert made.join(20, starts_new_run)
    assert made.initializes_variables == initializes
    assert made.first_step == (20 if initializes else 30)
    assert state.write.call_args_list == [mock.call(generation=0, step=20)] * initializes
    assert (made.generation != 7) == initializes


@pytest.mark.parametrize(
    'error, attempts',
    [
        (tf.errors.InternalError(None, None, 'reset'), 6),
        # TensorFlow itself waits for the other task
        (tf.errors.UnavailableError(None, None, 'reset'), 8),
    ],
)
def test_losses_without_an_update(make, capsys, error, attempts):
    """The sixth consecutive loss is an error. It does not start the timer again."""
    made, state = make()
    state.read.return_value = _under_way(made)
    made.join()
    tf.train.get_or_create_global_step()
    made.variable_scope()
    made.update([], None, None)
    made.after_run(None, None)  # an update
    tries = []

    def attempt(is_first):
        tries.append(is_first)
        made.join()
        if len(tries) == 8:
            state.read.return_value = _under_way(made, finished=1)
            return
        raise error

    if attempts == 6:
        with pytest.raises(tf.errors.InternalError):
            made.run_with_recovery(attempt)
    else:
        made.run_with_recovery(attempt)
    assert tries == [True] + [False] * (attempts - 1)
    restarts = [call[1]['restarts_timer'] for call in made.context.join.call_args_list]
    assert restarts == [True] * 6 + [False] * (attempts - 5)
    told, lost = (
        capsys.readouterr().out,
        'Lost the connection to ps 0 (p:1) or ps 1 (q:1) (reset): ',
    )
    assert told.count(lost + 'joining again') == (5 if attempts == 6 else 7)
    assert told.count('Joining the run at step 0') == attempts


def test_servers_that_are_back(make, capsys):
    made, state = make(incarnations=itertools.count().__next__)
    state.read.side_effect = [_under_way(made), _under_way(made, finished=1)]
    errors = [tf.errors.AbortedError(None, None, 'reset')]

    def attempt(unused_is_first):
        if made.join():
            raise errors.pop()

    made.run_with_recovery(attempt)
    assert capsys.readouterr().out.splitlines() == [
        'Lost ps 0 (p:1: restarted), ps 1 (q:1: restarted): joining again',
        messages.RUN_HAS_ENDED,
    ]


def test_what_is_no_loss(make):
    """Only the second error is a bug."""
    errors = [RuntimeError('a bug'), RuntimeError('Init operations did not make model ready')]

    def attempt(unused_is_first):
        raise errors.pop()

    with pytest.raises(RuntimeError, match='a bug'):
        make()[0].run_with_recovery(attempt)


def test_the_last_checkpoint_is_awaited_while_the_chief_starts_again(make, capsys):
    made, state = make()
    state.read.side_effect = [
        _under_way(made, step=30),
        _under_way(made, 0),
        _under_way(made, 8),
        _under_way(made, 8, finished=1),
    ]
    made.run_with_recovery(lambda unused_is_first: made.join() and None)
    assert capsys.readouterr().out.splitlines() == [
        'Joining the run at step 30',
        'The chief has restarted the run: joining it',
        messages.RUN_HAS_ENDED,
    ]
