"""The supervisor of averaging, on the first parameter server: collects what the workers send and
hands back the average."""

import queue
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.distributed import averaging, exchange

# How long others are waited for when the fastest worker has arrived, at least and in terms of the
# time that it took.
_FIRST_PATIENCE_SECS = 30  # in the first round: they may be starting still
_PATIENCE_SECS = 10
_PATIENCE_FACTOR = 2


class Supervisor:
    """Averages in rounds: one ends when all members have arrived. Who does not come in time is no
    member until it arrives again."""

    def __init__(self, cluster, connect, read_board):
        """Makes a supervisor.

        Args:
          cluster: a Cluster.
          connect: a function that makes a tf.Session for a graph with these Tasks.
          read_board: a function that returns the board.Notice of the first parameter server.
        """
        self._cluster = cluster
        self._connect = connect
        self._read_board = read_board
        self._arrivals = queue.Queue()
        self._generation, self._members = 0, set()
        with tf.Graph().as_default() as self._graph:
            self._step_reached = tf.placeholder(tf.int64, [])
            self._is_counted = tf.placeholder(tf.bool, [len(cluster.workers)])
            self._round = averaging.round_op(cluster, self._is_counted, self._step_reached)

    def run(self):
        """Makes rounds without end."""
        threading.Thread(target=self._receive, daemon=True).start()
        while True:
            try:
                self._take(*self._arrivals.get(timeout=self._remaining()))
            except queue.Empty:
                self._leave_out(self._members - set(self._arrived))
            if self._members and self._members <= set(self._arrived):
                self._average()

    def _receive(self):
        """Puts arrivals into a queue of Python as they come, where they can be waited for with a
        time limit."""
        host = self._cluster.servers[0]
        with tf.Graph().as_default() as graph:
            arrival = exchange.arrivals(host).dequeue()
        session = self._connect(graph, [host])
        while True:
            self._arrivals.put([int(number) for number in session.run(arrival)])

    def _remaining(self):
        """The seconds until the members that have not arrived are left out; None before anybody has
        arrived."""
        if not self._generation or not self._arrived:
            return None
        return max(0, self._deadline - time.monotonic())

    def _take(self, generation, step, worker):
        """Counts an arrival, which also makes the worker a member."""
        if generation != self._generation:
            notice = self._read_board()
            if generation != notice.generation:
                return
            self._generation, self._step, self._least_patience = (
                generation,
                notice.step,
                _FIRST_PATIENCE_SECS,
            )
            self._began = time.monotonic()
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

    def _leave_out(self, missing):
        print(
            'Averaging goes on without %s, who sent nothing for %d seconds'
            % (
                ', '.join(self._cluster.named(self._cluster.workers[i]) for i in sorted(missing)),
                self._patience,
            ),
            flush=True,
        )
        self._members -= missing

    def _average(self):
        is_counted = np.isin(np.arange(len(self._cluster.workers)), list(self._arrived))
        try:
            self._session.run(
                self._round, {self._is_counted: is_counted, self._step_reached: self._reached}
            )
        except tf.errors.OpError:
            # another parameter server is gone: the chief begins another generation when it is back
            self._generation, self._members = 0, set()
            return
        self._began, self._least_patience = time.monotonic(), _PATIENCE_SECS
        self._step, self._arrived = self._reached, set()
