"""How fast workers on many machines would train: a simulation of their cards, cores and messages.

Not modelled: switches between the machines, the copy between a GPU and its computer's memory, and
sending of one variable while the gradient of another is still computed.
"""

from typing import NamedTuple

import numpy as np

from cifar10.measure import fluid, traffic
from cifar10.measure.traffic import ALLREDUCE, ASYNC, AVERAGE, LOCAL, MODES, SYNC

_CARD_IN, _CARD_OUT, _CORES, _ADDER = _KINDS = range(4)


class Costs(NamedTuple):
    """What work takes, in seconds of one core."""

    compute: float  # for the gradients of one worker's batch; of its GPU, if it has one
    jitter: float  # standard deviation of `compute` over its mean; the distribution is log-normal
    message: float  # to handle a message, at each end
    copy: float  # per byte of a message, at each end
    add: float  # per byte of a gradient that is added to the others
    apply: float  # per byte of the variables, for their update and moving averages


class Speed(NamedTuple):
    """For ASYNC, each worker's gradient makes an update of its own; for AVERAGE, every worker's
    step is one update."""

    seconds: float  # of an update
    images_per_sec: float  # of all workers, without those whose gradients are dropped


def speed(scheme, machines, costs, seed=0):
    """The Speed of training, the mean of some updates.

    Raises:
      ValueError: the mode is unknown, or more gradients are to be aggregated than there are
        workers.
    """
    if scheme.mode not in MODES or scheme.replicas_to_aggregate > machines.num_workers:
        raise ValueError('Impossible with %d workers: %s' % (machines.num_workers, scheme))
    if scheme.mode == LOCAL:
        scheme, machines = (
            scheme._replace(mode=SYNC),
            machines._replace(num_ps=1, latency=0, one_machine=True),
        )
        costs = costs._replace(message=0, copy=0)
    cluster = _Cluster(scheme, machines, costs, np.random.default_rng(seed))
    if scheme.mode == ASYNC:  # workers that start together would fetch together for a long time
        cluster.spread = speed(scheme._replace(mode=SYNC), machines, costs, seed).seconds
    process = {
        SYNC: cluster.replica,
        AVERAGE: cluster.replica,
        ASYNC: cluster.lone,
        ALLREDUCE: cluster.peer,
    }[scheme.mode]
    for worker in range(machines.num_workers):
        cluster.simulation.start(process(worker))
    num_rounds, per_round = (
        6 + 64 // machines.num_workers,
        machines.num_workers if scheme.mode == ASYNC else 1,
    )
    while len(cluster.times) <= (1 + num_rounds) * per_round:  # the first round is not measured
        cluster.simulation.advance()
    seconds = (cluster.times[-1] - cluster.times[per_round]) / (
        num_rounds * per_round * cluster.num_steps
    )
    return Speed(
        seconds, scheme.batch_size * (1 if scheme.mode == ASYNC else cluster.needed) / seconds
    )


class _Cluster:
    """The workers and, after them, the parameter servers, by their numbers; the processes of a
    worker."""

    def __init__(self, scheme, machines, costs, rng):
        self.machines, self.costs, self.rng = machines, costs, rng
        self.mode, self.size = scheme.mode, sum(scheme.variables)
        self.needed = scheme.mode == SYNC and scheme.replicas_to_aggregate or machines.num_workers
        self.num_steps, copies = (scheme.average_period, 2) if scheme.mode == AVERAGE else (1, 1)
        self.shards = [
            (machines.num_workers + i, copies * size)
            for i, size in enumerate(traffic.server_bytes(scheme.variables, machines))
            if size
        ]
        card = machines.gigabits * 1e9 / 8
        self.simulation = fluid.Simulation(
            [card, card, machines.cores, 1.0] * (machines.num_workers + machines.num_ps)
        )
        self.spread, self.gate, self.times = 0, fluid.Gate(), []  # times: of the updates

    def replica(self, worker):
        """Fetches, computes and pushes, and waits for the update."""
        while True:
            gate = self.gate
            yield from self._fetch(worker)
            for _ in range(self.num_steps):
                yield from self._compute(worker)
                if self.mode == AVERAGE:
                    yield from self._busy(worker, self.size * self.costs.apply)
            yield from self._push(worker, self._add)
            yield from self._meet(gate, [self._apply(*shard) for shard in self.shards])

    def lone(self, worker):
        """Fetches, computes and pushes, without a wait for others."""
        yield self.simulation.work(self.rng.uniform(0, self.spread), limit=1)
        while True:
            yield from self._fetch(worker)
            yield from self._compute(worker)
            yield from self._push(worker, self._apply)
            self.times.append(self.simulation.now)

    def peer(self, worker):
        """Computes, and when all have done so, sends to the next worker in the ring: N - 1 parts to
        add, and N - 1 totals."""
        num_workers = self.machines.num_workers
        sent = self.size * (num_workers - 1) / num_workers
        while True:
            yield from self._compute(worker)
            yield from self._meet(self.gate, [])
            yield from self._message(
                worker, (worker + 1) % num_workers, 2 * sent, 2 * (num_workers - 1)
            )
            yield from self._busy(worker, sent * self.costs.add + self.size * self.costs.apply)

    def _meet(self, gate, updates):
        """Waits at the gate; who comes as the last that is needed runs the updates and opens it.
        Later ones find it open."""
        gate.arrived += 1
        if gate.arrived == self.needed:
            if updates:
                yield self.simulation.together(updates)
            self.times.append(self.simulation.now)
            self.gate = fluid.Gate()
            gate.open()
        else:
            yield gate.wait

    def _fetch(self, worker):
        yield self.simulation.together(
            [self._message(server, worker, size) for server, size in self.shards]
        )

    def _push(self, worker, use):
        def message(host, size):
            yield from self._message(worker, host, size)
            yield from use(host, size)

        yield self.simulation.together([message(*shard) for shard in self.shards])

    def _message(self, sender, receiver, size, count=1):
        """One message, or several of them one after the other, of `size` bytes together."""
        handling = count * self.costs.message + size * self.costs.copy
        yield from self._busy(sender, handling)
        yield self.simulation.work(count * self.machines.latency, limit=1)
        if not self.machines.one_machine:
            yield self.simulation.work(
                size, (self._resource(sender, _CARD_OUT), self._resource(receiver, _CARD_IN))
            )
        yield from self._busy(receiver, handling)

    def _compute(self, worker):
        variance = np.log1p(self.costs.jitter**2)
        seconds = self.costs.compute * self.rng.lognormal(-variance / 2, np.sqrt(variance))
        if self.machines.one_machine:
            yield from self._busy(worker, seconds)
        else:
            yield self.simulation.work(seconds, limit=1)

    def _add(self, host, size):
        """One gradient at a time."""
        yield from self._busy(host, size * self.costs.add, self._resource(host, _ADDER))

    def _apply(self, host, size):
        yield from self._busy(host, size * self.costs.apply)

    def _busy(self, number, seconds, other=fluid.UNLIMITED):
        """Keeps one core busy."""
        yield self.simulation.work(seconds, (self._resource(number, _CORES), other), limit=1)

    def _resource(self, number, kind):
        return (
            1 + kind + len(_KINDS) * (0 if kind == _CORES and self.machines.one_machine else number)
        )
