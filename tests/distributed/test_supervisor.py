"""The rounds of the supervisor: who is waited for, who is counted. Arrivals come from a list, and
the clock is a number."""

import queue
from types import SimpleNamespace

import pytest
import tensorflow.compat.v1 as tf

from cifar10.distributed import supervisor
from cifar10.distributed.board import Notice
from cifar10.distributed.cluster import Cluster

CLUSTER = Cluster(('p:1', 'q:1'), ('a:1', 'b:1', 'c:1'))


class _End(Exception):
    """Nothing arrives any more."""


class _Play:
    """A supervisor, and what happens to it.

    Attributes:
      rounds: (workers that were counted, step) of each round.
      notice: what the board says.
      lost: whether a parameter server is gone.
    """

    def __init__(self, monkeypatch):
        self.rounds, self.notice, self.lost, self._now = [], Notice(generation=7), False, 100.0
        monkeypatch.setattr(supervisor, 'time', SimpleNamespace(monotonic=lambda: self._now))
        self._supervisor = supervisor.Supervisor(CLUSTER, self._connect, lambda: self.notice)
        monkeypatch.setattr(self._supervisor, '_receive', lambda: None)
        monkeypatch.setattr(self._supervisor, '_arrivals', self)

    def _connect(self, graph, tasks):
        assert tasks == CLUSTER.servers
        return SimpleNamespace(run=self._run)

    def _run(self, fetch, feed):
        if self.lost:
            raise tf.errors.UnavailableError(None, None, 'gone')
        by_type = {placeholder.dtype: value for placeholder, value in feed.items()}
        self.rounds.append(
            ([int(is_counted) for is_counted in by_type[tf.bool]], by_type[tf.int64])
        )

    def get(self, timeout):
        """The next arrival, (generation, step, worker), or nothing in so many seconds."""
        if not self._happens:
            raise _End
        arrival = self._happens.pop(0)
        if not isinstance(arrival, tuple):
            assert timeout is not None, 'nobody would be left out'
            assert timeout == pytest.approx(arrival)
            self._now += arrival
            raise queue.Empty
        return arrival

    def go_on(self, *happens):
        """Arrivals, or seconds in which there is none and after which somebody is left out; returns
        the rounds."""
        self._happens, self.rounds = list(happens), []
        with pytest.raises(_End):
            self._supervisor.run()
        return self.rounds

    def wait(self, secs):
        """Some time passes."""
        self._now += secs


@pytest.fixture
def play(monkeypatch):
    play = _Play(monkeypatch)
    assert play.go_on(*[(7, -1, i) for i in range(3)]) == []  # they start
    return play


def _all(step, generation=7):
    return [(generation, step, i) for i in (2, 0, 1)]


ALL = [1, 1, 1]


def test_a_round_ends_when_all_have_arrived(play, capsys):
    assert play.go_on(*_all(10)[:2]) == []
    assert play.go_on(*_all(10)[2:] + _all(20)) == [(ALL, 10), (ALL, 20)]
    assert capsys.readouterr().out == ''


def test_who_arrives_twice_counts_once(play):
    assert play.go_on((7, 10, 0), (7, 10, 0), (7, 10, 1)) == []
    assert play.go_on((7, 10, 2)) == [(ALL, 10)]


def test_who_does_not_come_is_left_out_until_it_arrives_again(play, capsys):
    assert play.go_on((7, 10, 0), (7, 10, 1), 30) == [([1, 1, 0], 10)]
    assert (
        capsys.readouterr().out
        == 'Averaging goes on without worker 2 (c:1), who sent nothing for 30 seconds\n'
    )
    assert play.go_on((7, 20, 1), (7, 20, 0)) == [([1, 1, 0], 20)]
    assert play.go_on((7, -1, 2), (7, 30, 0), (7, 30, 1)) == []  # it has been started again
    assert play.go_on((7, 30, 2)) == [(ALL, 30)]


def test_a_worker_that_was_late_is_a_member_again(play):
    """What it sends is older than the average, which it takes: it does not count."""
    assert play.go_on((7, 10, 0), (7, 10, 1), 30, (7, 10, 2)) == [([1, 1, 0], 10)]
    assert play.go_on((7, 20, 0), (7, 20, 1)) == []
    assert play.go_on((7, 20, 2)) == [(ALL, 20)]


def test_two_are_left_out(play, capsys):
    assert play.go_on((7, 10, 1), 30) == [([0, 1, 0], 10)]
    assert 'worker 0 (a:1), worker 2 (c:1), who' in capsys.readouterr().out


@pytest.mark.parametrize('took, first, later', [(1, 30, 10), (6, 30, 12), (100, 200, 200)])
def test_patience_is_three_times_what_the_fastest_takes(play, took, first, later):
    """From the beginning of the round to its end; at least 10 seconds, 30 in the first round, when
    the fastest has arrived."""
    play.wait(took)
    assert play.go_on((7, 10, 0), first) == [([1, 0, 0], 10)]
    assert play.go_on((7, 10, 1), (7, 10, 2)) == []  # late: members again
    play.wait(took)
    assert play.go_on((7, 20, 1), later) == [([0, 1, 0], 20)]


def test_the_chief_begins_anew(play):
    """Nobody is left out any more; who has sent something in the old generation does not count."""
    play.go_on((7, 10, 0), (7, 10, 1), 30)
    play.go_on((7, 20, 0))
    play.notice = Notice(generation=8, step=5)
    assert play.go_on((8, 15, 1), (8, 15, 0)) == []
    # one older arrival, one of the step that all begin with
    assert play.go_on((7, 20, 2), (8, 5, 2)) == []
    assert play.go_on((8, 15, 2)) == [(ALL, 15)]


def test_an_unknown_generation_is_dropped(play):
    assert play.go_on((6, 10, 0), (9, 10, 0), (7, 10, 1), (7, 10, 2)) == []
    assert play.go_on((7, 10, 0)) == [(ALL, 10)]


def test_a_parameter_server_is_gone(play):
    """The chief gives all variables their values when it is back: another generation."""
    play.lost = True
    assert play.go_on(*_all(10)) == []
    play.lost, play.notice = False, Notice(generation=8, step=0)
    assert play.go_on(*_all(10)) == []  # sent before their workers knew
    assert play.go_on(*_all(10, 8)) == [(ALL, 10)]


def test_the_first_arrival_of_all_is_stale(monkeypatch):
    play = _Play(monkeypatch)
    assert play.go_on((6, 10, 0)) == []
    assert play.go_on(*_all(10)) == [(ALL, 10)]
