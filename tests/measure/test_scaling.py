"""The simulated speed, against closed formulas in cases that have one, and the order that any
speeds must have."""

import numpy as np
import pytest

from cifar10.measure import scaling, traffic
from cifar10.measure.scaling import Costs
from cifar10.measure.traffic import ALLREDUCE, ASYNC, AVERAGE, LOCAL, SYNC, Machines, Scheme

P = 4.0e6
VARIABLES = [3.2e6, 0.8e6]
COSTS = Costs(compute=8e-3, jitter=0, message=3e-4, copy=1e-9, add=5e-10, apply=7e-10)
FREE = Costs(compute=8e-3, jitter=0, message=0, copy=0, add=0, apply=0)
CARD = 10e9 / 8


def _seconds(mode, machines, costs=COSTS, variables=VARIABLES, **scheme):
    return scaling.speed(Scheme(mode, variables, **scheme), machines, costs).seconds


def _message(size):
    return size / CARD + 50e-6 + 2 * (3e-4 + size * 1e-9)


def test_one_worker():
    """Fetch, compute, push and update, one after the other."""
    add, apply, both = P * 5e-10, P * 7e-10, 2 * _message(P)
    one = Machines(1)
    assert _seconds(SYNC, one) == pytest.approx(both + 8e-3 + add + apply, rel=1e-5)
    assert _seconds(ASYNC, one) == pytest.approx(both + 8e-3 + apply, rel=1e-5)
    assert _seconds(AVERAGE, one, average_period=4) == pytest.approx(
        (2 * _message(2 * P) + 4 * (8e-3 + apply) + 2 * (add + apply)) / 4, rel=1e-5
    )
    assert _seconds(ALLREDUCE, one) == pytest.approx(8e-3 + apply, rel=1e-5)
    assert _seconds(LOCAL, one) == pytest.approx(8e-3 + add + apply, rel=1e-5)


@pytest.mark.parametrize('num_workers', [2, 5, 16])
def test_one_server_takes_all_bytes_through_its_card(num_workers):
    """All fetch at the same time, and all push. With nothing to compute, sync takes exactly the
    bytes on paper over the card."""
    seconds = _seconds(SYNC, Machines(num_workers, latency=0), FREE)
    assert seconds == pytest.approx(8e-3 + 2 * num_workers * P / CARD, rel=1e-5)
    on_paper = traffic.on_paper(Scheme(SYNC, VARIABLES), Machines(num_workers))
    assert _seconds(
        SYNC, Machines(num_workers, latency=0), FREE._replace(compute=1e-9)
    ) == pytest.approx(2 * on_paper.server / CARD, rel=1e-5)
    assert _seconds(
        AVERAGE, Machines(num_workers, latency=0), FREE, average_period=5
    ) == pytest.approx(8e-3 + 2 * 2 * num_workers * P / CARD / 5, rel=1e-5)


@pytest.mark.parametrize('num_workers', [2, 5, 16])
def test_server_adds_one_gradient_at_a_time_on_cores_that_copy_in_parallel(num_workers):
    """Copying N messages on c cores takes max(1, N / c) times as long as one; adding always N
    times."""
    costs = FREE._replace(copy=1e-9, add=5e-10)
    times = max(1, num_workers / 4)
    worker = P * 1e-9
    assert _seconds(SYNC, Machines(num_workers, latency=0, cores=4), costs) == pytest.approx(
        8e-3 + 2 * (num_workers * P / CARD + worker + times * worker) + num_workers * P * 5e-10,
        rel=1e-5,
    )


def test_servers():
    """Whole variables: the largest decides. Cut ones: N workers push to S servers through S cards,
    or through their own."""

    def exchange(**servers):
        return _seconds(SYNC, Machines(8, latency=0, **servers), FREE) - 8e-3

    assert exchange() == pytest.approx(2 * 8 * P / CARD, rel=1e-5)
    assert exchange(num_ps=2) == pytest.approx(2 * 8 * 3.2e6 / CARD, rel=1e-5)
    # one of them has nothing
    assert exchange(num_ps=3) == pytest.approx(2 * 8 * 3.2e6 / CARD, rel=1e-5)
    assert exchange(num_ps=4, sharded=True) == pytest.approx(2 * 8 * P / 4 / CARD, rel=1e-5)
    for num_ps in (8, 16):  # 16 cards of servers, but 8 of workers
        assert exchange(num_ps=num_ps, sharded=True) == pytest.approx(2 * P / CARD, rel=1e-5)


@pytest.mark.parametrize('num_workers', [2, 3, 8])
def test_ring(num_workers):
    """2 (N - 1) messages of P / N bytes, one after the other."""
    seconds = _seconds(ALLREDUCE, Machines(num_workers))
    assert seconds == pytest.approx(
        8e-3
        + 2 * (num_workers - 1) * _message(P / num_workers)
        + (num_workers - 1) * P / num_workers * 5e-10
        + P * 7e-10,
        rel=1e-5,
    )


def test_async_fills_the_card_or_the_workers():
    """Few workers do not meet; many are held up by the card, in the direction that is busiest."""
    slow = FREE._replace(compute=1.0, jitter=0.1)
    assert _seconds(ASYNC, Machines(4), slow) == pytest.approx(1.0 / 4, rel=0.05)
    for num_ps, sharded in ((1, False), (2, True)):
        limit = P / num_ps / CARD
        seconds = _seconds(ASYNC, Machines(32, num_ps, sharded), FREE._replace(jitter=0.1))
        assert limit <= seconds * (1 + 1e-9) and seconds < 1.3 * limit


def test_cores_of_one_machine_are_shared():
    """There is no card; computing, copying, adding and updating take turns on 2 cores."""
    machine = Machines(1, cores=2, one_machine=True, latency=0)
    for num_workers, times in ((1, 1), (2, 1), (4, 2)):
        machines = machine._replace(num_workers=num_workers)
        ends = P * 5e-10 * num_workers + P * 7e-10
        assert _seconds(LOCAL, machines) == pytest.approx(times * 8e-3 + ends, rel=1e-5)
        assert _seconds(SYNC, machines) == pytest.approx(
            times * (8e-3 + 4 * (3e-4 + P * 1e-9)) + ends, rel=1e-5
        )
        sent = P * (num_workers - 1) / num_workers
        assert _seconds(ALLREDUCE, machines) == pytest.approx(
            times
            * (
                8e-3
                + 2 * (2 * (num_workers - 1) * 3e-4 + 2 * sent * 1e-9)
                + sent * 5e-10
                + P * 7e-10
            ),
            rel=1e-5,
        )


@pytest.mark.slow
def test_jitter_makes_synchronous_workers_wait_for_the_slowest():
    """The mean of the greatest of N draws, with NumPy; the mean of one draw stays."""
    costs = Costs(compute=1.0, jitter=0.3, message=0, copy=0, add=0, apply=0)
    draws = np.exp(np.sqrt(np.log(1.09)) * np.random.default_rng(1).standard_normal([20000, 64]))
    draws /= np.sqrt(1.09)
    assert (draws.mean(), draws.std()) == pytest.approx((1, 0.3), rel=0.02)
    for needed in (64, 60):
        expected = np.sort(draws)[:, needed - 1].mean()
        seconds = [
            scaling.speed(
                Scheme(SYNC, [1e-6], replicas_to_aggregate=needed),
                Machines(64, latency=0),
                costs,
                seed,
            ).seconds
            for seed in range(10)
        ]
        if needed == 64:
            assert np.mean(seconds) == pytest.approx(expected, rel=0.05)
        else:
            # who is late goes on from where the others are, and so is late again: no better than
            # fresh draws, better than all
            assert expected * 0.9 < np.mean(seconds) < 0.9 * np.sort(draws)[:, -1].mean()
    costs = costs._replace(jitter=1)
    seconds = [
        scaling.speed(Scheme(ASYNC, [1e-6]), Machines(64, latency=0), costs, seed).seconds
        for seed in range(5)
    ]
    assert np.mean(seconds) == pytest.approx(1 / 64, rel=0.1)


def test_images_per_second():
    """Of all workers; with backup workers, of those whose gradients count."""
    for mode, counted in ((SYNC, 6), (ALLREDUCE, 6), (AVERAGE, 6), (ASYNC, 1)):
        speed = scaling.speed(Scheme(mode, VARIABLES, batch_size=50), Machines(6), COSTS)
        assert speed.images_per_sec == pytest.approx(50 * counted / speed.seconds)
    speed = scaling.speed(
        Scheme(SYNC, VARIABLES, batch_size=50, replicas_to_aggregate=4), Machines(6), COSTS
    )
    assert speed.images_per_sec == pytest.approx(50 * 4 / speed.seconds)


def test_backup_workers_are_for_sync_alone():
    for mode in (ALLREDUCE, AVERAGE, ASYNC):
        assert _seconds(mode, Machines(3), replicas_to_aggregate=2) == _seconds(mode, Machines(3))


def test_speed_is_reproducible_and_depends_on_the_seed():
    first, again, other = [
        scaling.speed(Scheme(SYNC, VARIABLES), Machines(4), COSTS._replace(jitter=0.2), seed)
        for seed in (5, 5, 6)
    ]
    assert first == again != other


@pytest.mark.parametrize('mode', [SYNC, ASYNC, ALLREDUCE, AVERAGE])
def test_more_costs_more(mode):
    """Every cost and the latency slow an update down, or do nothing to it; a faster card speeds it
    up."""
    machines = Machines(6, num_ps=2)
    seconds = _seconds(mode, machines)
    for name in ('compute', 'message', 'copy', 'apply'):
        assert (
            _seconds(mode, machines, COSTS._replace(**{name: 2 * getattr(COSTS, name)})) > seconds
        ), name
    assert (
        _seconds(mode, machines._replace(latency=1e-3))
        > seconds
        > _seconds(mode, machines._replace(gigabits=100))
    )
    assert _seconds(mode, machines, variables=[3 * size for size in VARIABLES]) > seconds


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match='Impossible with 3 workers'):
        _seconds(SYNC, Machines(3), replicas_to_aggregate=4)
    with pytest.raises(ValueError, match='Impossible with 3 workers'):
        _seconds('ring', Machines(3))
