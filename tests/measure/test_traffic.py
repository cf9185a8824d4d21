"""Bytes on paper, and where the variables are."""

import itertools

import numpy as np
import pytest

from cifar10.measure import traffic
from cifar10.measure.traffic import ALLREDUCE, ASYNC, AVERAGE, LOCAL, SYNC, Machines, Scheme

SHAPES = [
    (5, 5, 3, 64),
    (64,),
    (5, 5, 64, 64),
    (64,),
    (2304, 384),
    (384,),
    (384, 192),
    (192,),
    (192, 10),
    (10,),
]
VARIABLES = [4 * int(np.prod(shape)) for shape in SHAPES]
P = 4 * 1068298


def test_variables_are_those_of_the_network():
    assert traffic.variable_bytes() == VARIABLES and sum(VARIABLES) == P


def test_whole_variables_are_balanced():
    """As well as any placement can, of all there are; local3/weights alone is 83 % and stays on one
    server."""
    for num_ps in (1, 2, 3):
        best = min(
            max(
                sum(size for size, server in zip(VARIABLES, servers) if server == i)
                for i in range(num_ps)
            )
            for servers in itertools.product(range(num_ps), repeat=len(VARIABLES))
        )
        placed = traffic.server_bytes(VARIABLES, Machines(2, num_ps))
        assert len(placed) == num_ps and sum(placed) == P and max(placed) == best
    assert best == 4 * 2304 * 384
    # 6, then 5, 4, then 3 beside 6, 2 beside that or 9
    assert traffic.server_bytes([6, 5, 4, 3, 2], Machines(2, 2)) == [11, 9]


def test_cut_variables_are_even():
    assert traffic.server_bytes(VARIABLES, Machines(2, 8, sharded=True)) == [P / 8] * 8


@pytest.mark.parametrize(
    'mode, machines, expected',
    [
        (LOCAL, Machines(4), (0, 0, 0)),
        (SYNC, Machines(4), (P, 4 * P, 8 * P)),
        (SYNC, Machines(4, num_ps=2), (P, 4 * 4 * 2304 * 384, 8 * P)),
        (SYNC, Machines(4, num_ps=2, sharded=True), (P, 2 * P, 8 * P)),
        (ASYNC, Machines(4), (P, P, 2 * P)),
        (AVERAGE, Machines(4), (2 * P / 10, 8 * P / 10, 16 * P / 10)),
        (ALLREDUCE, Machines(1), (0, 0, 0)),
        (ALLREDUCE, Machines(2), (P, 0, 2 * P)),
        (ALLREDUCE, Machines(4), (1.5 * P, 0, 6 * P)),
    ],
)
def test_bytes_on_paper(mode, machines, expected):
    assert traffic.on_paper(Scheme(mode, VARIABLES), machines) == pytest.approx(expected)


def test_ring_sums_with_these_bytes():
    """A ring all-reduce in NumPy: each of 5 workers sends one part per round; counted is what they
    send."""
    n, parts, sent = 5, np.random.default_rng(0).standard_normal([5, 5, 3]), np.zeros(5)
    held = parts.copy()  # of each worker, its parts
    for shift, add in [(0, True), (1, False)]:
        for i in range(n - 1):
            before = held.copy()
            for worker in range(n):
                receiver, part = (worker + 1) % n, (worker + shift - i) % n
                held[receiver, part] = before[worker, part] + (held[receiver, part] if add else 0)
                sent[worker] += before[worker, part].nbytes
    np.testing.assert_allclose(held, np.broadcast_to(parts.sum(0), held.shape))
    on_paper = traffic.on_paper(Scheme(ALLREDUCE, [parts[0].nbytes]), Machines(n))
    assert (sent == on_paper.worker).all() and sent.sum() == on_paper.total
