"""A parameter server, against a board that is a mock."""

from unittest import mock

from cifar10.distributed import parameter_server
from cifar10.distributed.cluster import TRAINING, Cluster, Task
from cifar10.distributed.cluster_state import Notice


def test_a_chief_that_is_late_and_begins_anew(monkeypatch, capsys):
    """The server joins each of its generations, and notes each update."""
    notices = [Notice(), Notice(), Notice('{"mode": "sync"}', 7)]
    notices.append(notices[2]._replace(step=1))
    notices.append(notices[2]._replace(generation=8))
    notices.append(notices[4]._replace(step=9, finished=1))
    boards = mock.Mock()
    boards.read.side_effect = [[notice] for notice in notices[:3] + notices[2:]]
    station = mock.Mock(cluster=Cluster(('a:1',), ('b:1',)), task=Task('ps', 0))
    monkeypatch.setattr(parameter_server, 'Boards', lambda *unused: boards)
    monkeypatch.setattr(parameter_server.time, 'sleep', lambda secs: None)
    parameter_server.serve(station)
    assert station.mock_calls == [
        mock.call.join(TRAINING),
        mock.call.made_progress(),
        mock.call.join(TRAINING),
        mock.call.watchdog.rest(),
        mock.call.await_departures(boards),
    ]
    assert capsys.readouterr().out.splitlines() == [
        'ps 0 (a:1) is ready',
        'The run has finished at step 9',
    ]
