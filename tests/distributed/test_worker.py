"""A worker's first join, and joins after a loss, with mocks of cluster state and context."""

from types import SimpleNamespace
from unittest import mock

import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import dataset
from cifar10.distributed import worker
from cifar10.distributed.cluster import Cluster, Strategy, Timeouts
from cifar10.distributed.cluster_state import ClusterState, ClusterStateVariables
from cifar10.distributed.server import TaskInfo
from cifar10.hooks.outputs import WorkerRun
from cifar10.training import Job
from tests.helpers import messages

CLUSTER = Cluster(('p:1', 'q:1'), ('a:1', 'b:1'))


@pytest.fixture
def make(monkeypatch, data_dir):
    """Return a function make(mode, index) of a Worker with a mock of the cluster state."""
    monkeypatch.setattr(worker.time, 'sleep', lambda secs: None)
    monkeypatch.setattr(worker.server, 'unreachable_tasks', lambda cluster, tasks: [])

    def make(mode='async', index=1):
        context = mock.Mock(cluster=CLUSTER, task=CLUSTER.worker_tasks[index], timeouts=Timeouts())
        context.read_task_infos.side_effect = lambda tasks: {
            task: TaskInfo(CLUSTER.flags_string, str(task), 1) for task in tasks
        }
        made = worker.Worker(context, Strategy(mode, 2), Job(dataset.read(data_dir)))
        made._state_variables = mock.Mock()
        return made

    return make


def _under_way(made, generation=7, **fields):
    """Return the ClusterState of both tasks of an active run."""
    return [ClusterState(made._run_config, generation, **fields) for _ in CLUSTER.ps_tasks]


def test_a_worker_waits_until_all_boards_have_one_generation(make, capsys):
    made = make()
    ready = _under_way(made, step=30)
    made._state_variables.read.side_effect = [
        tf.errors.UnavailableError(None, None, 'starting'),
        [ClusterState(), ClusterState()],
        [ready[0], ClusterState()],
        ready,
    ]
    run = WorkerRun()
    assert made.join(run)
    assert (made.generation, run.first_step, made.initializes_variables) == (7, 30, False)
    assert made._state_variables.set_left.call_args == mock.call(CLUSTER.worker_tasks[1], 0)
    assert capsys.readouterr().out == 'Joining the run at step 30\n'


def test_other_hyperparameters(make):
    made = make()
    made._state_variables.read.return_value = [ClusterState('{"mode": "sync"}', 7)] * 2
    with messages.raises(r'^The run has .* None, but worker 1 \(b:1\) has '):
        made.join(WorkerRun())


@pytest.mark.parametrize(
    'mode, starts_new_run, is_running, initializes',
    [
        ('async', False, True, False),
        ('async', True, True, True),
        ('async', False, False, True),
        ('sync', False, True, True),
    ],
)
def test_what_the_chief_begins(make, mode, starts_new_run, is_running, initializes):
    made = make(mode, 0)
    made._state_variables.read.return_value = _under_way(made, 7 if is_running else 0)
    assert made.join(SimpleNamespace(first_step=20), starts_new_run)
    assert made.initializes_variables == initializes
    assert (
        made._state_variables.write.call_args_list
        == [mock.call(generation=0, step=20)] * initializes
    )
    assert (made.generation > 10**15) == initializes


def test_a_run_that_has_ended(make, capsys):
    made = make()
    made._state_variables.read.return_value = _under_way(made, finished=1)
    assert not made.join(WorkerRun())
    assert made.generation == 0 and made._state_variables.set_left.call_args[0][1] == 1
    assert capsys.readouterr().out == messages.RUN_HAS_ENDED + '\n'


def _restarts(made):
    return made.context.join.call_args[1]['restarts_timer']


def test_the_timer_is_not_started_again_for_ever(make):
    """The timer is restarted only five times without an update."""
    made = make()
    made._state_variables.read.return_value = _under_way(made)
    made._update = mock.Mock(generation=None)
    for expected in [True] * 5 + [False]:
        made.join(WorkerRun())
        assert _restarts(made) == expected
    made.after_run(None, None)
    made.join(WorkerRun())
    assert _restarts(made) and made.context.report_progress.called


@pytest.mark.parametrize('kind, is_raised', [('InternalError', True), ('UnavailableError', False)])
def test_losses_without_an_update(make, capsys, kind, is_raised):
    """The sixth consecutive loss is an error, unless TensorFlow itself waits for the other task."""
    made = make()
    made._state_variables.read.return_value = _under_way(made)
    error = getattr(tf.errors, kind)(None, None, 'reset')
    for _ in range(5):
        made.join(WorkerRun())
        made._handle_lost_task(error)
    made.join(WorkerRun())
    if is_raised:
        with pytest.raises(tf.errors.InternalError):
            made._handle_lost_task(error)
    else:
        made._handle_lost_task(error)
    lost = 'Lost the connection to ps 0 (p:1) or ps 1 (q:1) (reset): joining again'
    assert capsys.readouterr().out.count(lost) == 6 - is_raised


def test_a_server_that_is_back(make, capsys):
    made = make()
    made._read_states()
    made.context.read_task_infos.side_effect = lambda tasks: {
        task: TaskInfo(CLUSTER.flags_string, str(task), 1 + task.index) for task in tasks
    }
    made._handle_lost_task(tf.errors.AbortedError(None, None, 'reset'))
    assert capsys.readouterr().out == 'Lost ps 1 (q:1: restarted): joining again\n'


def test_what_is_no_loss(make):
    with pytest.raises(RuntimeError, match='a bug'):
        make()._handle_lost_task(RuntimeError('a bug'))
    make()._handle_lost_task(RuntimeError('Init operations did not make model ready'))


def test_the_generation_has_changed(make):
    made = make()
    made.generation, made._update = 7, mock.Mock(generation='generation')
    made.after_run(None, SimpleNamespace(results=7))
    with pytest.raises(worker.RunRestarted):
        made.after_run(None, SimpleNamespace(results=8))


def test_hosts_that_cannot_be_reached(make, monkeypatch):
    """Addresses are compared first, and again after a loss. A slow host counts as running."""
    made, read_task_infos = (
        make(),
        mock.Mock(return_value={CLUSTER.ps_tasks[1]: 'it does not answer'}),
    )
    made.context.read_task_infos = read_task_infos
    assert made._read_states() is None and not made._state_variables.read.called
    read_task_infos.return_value = {CLUSTER.ps_tasks[1]: TaskInfo(CLUSTER.flags_string, 'ps 1', 1)}
    assert made._read_states() == made._read_states() == made._state_variables.read.return_value
    assert read_task_infos.call_count == 2
    monkeypatch.setattr(worker.server, 'unreachable_tasks', lambda cluster, tasks: tasks[:1])
    assert made._read_states() is None
    made._read_states()
    assert read_task_infos.call_args_list == [mock.call(CLUSTER.ps_tasks)] * 3


def test_a_session_that_has_lost_a_host_is_not_used_again():
    connect = mock.Mock()
    connect.return_value.run.side_effect = tf.errors.AbortedError(None, None, 'reset')
    state_variables = ClusterStateVariables(CLUSTER.ps_tasks, CLUSTER.worker_tasks, connect)
    for count in (1, 2):
        with pytest.raises(tf.errors.AbortedError):
            state_variables.enqueue_tokens()
        assert connect.call_count == count


def test_the_last_checkpoint_is_awaited_while_the_chief_starts_again(make):
    made = make()
    made.generation = 7
    made._state_variables.read.side_effect = [_under_way(made, 0), _under_way(made, finished=1)]
    made._wait_for_last_checkpoint()
    made._state_variables.read.side_effect = [_under_way(made, 8)]
    with pytest.raises(worker.RunRestarted):
        made._wait_for_last_checkpoint()
