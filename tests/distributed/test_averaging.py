"""A round of averaging against NumPy, and rounds with simulated arrivals and time."""

import queue
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.distributed import averaging, cluster_state
from cifar10.distributed.cluster import Cluster
from cifar10.distributed.cluster_state import ClusterState
from tests.helpers import tasks_here


def test_a_round():
    """The buffers of other workers have no effect, not even NaN."""
    cluster, rng = tasks_here.cluster(2, 3), np.random.RandomState(0)
    mask, step = tf.placeholder(tf.bool, [3]), tf.placeholder(tf.int64, [])
    made = averaging.average_op(cluster, mask, step)
    averages = [averaging.average(ps_task) for ps_task in cluster.ps_tasks]
    queue = cluster_state.token_queue(cluster.ps_tasks[0], cluster.worker_tasks[2])
    counted, expected = [1, 0, 1], []
    with tasks_here.Session() as session:
        for i, ps_task in enumerate(cluster.ps_tasks):
            sent = rng.randn(3, 4 + i).astype(np.float32)
            sent[1] = np.nan
            for worker, value in zip(cluster.worker_tasks, sent):
                session.run(averaging.buffer(ps_task, worker).assign(value))
            expected.append((sent[0] + sent[2]) / 2)
        session.run(made, {mask: counted, step: 10})
        for average, value in zip(session.run(averages), expected):
            np.testing.assert_allclose(average, value, rtol=1e-6)
        assert session.run(queue.size()) == 1


CLUSTER = Cluster(('p:1', 'q:1'), ('a:1', 'b:1', 'c:1'))


class _End(Exception):
    """End of the arrivals."""


class _Play:
    """A weight averager with simulated arrivals and time.

    Attributes:
      rounds: (mask of averaged workers, step) of each round.
      state: the ClusterState.
      lost: True if a parameter server is lost.
    """

    def __init__(self, monkeypatch):
        self.rounds, self.state, self.lost, self._now = [], ClusterState(generation=7), False, 100.0
        monkeypatch.setattr(averaging, 'time', SimpleNamespace(monotonic=lambda: self._now))
        self._averager = averaging.WeightAverager(
            CLUSTER, self._connect, lambda: self.state, max_timeout=60
        )
        monkeypatch.setattr(self._averager, '_receive', lambda: None)
        monkeypatch.setattr(self._averager, '_arrivals', self)

    def _connect(self, graph, tasks):
        assert tasks == CLUSTER.ps_tasks
        return SimpleNamespace(run=self._run)

    def _run(self, fetch, feed):
        if self.lost:
            raise tf.errors.UnavailableError(None, None, 'gone')
        by_type = {placeholder.dtype: value for placeholder, value in feed.items()}
        self.rounds.append(([int(mask) for mask in by_type[tf.bool]], by_type[tf.int64]))

    def get(self, timeout):
        """Return the next arrival, (generation, step, worker), or raise queue.Empty."""
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
        """Simulate arrivals, and pauses in seconds after which workers are left out; return the
        rounds."""
        self._happens, self.rounds = list(happens), []
        with pytest.raises(_End):
            self._averager.run()
        return self.rounds

    def wait(self, secs):
        """Advance the clock."""
        self._now += secs


@pytest.fixture
def play(monkeypatch):
    play = _Play(monkeypatch)
    assert play.go_on(*[(7, -1, i) for i in range(3)]) == []  # the workers start
    return play


def _all(step, generation=7):
    return [(generation, step, i) for i in (2, 0, 1)]


ALL = [1, 1, 1]


def test_a_round_ends_when_all_have_arrived(play, capsys):
    assert play.go_on(*_all(10)[:2] * 2) == []  # a second arrival does not count
    assert play.go_on(*_all(10)[2:] + _all(20)) == [(ALL, 10), (ALL, 20)]
    assert capsys.readouterr().out == ''


def test_who_does_not_come_is_left_out_until_it_arrives_again(play, capsys):
    assert play.go_on((7, 10, 0), (7, 10, 1), 30) == [([1, 1, 0], 10)]
    assert 'without worker 2 (c:1): no weights for 30 s' in capsys.readouterr().out
    assert play.go_on((7, 20, 1), (7, 20, 0)) == [([1, 1, 0], 20)]
    assert play.go_on((7, -1, 2), (7, 30, 0), (7, 30, 1)) == []  # worker 2 was restarted
    assert play.go_on((7, 30, 2)) == [(ALL, 30)]


@pytest.mark.parametrize('took, first, later', [(1, 30, 10), (20, 40, 40), (50, 60, 60)])
def test_patience_is_three_times_what_the_fastest_takes(play, took, first, later):
    """Twice the time of the fastest worker; at least 10 seconds, 30 in the first round.

    The waiting workers end at their own limit. So a round must end before it.
    """
    play.wait(took)
    assert play.go_on((7, 10, 0), first) == [([1, 0, 0], 10)]
    assert play.go_on((7, 10, 1), (7, 10, 2)) == []  # late: active again
    play.wait(took)
    assert play.go_on((7, 20, 1), later) == [([0, 1, 0], 20)]


def test_the_chief_begins_anew(play):
    """All workers are active again; arrivals of the old generation do not count."""
    play.go_on((7, 10, 0), (7, 10, 1), 30)
    play.go_on((7, 20, 0))
    play.state = ClusterState(generation=8, step=5)
    assert play.go_on((8, 15, 1), (8, 15, 0)) == []
    # an arrival of the old generation, and one of the first step
    assert play.go_on((7, 20, 2), (8, 5, 2)) == []
    assert play.go_on((8, 15, 2)) == [(ALL, 15)]


def test_a_parameter_server_is_gone(play):
    """After its restart, the chief reinitializes the variables: another generation."""
    play.lost = True
    assert play.go_on(*_all(10)) == []
    play.lost, play.state = False, ClusterState(generation=8, step=0)
    assert play.go_on(*_all(10)) == []  # of the old generation
    assert play.go_on(*_all(10, 8)) == [(ALL, 10)]
