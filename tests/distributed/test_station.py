"""Which limit holds when, and when others may never come: against a watchdog that records what it
is told."""

from types import SimpleNamespace

import pytest

from cifar10.distributed import peers, server, station
from cifar10.distributed.cluster import JOINING, TRAINING, Cluster, Task, Timeouts
from cifar10.distributed.peers import Card


@pytest.fixture
def watched(monkeypatch):
    """Makes servers, cards and watchdogs stand-ins; a list of what the watchdog is told."""
    told = []
    own = SimpleNamespace(card=Card('', 'worker 1', 7), set_phase=lambda phase: None)
    monkeypatch.setattr(server, 'start', lambda *args: 'target')
    monkeypatch.setattr(peers, 'OwnCard', lambda *args: own)
    monkeypatch.setattr(peers, 'read_card', lambda address: own.card)
    monkeypatch.setattr(
        station,
        'Watchdog',
        lambda: SimpleNamespace(
            watch=lambda describe, secs, flag: told.append((secs, flag)),
            progress=lambda: told.append('progress'),
        ),
    )
    return told


def test_the_limits_of_a_task_that_joins_again(watched):
    connect, stall = (7, 'connect_timeout_secs'), (8, 'stall_timeout_secs')
    task = station.Station(
        Cluster(('a:1',), ('b:1', 'c:1')), Task('worker', 1), None, Timeouts(connect=7, stall=8)
    )
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


@pytest.mark.parametrize(
    'task, answering, doubt',
    [
        (Task('worker', 1), Task('ps', 0), 'the chief has never answered'),
        (Task('worker', 1), Task('worker', 0), None),
        (Task('ps', 0), Task('worker', 1), 'the chief has never answered'),
        (Task('ps', 0), Task('worker', 0), None),
        (Task('worker', 0), None, 'no other task has ever answered'),
        (Task('worker', 0), Task('worker', 1), None),
    ],
)
def test_tasks_that_may_never_come(watched, monkeypatch, task, answering, doubt):
    """Without the chief, a run may be over; and nobody doubts any more after joining it."""
    answers = {answering: Card(Cluster(('a:1',), ('b:1', 'c:1')).text, '', 8)}
    monkeypatch.setattr(
        peers,
        'read_cards',
        lambda cluster, tasks: {each: answers.get(each, 'no answer') for each in tasks},
    )
    made = station.Station(Cluster(('a:1',), ('b:1', 'c:1')), task, None, Timeouts())
    found = made._describe()[2]
    assert found == ('%s; the run has ended, or the addresses are wrong' % doubt if doubt else '')
    answers.clear()
    assert made._describe()[2] == found
    made.join(TRAINING)
    assert made._describe()[2] == (found if task.is_chief else '')
