"""Tasks in one graph and session of the test's own process."""

from concurrent import futures
from types import SimpleNamespace

import tensorflow.compat.v1 as tf

from cifar10.config import RunSettings
from cifar10.distributed.cluster import Cluster, Task

DEADLINE_SECS = 60


class LocalTask(Task):
    """A Task on the session's default device."""

    device = ''


class LocalCluster(Cluster):
    """A Cluster of LocalTasks."""

    ps_tasks = property(lambda self: [LocalTask('ps', i) for i in range(len(self.ps_hosts))])
    worker_tasks = property(
        lambda self: [LocalTask('worker', i) for i in range(len(self.worker_hosts))]
    )


def cluster(num_servers, num_workers):
    """Return a LocalCluster."""
    return LocalCluster(
        tuple(f'ps{i}:1' for i in range(num_servers)),
        tuple(f'worker{i}:1' for i in range(num_workers)),
    )


def worker(strategy, num_servers=1, index=0, generation=7):
    """Return a stand-in for a Worker of a LocalCluster."""
    tasks = cluster(num_servers, strategy.num_workers)
    return SimpleNamespace(
        strategy=strategy,
        cluster=tasks,
        state_tasks=tasks.ps_tasks,
        task=tasks.worker_tasks[index],
        generation=generation,
        first_step=0,
        job=SimpleNamespace(settings=RunSettings()),
        report_local_step=lambda: None,
    )


class Session(tf.Session):
    """A session with a deadline, and with runs in threads."""

    def __init__(self):
        config = tf.ConfigProto(
            operation_timeout_in_ms=1000 * DEADLINE_SECS, inter_op_parallelism_threads=8
        )
        super().__init__(config=config)
        self._pool = futures.ThreadPoolExecutor(4)

    def start(self, fetches):
        """Start a run of the fetches, and return a Future of their values."""
        return self._pool.submit(self.run, fetches)

    def close(self):
        super().close()
        self._pool.shutdown()
