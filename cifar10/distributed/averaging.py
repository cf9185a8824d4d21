"""Averaging: each worker trains a copy of its own; now and then all copies take their average.

The workers send weights and moving averages, cut into equal parts, to the parameter servers. The
weight averager on the first one collects them and hands back their average. The state of the
optimizer stays with its worker.
"""

import queue
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.distributed import cluster_state, exchange
from cifar10.distributed.variable_placement import shared_variable

# How long others are waited for when the fastest worker has arrived, at least and in terms of the
# time that it took.
_FIRST_PATIENCE_SECS = 30  # in the first round: they may be starting still
_PATIENCE_SECS = 10
_PATIENCE_FACTOR = 2


def update(replica, unused_copies, gradients, unused_learning_rate, apply):
    """The last step before an exchange, and the exchange; the steps before it come from a hook. See
    synchronous.update."""
    hosts, step = replica.hosts, tf.train.get_global_step()
    local_op = apply(gradients)
    averaged = tf.trainable_variables() + tf.global_variables('.*/ExponentialMovingAverage')
    newest = cluster_state.variable(hosts[0], 'step')
    with tf.control_dependencies([local_op]):
        parts, reached = _cut(averaged, len(hosts)), step.read_value()
    filled = [slot(host, replica.task, part.shape).assign(part) for host, part in zip(hosts, parts)]
    with tf.control_dependencies([exchange.push(replica, reached, filled)]):
        generation = exchange.wait_for_update(replica, newest.read_value, reached - 1)
    with tf.control_dependencies([generation]):
        train_op = _take(averaged, hosts, parts, step)
    first = []
    for host, part in zip(hosts, _cut(averaged, len(hosts))):
        first.append(average(host, part.shape).assign(part))
        first += [slot(host, worker, part.shape).initializer for worker in replica.cluster.workers]
    with tf.control_dependencies([exchange.push(replica, tf.constant(-1, tf.int64), [])]):
        start_op = _take(averaged, hosts, parts, step)
    return exchange.Update(
        train_op,
        gradients,
        start_op,
        tf.group(*first),
        generation,
        hooks=[_LocalSteps(replica, local_op, step)],
    )


class _LocalSteps(tf.train.SessionRunHook):
    """Makes the steps of a period but the last one."""

    def __init__(self, replica, local_op, step):
        self._replica, self._local_op, self._step = replica, local_op, step

    def before_run(self, run_context):
        left = self._replica.job.pace.last_step - run_context.session.run(self._step)
        for _ in range(min(self._replica.strategy.average_period, left) - 1):
            run_context.session.run(self._local_op)
            self._replica.made_local_step()


def _part(host, name, shape):
    # The weight averager does not know the network: an initial value of unknown shape.
    initial = tf.placeholder_with_default(0.0, None) if shape is None else tf.zeros(shape)
    return shared_variable(host.device, 'averaging/%s_%d/' % host + name, initial)


def slot(host, worker, shape=None):
    """A parameter server's part of what a worker has sent; without a shape if it is not known."""
    return _part(host, 'worker_%d' % worker.index, shape)


def average(host, shape=None):
    """A parameter server's part of the newest average."""
    return _part(host, 'average', shape)


def _cut(variables, num_parts):
    """The values of the variables in one vector, cut into parts that are equal, but for the last
    one."""
    flat = exchange.flatten([variable.read_value() for variable in variables])
    size = flat.shape.num_elements()
    part = -(-size // num_parts)
    return tf.split(flat, [min(part, size - start) for start in range(0, size, part)])


def _take(variables, hosts, parts, step):
    """An operation that gives the variables the newest average, whose parts have the shapes of
    `parts`, and `step` the step of it."""
    newest = cluster_state.variable(hosts[0], 'step').read_value()
    # if another average is made meanwhile, the step is that of the older one
    with tf.control_dependencies([newest]):
        flat = tf.concat(
            [average(host, part.shape).read_value() for host, part in zip(hosts, parts)], 0
        )
    pairs = zip(variables, exchange.unflatten(flat, variables))
    return tf.group(step.assign(newest), *(variable.assign(value) for variable, value in pairs))


def round_op(cluster, is_counted, step):
    """An operation of the weight averager that averages what the counted workers have sent, and
    wakes all.

    Args:
      cluster: a Cluster.
      is_counted: bool [number of workers].
      step: int64 scalar, the step that they have reached.
    """
    averages = []
    for host in cluster.servers:
        with tf.device(host.device):
            sent = [slot(host, worker).read_value() for worker in cluster.workers]
            averages.append(average(host).assign(exchange.mean_of_counted(sent, is_counted)))
    with tf.control_dependencies(averages):
        return exchange.announce(cluster.servers, cluster.workers, step)


class WeightAverager:
    """Averages in rounds, on the first parameter server: a round ends when all members have
    arrived. Who does not come in time is no member until it arrives again."""

    def __init__(self, cluster, connect, read_board):
        """Makes a weight averager.

        Args:
          cluster: a Cluster.
          connect: a function that makes a tf.Session for a graph with these Tasks.
          read_board: a function that returns the Notice of the first parameter server.
        """
        self._cluster, self._connect, self._read_board = cluster, connect, read_board
        self._arrivals = queue.Queue()
        self._generation, self._members, self._arrived = 0, set(), set()
        with tf.Graph().as_default() as self._graph:
            self._step_reached = tf.placeholder(tf.int64, [])
            self._is_counted = tf.placeholder(tf.bool, [len(cluster.workers)])
            self._round = round_op(cluster, self._is_counted, self._step_reached)

    def run(self):
        """Makes rounds without end."""
        threading.Thread(target=self._receive, daemon=True).start()
        while True:
            # None before anybody has arrived
            remaining = max(0, self._deadline - time.monotonic()) if self._arrived else None
            try:
                self._take(*self._arrivals.get(timeout=remaining))
            except queue.Empty:
                missing = sorted(self._members - self._arrived)
                names = [self._cluster.named(self._cluster.workers[i]) for i in missing]
                print(
                    'Averaging goes on without %s, who sent nothing for %d seconds'
                    % (', '.join(names), self._patience)
                )
                self._members = set(self._arrived)
            if self._members and self._members <= self._arrived:
                self._average()

    def _receive(self):
        """Puts arrivals into a queue of Python as they come, where they can be waited for with a
        time limit."""
        host = self._cluster.servers[0]
        with tf.Graph().as_default() as graph:
            arrival = exchange.arrivals(host).dequeue()
        session = self._connect(graph, [host])
        while True:
            self._arrivals.put(session.run(arrival).tolist())

    def _take(self, generation, step, worker):
        """Counts an arrival, which also makes the worker a member."""
        if generation != self._generation:
            notice = self._read_board()
            if generation != notice.generation:
                return
            self._generation, self._step = generation, notice.step
            self._least_patience, self._began = _FIRST_PATIENCE_SECS, time.monotonic()
            self._members, self._arrived = set(range(len(self._cluster.workers))), set()
            self._session = self._connect(self._graph, self._cluster.servers)
        self._members.add(worker)
        if step > self._step:
            if not self._arrived:
                now = time.monotonic()
                self._patience = max(self._least_patience, _PATIENCE_FACTOR * (now - self._began))
                self._deadline = now + self._patience
            self._arrived.add(worker)
            self._reached = step

    def _average(self):
        is_counted = np.isin(np.arange(len(self._cluster.workers)), list(self._arrived))
        self._arrived = set()
        try:
            self._session.run(
                self._round, {self._is_counted: is_counted, self._step_reached: self._reached}
            )
        except tf.errors.OpError:
            # another parameter server is gone: the chief begins another generation when it is back
            self._generation, self._members = 0, set()
            return
        self._began, self._least_patience = time.monotonic(), _PATIENCE_SECS
        self._step = self._reached
