"""Resources that are shared over time, against times worked out by hand."""

import numpy as np
import pytest

from cifar10.measure.fluid import UNLIMITED, Gate, Simulation


def _run(simulation, processes):
    """Runs the processes; returns when each of them ended."""
    ends = [None] * len(processes)

    def note(i):
        ends[i] = simulation.now

    for i, process in enumerate(processes):
        simulation.start(process, lambda i=i: note(i))
    while None in ends:
        simulation.advance()
    return ends


def _works(simulation, *works):
    for work in works:
        yield simulation.work(*work)


def test_works_share_equally():
    """10 per second: works of 10 and 30 advance by 5 each until 2 s; then the second one has 20
    left for itself, until 4 s."""
    simulation = Simulation([10])
    assert _run(
        simulation, [_works(simulation, (amount, (1, UNLIMITED))) for amount in (10, 30)]
    ) == pytest.approx([2, 4])


def test_a_work_advances_at_its_smallest_share():
    """Three works: 1 uses A (6 per second) alone with 2; 2 and 3 share B (4 per second); 1 gets 3
    of A, the others 2 of B."""
    simulation = Simulation([6, 4])
    assert _run(
        simulation,
        [
            _works(simulation, work)
            for work in [(9, (1, UNLIMITED)), (6, (1, 2)), (6, (UNLIMITED, 2))]
        ],
    ) == pytest.approx([3, 3, 3])


def test_a_limit_holds():
    """4 cores: two works run at 1 per second each, whatever is free; 8 works at half of that."""
    for count, seconds in ((1, 5), (2, 5), (4, 5), (8, 10)):
        simulation = Simulation([4])
        ends = _run(simulation, [_works(simulation, (5, (1, UNLIMITED), 1)) for _ in range(count)])
        assert ends == pytest.approx([seconds] * count)


def test_works_of_a_process_follow_each_other():
    simulation = Simulation([2])
    delay, sent = (3, (UNLIMITED, UNLIMITED), 1), (8, (1, UNLIMITED))
    assert _run(simulation, [_works(simulation, delay, sent, delay)]) == pytest.approx([3 + 4 + 3])


def test_together_ends_with_the_last():
    simulation = Simulation([2])

    def process():
        yield simulation.together(
            [_works(simulation, (seconds, (UNLIMITED, UNLIMITED), 1)) for seconds in (5, 7, 1)]
        )
        assert simulation.now == pytest.approx(7)
        yield simulation.work(2, limit=1)

    assert _run(simulation, [process()]) == pytest.approx([9])


def test_gate_lets_pass_when_open():
    simulation, gate = Simulation([]), Gate()

    def opener():
        yield simulation.work(4, limit=1)
        gate.open()

    def passer(seconds):
        yield simulation.work(seconds, limit=1)
        yield gate.wait

    assert _run(simulation, [opener(), passer(1), passer(6)]) == pytest.approx([4, 4, 6])


def test_capacity_is_never_exceeded_and_all_work_is_done():
    """With works of random sizes, on random resources, each started when another ends."""
    rng, capacities = np.random.default_rng(0), np.array([np.inf, 3, 10, 1, 7])
    amounts, used = rng.uniform(0, 5, [20, 4]), rng.integers(1, 5, [20, 4, 2])
    used[..., 1] = np.where(used[..., 0] == used[..., 1], UNLIMITED, used[..., 1])
    done = np.zeros(5)

    class Watched(Simulation):
        def advance(self):
            before = self.now
            super().advance()
            loads = np.zeros(5)
            for column in (0, 1):
                np.add.at(loads, self.seen[1][:, column], self.seen[0])
            assert (loads <= capacities * (1 + 1e-9)).all()
            done[:] += loads * (self.now - before)

        def rates(self):
            self.seen = super().rates(), self._used
            return self.seen[0]

    simulation = Watched(capacities[1:])
    _run(simulation, [_works(simulation, *zip(*row)) for row in zip(amounts, used)])
    expected = np.zeros(5)
    for column in (0, 1):
        np.add.at(expected, used[..., column], amounts)
    np.testing.assert_allclose(done[1:], expected[1:], rtol=1e-6)
