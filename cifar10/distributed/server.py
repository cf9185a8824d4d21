"""TensorFlow server of a task, and its variable with the TaskInfo."""

from concurrent import futures
import json
import random
import socket
import time
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10.distributed.cluster import CONNECTING, FILLING, JOINING, TRAINING
from cifar10.errors import UserError, reason

_CONNECT_SECS = 2
_POLL_SECS = 0.5
# Errors of TensorFlow's runtime after a peer is lost or restarted
PREEMPTION_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
    tf.errors.DeadlineExceededError,
)


def start_server(cluster, task, config_proto):
    """Start the only server of this process, and return its target.

    Args:
      cluster: a Cluster.
      task: the Task of this process.
      config_proto: a tf.ConfigProto. Its threads and devices apply to all sessions; TensorFlow
        ignores those of the sessions.

    Raises:
      UserError: the port is not available.
    """
    config = config_with_device_filters([], config_proto)
    if not cluster.ps_hosts:
        config.experimental.collective_group_leader = '/job:worker/replica:0/task:0'
    print(
        f'{cluster.describe(task)} listens on all network interfaces, without authentication: restrict its port to the cluster'
    )
    try:
        _check_port(_host_and_port(cluster.address(task))[1])
        return tf.train.Server(cluster.spec, task.job_name, task.index, config=config).target
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f'{cluster.describe(task)} cannot listen: {reason(error)}',
            'end the process that uses this port, or give the task another port',
        )


def _check_port(port):
    """Raise OSError if the port is not available; TensorFlow gives no reason."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(('', port))


def config_with_device_filters(tasks, config_proto=None):
    """Return a tf.ConfigProto with only these Tasks, because sessions wait for all their tasks."""
    config = tf.ConfigProto()
    if config_proto:
        config.CopyFrom(config_proto)
    config.device_filters.extend(f'/job:{task.job_name}/task:{task.index}' for task in tasks)
    return config


class TaskInfo(NamedTuple):
    """Identity and phase of a task, stored in a variable on its server."""

    cluster: str  # Cluster.addresses of its command
    name: str  # such as 'worker 1'
    incarnation: int  # a random number of this process
    phase: str = CONNECTING


class OwnTaskInfo:
    """The TaskInfo of this process."""

    def __init__(self, target, cluster, task):
        """Publish the TaskInfo on the server of this process, at `target`."""
        self.task_info = TaskInfo(
            cluster.addresses, str(task), random.SystemRandom().getrandbits(62)
        )
        with tf.Graph().as_default() as graph, tf.device(task.device):
            self._text = tf.placeholder(tf.string, [])
            self._assign = tf.raw_ops.AssignVariableOp(
                resource=_task_info_handle(), value=self._text
            )
        self._session = tf.Session(target, graph, config_with_device_filters([task]))
        self.set_phase(CONNECTING)

    def set_phase(self, phase):
        """Publish the phase of the task."""
        self.task_info = self.task_info._replace(phase=phase)
        self._session.run(self._assign, {self._text: json.dumps(self.task_info)})


def _task_info_handle():
    return tf.raw_ops.VarHandleOp(dtype=tf.string, shape=[], shared_name='task_info')


def read_task_info(address):
    """Return the TaskInfo at an address, or the reason of a failure, within ten seconds."""
    error = _connection_error(address)
    if error:
        return error
    config = tf.ConfigProto(device_filters=['/job:none'], operation_timeout_in_ms=4000)
    # Shared connections can hang for minutes after a network failure.
    config.rpc_options.disable_session_connection_sharing = True
    # Otherwise, a session with this task's own address would bypass the network.
    config.rpc_options.use_rpc_for_inprocess_master = True
    try:
        with tf.Graph().as_default() as graph, tf.device('/cpu:0'):
            text = tf.raw_ops.ReadVariableOp(resource=_task_info_handle(), dtype=tf.string)
        session = tf.Session('grpc://' + address, graph, config)
        # The session closes at the return, after a timeout of `run` with one more timeout.
        return TaskInfo(*json.loads(session.run(text).decode()))
    except (TypeError, ValueError):
        return 'it runs another version of this package'
    except tf.errors.FailedPreconditionError:
        return 'it is starting, or it is another program'
    except tf.errors.OpError:
        return 'it does not answer'


def query_all(query, cluster, tasks):
    """Return a dict from Tasks to the results of query(address), run in parallel."""
    with futures.ThreadPoolExecutor(len(tasks) or 1) as pool:
        return dict(zip(tasks, pool.map(query, map(cluster.address, tasks))))


def unreachable_tasks(cluster, tasks):
    """Return the Tasks that accept no connection."""
    return [task for task, error in query_all(_connection_error, cluster, tasks).items() if error]


def describe_awaited(cluster, task_infos):
    """Describe the missing tasks or, if none is missing, those that do not train yet.

    A missing task does not answer or has other addresses.

    Args:
      cluster: the Cluster of this process.
      task_infos: a dict from each Task to the result of `read_task_info`.

    Returns:
      A list of texts like 'worker 1 (host:2222: Connection refused)'.
    """
    missing, phases = {}, {}
    for task, task_info in task_infos.items():
        if isinstance(task_info, str):
            missing[task] = task_info
        elif task_info.cluster != cluster.addresses:
            missing[task] = 'started with ' + task_info.cluster
        elif task_info.phase != TRAINING:
            phases[task] = task_info.phase
    return [f'{task} ({cluster.address(task)}: {why})' for task, why in (missing or phases).items()]


def wait_for_chief(cluster, secs):
    """Wait at most `secs` seconds until the chief fills its queue, trains or ends."""
    chief, deadline, phase = cluster.worker_tasks[0], time.monotonic() + secs, None
    print(f'Waiting for {cluster.describe(chief)} to train')
    while time.monotonic() < deadline and phase not in (FILLING, TRAINING):
        task_info = read_task_info(cluster.address(chief))
        if isinstance(task_info, TaskInfo):
            phase = task_info.phase
        elif phase == JOINING:  # A chief whose run has ended exits in this phase.
            return
        time.sleep(_POLL_SECS)


def _host_and_port(address):
    host, port = address.rsplit(':', 1)
    return host.strip('[]'), int(port)


def _connection_error(address):
    """Return the reason of a failed connection, or None."""
    try:
        socket.create_connection(_host_and_port(address), _CONNECT_SECS).close()
        return None
    except socket.timeout:
        return 'no answer'
    except OSError as error:
        return error.strerror or str(error)


def is_local_address(address):
    """Return True if an address belongs to this machine."""
    try:
        (family, _, _, _, found), *_ = socket.getaddrinfo(_host_and_port(address)[0], 0)
        with socket.socket(family) as listener:
            listener.bind(found)  # fails for addresses of other machines
        return True
    except OSError:
        return False
