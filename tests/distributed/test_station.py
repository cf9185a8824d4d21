"""Which limit holds when: against a watchdog that records what it is told."""
from types import SimpleNamespace

import pytest

from cifar10.distributed import peers, server, station
from cifar10.distributed.cluster import JOINING, TRAINING, Cluster, Task, Timeouts


@pytest.fixture
def watched(monkeypatch):
    """Makes servers, cards and watchdogs stand-ins; a list of what the watchdog is told."""
    told = []
    own = SimpleNamespace(card='own', set_phase=lambda phase: None)
    monkeypatch.setattr(server, 'start', lambda *args: 'target')
    monkeypatch.setattr(peers, 'OwnCard', lambda *args: own)
    monkeypatch.setattr(peers, 'read_card', lambda address: 'own')
    monkeypatch.setattr(station, 'Watchdog', lambda: SimpleNamespace(
        watch=lambda describe, secs, flag: told.append((secs, flag)), progress=lambda: told.append('progress')))
    return told


def test_the_limits_of_a_task_that_joins_again(watched):
    connect, stall = (7, 'connect_timeout_secs'), (8, 'stall_timeout_secs')
    task = station.Station(Cluster(('a:1',), ('b:1', 'c:1')), Task('worker', 1), None, Timeouts(connect=7, stall=8))
    assert watched == [connect]
    for _ in range(2):
        del watched[:]
        task.join(JOINING)
        task.set_phase(TRAINING)
        assert watched == [connect]
        for _ in ['first', 'second', 'third']:
            task.made_progress()
        assert watched[1:] == [stall] + 3 * ['progress']
    del watched[:]
    task.join(JOINING, restarts_timer=False)
    assert watched == []
