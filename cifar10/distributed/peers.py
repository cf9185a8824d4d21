"""Whether the other tasks can be reached, and whether they answer."""
from concurrent import futures
import errno
import socket
import threading

import tensorflow.compat.v1 as tf

_CONNECT_SECS = 2
_ANSWER_SECS = 4


def unreachable(cluster, tasks):
    """The tasks that accept no connection: a list of texts like 'worker 1 (host:2222: Connection refused)'."""
    return _texts(cluster, tasks, lambda task: _refusal(cluster.address(task)))


def silent(cluster, tasks):
    """The same for tasks that do not answer, such as a process that is stopped: it still accepts connections."""
    return _texts(cluster, tasks, lambda task: _silence(cluster.address(task), task))


def _texts(cluster, tasks, reason):
    with futures.ThreadPoolExecutor(len(tasks) or 1) as pool:
        reasons = list(zip(tasks, pool.map(reason, tasks)))
    return ['%s (%s: %s)' % (task, cluster.address(task), why) for task, why in reasons if why]


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


def _silence(address, task):
    """'it does not answer', or None if the TensorFlow server at the address computes something."""
    answered = threading.Event()

    def ask():
        config = tf.ConfigProto(device_filters=['/job:%s/task:%d' % task])
        try:
            with tf.Graph().as_default(), tf.device(task.device), tf.Session('grpc://' + address, config=config) as session:
                session.run(tf.constant(0))
        except tf.errors.OpError:  # it has just ended
            return
        answered.set()
    threading.Thread(target=ask, daemon=True).start()  # a call to a stopped process never ends
    return None if answered.wait(_ANSWER_SECS) else 'it does not answer'


def is_here(address):
    """Whether an address is one of this machine."""
    host = address.rsplit(':', 1)[0].strip('[]')
    try:
        (family, kind, protocol, _, found), *_ = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
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
            return 'the port is in use' if error.errno == errno.EADDRINUSE else error.strerror or str(error)
    return None
