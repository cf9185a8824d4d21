"""TensorFlow server of a task: start, wait for other tasks, watchdog, parameter server."""

import contextlib
import math
import os
import socket
import sys
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.distributed.cluster import EX_TEMPFAIL
from cifar10.errors import UserError

POLL_SECS = 0.5
CONNECT_TIMEOUT_SECS = 300  # to the first step
_CONNECT_SECS = 2
_PROXIES = 'grpc_proxy', 'https_proxy', 'http_proxy'  # gRPC uses the first one that is set.


def start(cluster, task, config_proto):
    """Start the only server of this process, and return its target.

    Args:
      cluster: a Cluster.
      task: the Task of this process.
      config_proto: a tf.ConfigProto. Its threads and devices apply to all sessions; TensorFlow
        ignores those of the sessions.

    Raises:
      UserError: the port is not available.
    """
    config = tf.ConfigProto()
    config.CopyFrom(config_proto)
    if not cluster.ps_hosts:
        config.experimental.collective_group_leader = '/job:worker/replica:0/task:0'
    try:
        # TensorFlow's error has no reason, and gRPC prints lines of its own.
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(('', int(cluster.address(task).rsplit(':', 1)[1])))
        target = tf.train.Server(cluster.spec, task.job_name, task.index, config=config).target
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f'{cluster.describe(task)} cannot listen ({errors.reason(error)}): '
            'end the process that uses this port, or give the task another port'
        )
    print(
        f'{cluster.describe(task)} listens on all network interfaces, without authentication: restrict its port to the cluster'
    )
    return target


def device_setter(cluster, worker_task):
    """Return the tf.train.replica_device_setter that balances variables over servers by bytes.

    An optimizer's variables and the moving averages are on the servers of their variables. Other
    operations run on the worker's CPU.
    """
    num_bytes = [0] * len(cluster.ps_hosts)

    def emptiest_server(op):
        server = num_bytes.index(min(num_bytes))
        shape, dtype = tf.TensorShape(op.get_attr('shape')), tf.as_dtype(op.get_attr('dtype'))
        num_bytes[server] += shape.num_elements() * dtype.size
        return server

    return tf.train.replica_device_setter(
        worker_device=worker_task.device, cluster=cluster.spec, ps_strategy=emptiest_server
    )


def session_config(tasks, config_proto=None):
    """Return a tf.ConfigProto with these Tasks only: a session waits for all its tasks."""
    config = tf.ConfigProto()
    if config_proto:
        config.CopyFrom(config_proto)
    config.device_filters.extend(f'/job:{task.job_name}/task:{task.index}' for task in tasks)
    return config


def done_queue(state_task):
    """Return the queue of a state task that gets an element at the end of each worker.

    The chief comes first, when it has saved the last checkpoint.
    """
    with tf.device(state_task.device):
        return tf.FIFOQueue(-1, [tf.int64], [[]], shared_name='done')


def serve(target, cluster, task, watchdog):
    """Serve variables until all workers have ended.

    tf.train.Server.join would never return. A worker hangs if a server ends first.
    """
    workers = cluster.worker_tasks
    with tf.Graph().as_default():
        num_done = done_queue(task).size()
        with tf.Session(target, config=session_config([task])) as session:
            done = 0
            while done < len(workers):
                # After the chief's end, a worker that is stopped has no more time than others.
                if not done and len(unreachable_tasks(cluster, workers)) < len(workers):
                    watchdog.report_progress()
                time.sleep(POLL_SECS)
                done = session.run(num_done)


def wait_for(cluster, tasks):
    """Wait until these Tasks accept connections, and print the missing ones."""
    printed = missing = None
    while missing != []:
        missing = unreachable_tasks(cluster, tasks)
        if missing and missing != printed:
            print('Waiting for ' + ', '.join(map(cluster.describe, missing)))
            printed = missing
        time.sleep(POLL_SECS if missing else 0)


def unreachable_tasks(cluster, tasks):
    """Return the Tasks that accept no connection."""
    return [task for task in tasks if not _accepts_connection(cluster.address(task))]


def _accepts_connection(address):
    host, port = address.rsplit(':', 1)
    try:
        socket.create_connection((host.strip('[]'), int(port)), _CONNECT_SECS).close()
        return True
    except OSError:
        return False


def exit_process(status, message=None):
    """End the process from any thread: a server and its threads cannot be closed."""
    if message:
        errors.warn(message)
    with contextlib.suppress(OSError, ValueError):  # a closed pipe
        sys.stdout.flush()
    os._exit(status)


class Watchdog(threading.Thread):
    """Thread that ends the process if no step is made for too long, for example without a peer.

    A call of TensorFlow's runtime may never return if a peer is stopped or unreachable. The status
    is 0 if the run has ended, else EX_TEMPFAIL. Ticks are counted, because a process that continues
    after SIGSTOP must not end at once.
    """

    def __init__(self, cluster, task, stall_timeout, has_ended):
        """Start the thread; `stall_timeout`: the seconds to each step after the first one."""
        super().__init__(daemon=True)
        self._others = [other for other in cluster.ps_tasks + cluster.worker_tasks if other != task]
        self._cluster, self._has_ended = cluster, has_ended
        self._limit, self._stall_timeout = CONNECT_TIMEOUT_SECS, stall_timeout
        self._is_connected, self._idle = False, 0
        self.start()

    def report_progress(self):
        """Restart the timer after a step."""
        self._is_connected, self._limit, self._idle = True, self._stall_timeout, 0

    def stop(self):
        """Remove the limit."""
        self._limit = math.inf

    def run(self):
        """Wait for the end of the time, then end the process."""
        while self._idle < self._limit:
            time.sleep(POLL_SECS)
            self._idle += POLL_SECS
        with contextlib.suppress(UserError):  # a damaged record
            if self._has_ended():
                exit_process(0, 'the run has ended, and the other tasks too')
        missing = unreachable_tasks(self._cluster, self._others)
        cause = f'no step for {self._limit} seconds'
        if missing:
            cause += f'; no connection to {", ".join(map(self._cluster.describe, missing))}'
        remedy = 'start this task and the missing ones again'
        if not self._is_connected:
            remedy += ', and check --ps_hosts and --worker_hosts, or TF_CONFIG'
            for name in _PROXIES:
                if os.environ.get(name):
                    remedy += f', and name the hosts in no_proxy, because {name} is set'
                    break
        exit_process(EX_TEMPFAIL, f'{cause}: {remedy}')
