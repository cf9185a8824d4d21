"""The other tasks of a cluster: which of them can be reached, and their cards.

A card is a variable on the server of each task: with which addresses the task was started, and in
which phase it is.
"""

from concurrent import futures
import errno
import json
import random
import socket
import time
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10.distributed.cluster import CONNECTING, FILLING, JOINING, TRAINING
from cifar10.errors import UserError

_CONNECT_SECS = 2
_ANSWER_SECS = 4
_LOOK_SECS = 0.5


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
        self._session = tf.Session(
            target, graph, tf.ConfigProto(device_filters=['/job:%s/task:%d' % task])
        )
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
    config = tf.ConfigProto(
        device_filters=['/job:none'], operation_timeout_in_ms=int(1000 * _ANSWER_SECS)
    )
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
        session.close()
        return Card(*json.loads(card.decode()))
    except (TypeError, ValueError):
        return 'it has another version of this package'
    except tf.errors.FailedPreconditionError:
        return 'it is starting, or another program'
    except tf.errors.OpError:
        return 'it does not answer'


def read_cards(cluster, tasks):
    """Reads the cards of several tasks at the same time: a dict from each Task to what `read_card`
    returns."""
    with futures.ThreadPoolExecutor(len(tasks) or 1) as pool:
        return dict(zip(tasks, pool.map(lambda task: read_card(cluster.address(task)), tasks)))


def check_cards(cluster, task, cards):
    """Raises UserError if a task was started with other addresses.

    Args:
      cluster, task: the Cluster and the Task of this process.
      cards: a dict from other Tasks, see `read_cards`.
    """
    for other, card in cards.items():
        if isinstance(card, Card) and card.cluster != cluster.text:
            raise UserError(
                '%s was started with %s, but %s with %s: give all tasks the same'
                % (cluster.named(other), card.cluster, cluster.named(task), cluster.text)
            )


def absent(cluster, cards):
    """Names the tasks that do not answer or have other addresses, else those that do not train yet.

    Args:
      cluster: the Cluster of this process.
      cards: a dict from Tasks, see `read_cards`.

    Returns:
      A list of texts like 'worker 1 (host:2222: Connection refused)'.
    """

    def listed(reasons):
        return [
            '%s (%s: %s)' % (task, cluster.address(task), why)
            for task, why in reasons.items()
            if why
        ]

    missing = {
        task: card
        if isinstance(card, str)
        else card.cluster != cluster.text and 'started with ' + card.cluster
        for task, card in cards.items()
    }
    return listed(missing) or listed(
        {task: card.phase for task, card in cards.items() if card.phase != TRAINING}
    )


def await_run(cluster, secs):
    """Waits until the chief trains, or has found nothing to do, but at most `secs` seconds."""
    chief, deadline, phase = cluster.workers[0], time.monotonic() + secs, None
    print('Waiting for %s to train' % cluster.named(chief), flush=True)
    while time.monotonic() < deadline and phase not in (FILLING, TRAINING):
        card = read_card(cluster.address(chief))
        if isinstance(card, Card):
            phase = card.phase
        elif phase == JOINING:  # A chief with nothing to do ends there.
            return
        time.sleep(_LOOK_SECS)


def unreachable(cluster, tasks):
    """The tasks that accept no connection."""
    with futures.ThreadPoolExecutor(len(tasks) or 1) as pool:
        return [
            task
            for task, refusal in zip(
                tasks, pool.map(lambda task: _refusal(cluster.address(task)), tasks)
            )
            if refusal
        ]


def _refusal(address):
    """Why nobody accepts a connection at the address, or None."""
    host, port = address.rsplit(':', 1)
    try:
        socket.create_connection((host.strip('[]'), int(port)), _CONNECT_SECS).close()
        return None
    except socket.timeout:
        return 'no answer'
    except OSError as error:
        return error.strerror or str(error)


def is_here(address):
    """Whether an address is one of this machine."""
    host = address.rsplit(':', 1)[0].strip('[]')
    try:
        (family, kind, protocol, _, found), *_ = socket.getaddrinfo(
            host, 0, type=socket.SOCK_STREAM
        )
        with socket.socket(family, kind, protocol) as listener:
            listener.bind(found)  # which only its own addresses allow
        return True
    except OSError:
        return False


def refused_port(address):
    """Why a server of this process cannot listen at the port of the address, or None."""
    port = int(address.rsplit(':', 1)[1])
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(('', port))
        except OSError as error:
            return (
                'the port is in use'
                if error.errno == errno.EADDRINUSE
                else error.strerror or str(error)
            )
    return None
