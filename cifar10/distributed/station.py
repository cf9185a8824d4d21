"""What a process of a cluster needs to deal with the others."""
import time
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10.distributed import peers, server
from cifar10.distributed.cluster import Cluster, Task, Timeouts
from cifar10.distributed.watchdog import Watchdog

_LOOK_SECS = 0.2


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

    def await_departures(self, boards):
        """Waits until the workers that can be reached have read that the run is over; not for ever: one of them may be stopped."""
        deadline = time.monotonic() + self.timeouts.stall
        while time.monotonic() < deadline:
            staying = [worker for worker, is_gone in zip(self.cluster.workers, boards.read()[0].gone) if not is_gone]
            if len(peers.unreachable(self.cluster, staying)) == len(staying):
                break
            time.sleep(_LOOK_SECS)

    def _awaited(self):
        others = [task for task in self.cluster.servers + self.cluster.workers if task != self.task]
        return ', '.join(peers.unreachable(self.cluster, others) or peers.silent(self.cluster, others))
