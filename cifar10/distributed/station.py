"""What a process of a cluster needs to deal with the others."""
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10.distributed import peers, server
from cifar10.distributed.cluster import Cluster, Task
from cifar10.distributed.watchdog import Watchdog


class Timeouts(NamedTuple):
    """Seconds after which a task gives up."""
    connect: float = 300  # before the first update
    stall: float = 120  # without another update


class Station(NamedTuple):
    """A task with its TensorFlow server."""
    cluster: Cluster
    task: Task
    target: str  # of its server
    watchdog: Watchdog
    timeouts: Timeouts

    def connect(self, graph, tasks):
        """A tf.Session for a graph whose operations are on these Tasks; any other may be away."""
        return tf.Session(self.target, graph, server.session_config(tasks))

    def expect_start(self):
        """Has the process end if there is no first update in time."""
        self.watchdog.watch(self._awaited, self.timeouts.connect, 'connect_timeout_secs')

    def expect_progress(self):
        """Has the process end if there is no further update in time."""
        self.watchdog.watch(self._awaited, self.timeouts.stall, 'stall_timeout_secs')

    def _awaited(self):
        others = [task for task in self.cluster.servers + self.cluster.workers if task != self.task]
        return ', '.join(peers.unreachable(self.cluster, others) or peers.silent(self.cluster, others))
