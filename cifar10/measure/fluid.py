"""Work that shares resources, such as network cards and cores, simulated from event to event."""

import numpy as np

UNLIMITED = 0  # the resource that is never short
_SAME_TIME = 1e-9  # seconds: what ends within it ends in one event


class Simulation:
    """Processes and the resources that they share.

    A process is a generator. It yields what it waits for: a function that takes what has to be
    called afterwards. Each resource divides its capacity equally among the works that use it, as
    TCP divides a link among its connections. A work advances at the smallest of its shares: what it
    leaves of the others stays unused.
    """

    def __init__(self, capacities):
        """Makes resources 1, 2, ... with these capacities per second."""
        self.now = 0.0
        self._capacities = np.array([np.inf] + list(capacities))
        self._amounts, self._limits = np.empty(0), np.empty(0)
        self._then, self._used = np.empty(0, object), np.empty([0, 2], int)
        self._new = []

    def work(self, amount, used=(UNLIMITED, UNLIMITED), limit=np.inf):
        """To wait for: an amount of work that uses two resources, and advances by at most `limit`
        per second."""
        return lambda then: self._new.append((amount, limit, then, used))

    def start(self, process, then=lambda: None):
        """Runs the process up to where it waits; at its end calls `then`."""
        wait = next(process, None)
        if wait is None:
            then()
        else:
            wait(lambda: self.start(process, then))

    def together(self, branches):
        """To wait for: the end of all of these processes, which run at the same time."""

        def wait(then):
            left = len(branches)

            def ended():
                nonlocal left
                left -= 1
                if not left:
                    then()

            for process in branches:
                self.start(process, ended)

        return wait

    def advance(self):
        """Moves on to the next moment at which works end, and goes on with the processes that
        waited for them."""
        if self._new:
            amounts, limits, then, used = zip(*self._new)
            self._amounts, self._limits = (
                np.append(self._amounts, amounts),
                np.append(self._limits, limits),
            )
            self._then, self._used, self._new = (
                np.append(self._then, then),
                np.vstack([self._used, used]),
                [],
            )
        rates = self.rates()
        left = self._amounts / rates
        seconds = float(left.min())
        going_on = left > seconds + _SAME_TIME
        ended = self._then[~going_on]
        self._amounts = (self._amounts - rates * seconds)[going_on]
        self._limits, self._then, self._used = (
            self._limits[going_on],
            self._then[going_on],
            self._used[going_on],
        )
        self.now += seconds
        for then in ended:
            then()

    def rates(self):
        """How fast each work advances now."""
        users = np.bincount(self._used.ravel(), minlength=len(self._capacities))
        shares = self._capacities / np.maximum(users, 1)
        return np.minimum(shares[self._used].min(axis=1), self._limits)


class Gate:
    """Processes that yield `wait` go on when it is opened."""

    def __init__(self):
        self.arrived = 0
        self._waiting = []
        self._is_open = False

    def wait(self, then):
        if self._is_open:
            then()
        else:
            self._waiting.append(then)

    def open(self):
        self._is_open = True
        for then in self._waiting:
            then()
