"""Parameter server with a mock of the cluster state."""

from unittest import mock

from cifar10.distributed import parameter_server
from cifar10.distributed.cluster import TRAINING, Cluster, Task
from cifar10.distributed.cluster_state import ClusterState


def test_a_chief_that_is_late_and_begins_anew(monkeypatch, capsys):
    """The server joins each generation, and reports each update."""
    states = [ClusterState(), ClusterState(), ClusterState('{"mode": "sync"}', 7)]
    states.append(states[2]._replace(step=1))
    states.append(states[2]._replace(generation=8))
    states.append(states[4]._replace(step=9, finished=1))
    state_variables = mock.Mock()
    state_variables.read.side_effect = [[state] for state in states[:3] + states[2:]]
    context = mock.Mock(cluster=Cluster(('a:1',), ('b:1',)), task=Task('ps', 0))
    monkeypatch.setattr(parameter_server, 'ClusterStateVariables', lambda *unused: state_variables)
    monkeypatch.setattr(parameter_server.time, 'sleep', lambda secs: None)
    parameter_server.serve(context)
    assert context.mock_calls == [
        mock.call.join(TRAINING),
        mock.call.report_progress(),
        mock.call.join(TRAINING),
        mock.call.watchdog.stop(),
        mock.call.wait_for_workers_to_leave(state_variables),
    ]
    assert capsys.readouterr().out.splitlines() == [
        'ps 0 (a:1) is ready',
        'The run has finished at step 9',
    ]
