"""The TensorFlow server of a task, sessions with it, and the servers of the other tasks: which of
them can be reached, and their cards.

A card is a variable on the server of each task: with which addresses the task was started, and in
which phase it is.
"""

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
_LOOK_SECS = 0.5
# What TensorFlow's runtime raises when a peer is gone, or has begun anew.
LOSSES = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
    tf.errors.DeadlineExceededError,
)


def start(cluster, task, config):
    """Starts the server of this process, of which there can be only one; returns its target.

    Args:
      cluster: a Cluster.
      task: the Task of this process.
      config: a tf.ConfigProto. What it says about threads and devices holds for all sessions; what
        theirs say does not.

    Raises:
      UserError: it cannot listen at its port.
    """
    combined = session_config([], config)
    if not cluster.ps:
        combined.experimental.collective_group_leader = '/job:worker/replica:0/task:0'
    print(
        '%s listens on all network interfaces and does what anybody asks: let only the cluster reach its port'
        % cluster.named(task)
    )
    try:
        _try_port(_host_and_port(cluster.address(task))[1])
        return tf.train.Server(cluster.spec, task.job, task.index, config=combined).target
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            '%s cannot listen: %s. End what listens there, or give the task another port'
            % (cluster.named(task), getattr(error, 'strerror', None) or reason(error))
        )


def _try_port(port):
    """Raises OSError if no server can listen; TensorFlow's own error does not give the reason."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(('', port))


def session_config(tasks, config=None):
    """A tf.ConfigProto for sessions that deal with these Tasks alone; any other may be away."""
    combined = tf.ConfigProto()
    if config:
        combined.CopyFrom(config)
    combined.device_filters.extend('/job:%s/task:%d' % task for task in tasks)
    return combined


class Card(NamedTuple):
    """The variable by which a task introduces itself."""

    cluster: str  # Cluster.text, the addresses that the task was started with
    name: str  # such as 'worker 1'
    incarnation: int  # a random number, another one at each start
    phase: str = CONNECTING


class OwnCard:
    """The card of this process."""

    def __init__(self, target, cluster, task):
        """Publishes the card on the server of this process, which has this target."""
        self.card = Card(cluster.text, str(task), random.SystemRandom().getrandbits(62))
        with tf.Graph().as_default() as graph, tf.device(task.device):
            self._text = tf.placeholder(tf.string, [])
            self._assign = tf.raw_ops.AssignVariableOp(resource=_handle(), value=self._text)
        self._session = tf.Session(target, graph, session_config([task]))
        self.set_phase(CONNECTING)

    def set_phase(self, phase):
        """Publishes the phase of the task."""
        self.card = self.card._replace(phase=phase)
        self._session.run(self._assign, {self._text: json.dumps(self.card)})


def _handle():
    return tf.raw_ops.VarHandleOp(dtype=tf.string, shape=[], shared_name='card')


def read_card(address):
    """Asks the task at an address for its card, for a few seconds; returns the Card, or the reason
    why there is none."""
    refusal = _refusal(address)
    if refusal:
        return refusal
    config = tf.ConfigProto(device_filters=['/job:none'], operation_timeout_in_ms=4000)
    # After a network failure, the connections that the sessions of a process share can hang for
    # minutes.
    config.rpc_options.disable_session_connection_sharing = True
    # Without it, a session with the address of this task would reach this process, whoever has the
    # address.
    config.rpc_options.use_rpc_for_inprocess_master = True
    try:
        with tf.Graph().as_default() as graph, tf.device('/cpu:0'):
            text = tf.raw_ops.ReadVariableOp(resource=_handle(), dtype=tf.string)
        session = tf.Session('grpc://' + address, graph, config)
        card = session.run(text)
        session.close()  # After an error, it would wait for the other task.
        return Card(*json.loads(card.decode()))
    except (TypeError, ValueError):
        return 'it has another version of this package'
    except tf.errors.FailedPreconditionError:
        return 'it is starting, or another program'
    except tf.errors.OpError:
        return 'it does not answer'


def _at_once(ask, cluster, tasks):
    """A dict from Tasks to what ask(address) returns; all are asked at the same time."""
    with futures.ThreadPoolExecutor(len(tasks) or 1) as pool:
        return dict(zip(tasks, pool.map(ask, map(cluster.address, tasks))))


def read_cards(cluster, tasks):
    """Reads the cards of several tasks: a dict from each Task to what `read_card` returns."""
    return _at_once(read_card, cluster, tasks)


def unreachable(cluster, tasks):
    """The tasks that accept no connection."""
    return [task for task, refusal in _at_once(_refusal, cluster, tasks).items() if refusal]


def absent(cluster, cards):
    """Names the tasks that do not answer or have other addresses, else those that do not train yet.

    Args:
      cluster: the Cluster of this process.
      cards: a dict from Tasks, see `read_cards`.

    Returns:
      A list of texts like 'worker 1 (host:2222: Connection refused)'.
    """
    missing, phases = {}, {}
    for task, card in cards.items():
        if isinstance(card, str):
            missing[task] = card
        elif card.cluster != cluster.text:
            missing[task] = 'started with ' + card.cluster
        elif card.phase != TRAINING:
            phases[task] = card.phase
    return [
        '%s (%s: %s)' % (task, cluster.address(task), why)
        for task, why in (missing or phases).items()
    ]


def await_run(cluster, secs):
    """Waits until the chief trains, or has found nothing to do, but at most `secs` seconds."""
    chief, deadline, phase = cluster.workers[0], time.monotonic() + secs, None
    print('Waiting for %s to train' % cluster.named(chief))
    while time.monotonic() < deadline and phase not in (FILLING, TRAINING):
        card = read_card(cluster.address(chief))
        if isinstance(card, Card):
            phase = card.phase
        elif phase == JOINING:  # A chief with nothing to do ends there.
            return
        time.sleep(_LOOK_SECS)


def _host_and_port(address):
    host, port = address.rsplit(':', 1)
    return host.strip('[]'), int(port)


def _refusal(address):
    """Why nobody accepts a connection at the address, or None."""
    try:
        socket.create_connection(_host_and_port(address), _CONNECT_SECS).close()
        return None
    except socket.timeout:
        return 'no answer'
    except OSError as error:
        return error.strerror or str(error)


def is_here(address):
    """Whether an address is one of this machine."""
    try:
        (family, _, _, _, found), *_ = socket.getaddrinfo(_host_and_port(address)[0], 0)
        with socket.socket(family) as listener:
            listener.bind(found)  # which only its own addresses allow
        return True
    except OSError:
        return False
