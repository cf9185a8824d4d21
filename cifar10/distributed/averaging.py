"""Averaging of the workers' weights after every period of local steps.

Each worker sends its weights and moving averages in equal parts, one per parameter server. The
weight averager on the first server computes the average. The optimizer's state stays local.
"""

import queue
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.distributed import cluster_state, exchange
from cifar10.distributed.variable_placement import shared_variable

# Timeout of a round, from the arrival of the fastest worker
_FIRST_ROUND_TIMEOUT_SECS = 30  # minimum of the first round: workers may still start
_MIN_TIMEOUT_SECS = 10  # minimum of later rounds
_TIMEOUT_FACTOR = 2  # multiplies the time of the fastest worker


def update(worker, unused_copies, gradients, unused_learning_rate, apply_gradients):
    """Return the Update of a worker; see synchronous.update.

    The train op runs the last step of a period and the exchange. A hook runs the other steps.
    """
    ps_tasks, step = worker.state_tasks, tf.train.get_global_step()
    local_op = apply_gradients(gradients)
    averaged_variables = tf.trainable_variables() + tf.global_variables(
        '.*/ExponentialMovingAverage'
    )
    newest_step = cluster_state.variable(ps_tasks[0], 'step')
    with tf.control_dependencies([local_op]):
        parts, reached_step = _split(averaged_variables, len(ps_tasks)), step.read_value()
    assign_ops = [
        buffer(ps_task, worker.task, part.shape).assign(part)
        for ps_task, part in zip(ps_tasks, parts)
    ]
    with tf.control_dependencies([exchange.report_arrival(worker, reached_step, assign_ops)]):
        generation = exchange.wait_for_update(worker, newest_step.read_value, reached_step - 1)
    with tf.control_dependencies([generation]):
        train_op = _assign_average(averaged_variables, ps_tasks, parts, step)
    init_ops = []
    for ps_task, part in zip(ps_tasks, _split(averaged_variables, len(ps_tasks))):
        init_ops.append(average(ps_task, part.shape).assign(part))
        init_ops += [
            buffer(ps_task, task, part.shape).initializer for task in worker.cluster.worker_tasks
        ]
    with tf.control_dependencies([exchange.report_arrival(worker, tf.constant(-1, tf.int64), [])]):
        worker_init_op = _assign_average(averaged_variables, ps_tasks, parts, step)
    return exchange.Update(
        train_op,
        gradients,
        worker_init_op,
        tf.group(*init_ops),
        generation,
        hooks=[_LocalSteps(worker, local_op, step)],
    )


class _LocalSteps(tf.train.SessionRunHook):
    """Hook for all steps of a period but the last one."""

    def __init__(self, worker, local_op, step):
        self._worker, self._local_op, self._step = worker, local_op, step

    def before_run(self, run_context):
        """Run local steps; the train op makes the last one of the period or run."""
        remaining_steps = self._worker.job.run_length.last_step - run_context.session.run(
            self._step
        )
        for _ in range(min(self._worker.strategy.average_period, remaining_steps) - 1):
            run_context.session.run(self._local_op)
            self._worker.report_local_step()


def _part(ps_task, name, shape):
    # The weight averager does not know the shapes of the network.
    initial = tf.placeholder_with_default(0.0, None) if shape is None else tf.zeros(shape)
    full_name = f'averaging/{ps_task.job_name}_{ps_task.index}/{name}'
    return shared_variable(ps_task.device, full_name, initial)


def buffer(ps_task, worker_task, shape=None):
    """Return the buffer on a parameter server for a part of a worker's weights."""
    return _part(ps_task, f'worker_{worker_task.index}', shape)


def average(ps_task, shape=None):
    """Return a parameter server's part of the newest average."""
    return _part(ps_task, 'average', shape)


def _split(variables, num_parts):
    """Flatten the values of the variables, and split them into parts of equal size.

    The last part can be smaller.
    """
    flat = exchange.flatten([variable.read_value() for variable in variables])
    size = flat.shape.num_elements()
    part = -(-size // num_parts)
    return tf.split(flat, [min(part, size - start) for start in range(0, size, part)])


def _assign_average(variables, ps_tasks, parts, step):
    """Return an operation that assigns the newest average and its step to `variables` and `step`.

    `parts` give the shapes.
    """
    newest_step = cluster_state.variable(ps_tasks[0], 'step').read_value()
    # Read the step first: a round between the reads can change the average.
    with tf.control_dependencies([newest_step]):
        flat = tf.concat(
            [average(ps_task, part.shape).read_value() for ps_task, part in zip(ps_tasks, parts)], 0
        )
    pairs = zip(variables, exchange.unflatten(flat, variables))
    return tf.group(
        step.assign(newest_step), *(variable.assign(value) for variable, value in pairs)
    )


def average_op(cluster, mask, step):
    """Return an operation that averages the buffers in `mask` and wakes all workers.

    Args:
      cluster: a Cluster.
      mask: bool [number of workers].
      step: int64 scalar, the step of these workers.
    """
    averages = []
    for ps_task in cluster.ps_tasks:
        with tf.device(ps_task.device):
            sent = [buffer(ps_task, task).read_value() for task in cluster.worker_tasks]
            averages.append(average(ps_task).assign(exchange.masked_mean(sent, mask)))
    with tf.control_dependencies(averages):
        return exchange.publish_step(cluster.ps_tasks, cluster.worker_tasks, step)


class WeightAverager:
    """Rounds of averaging on the first parameter server.

    A round ends when all active workers have arrived. After a timeout, late workers are inactive
    until they arrive.
    """

    def __init__(self, cluster, connect, read_state, max_timeout):
        """Build the graph.

        Args:
          cluster: a Cluster.
          connect: a function that makes a tf.Session from a graph and a list of Tasks.
          read_state: a function that returns the ClusterState of the first parameter server.
          max_timeout: the longest timeout of a round, in seconds. The waiting workers must not
            reach their limit for an update first.
        """
        self._cluster, self._connect, self._read_state = cluster, connect, read_state
        self._max_timeout = max_timeout
        self._arrivals = queue.Queue()
        self._generation, self._active_workers, self._arrived = 0, set(), set()
        with tf.Graph().as_default() as self._graph:
            self._step_placeholder = tf.placeholder(tf.int64, [])
            self._mask_placeholder = tf.placeholder(tf.bool, [len(cluster.worker_tasks)])
            self._average_op = average_op(cluster, self._mask_placeholder, self._step_placeholder)

    def run(self):
        """Run rounds forever."""
        threading.Thread(target=self._receive, daemon=True).start()
        while True:
            remaining = max(0, self._deadline - time.monotonic()) if self._arrived else None
            try:
                self._count_arrival(*self._arrivals.get(timeout=remaining))
            except queue.Empty:
                missing = sorted(self._active_workers - self._arrived)
                names = [self._cluster.describe(self._cluster.worker_tasks[i]) for i in missing]
                print(
                    f'Averaging without {", ".join(names)}: no weights for {int(self._timeout)} seconds'
                )
                self._active_workers = set(self._arrived)
            if self._active_workers and self._active_workers <= self._arrived:
                self._average()

    def _receive(self):
        """Move arrivals to a Python queue, whose `get` has a timeout."""
        ps_task = self._cluster.ps_tasks[0]
        with tf.Graph().as_default() as graph:
            arrival = exchange.arrival_queue(ps_task).dequeue()
        session = self._connect(graph, [ps_task])
        while True:
            self._arrivals.put(session.run(arrival).tolist())

    def _count_arrival(self, generation, step, worker_index):
        """Count an arrival of the newest generation; the worker becomes active."""
        if generation != self._generation:
            state = self._read_state()
            if generation != state.generation:
                return
            self._generation, self._step = generation, state.step
            self._min_timeout, self._round_start = _FIRST_ROUND_TIMEOUT_SECS, time.monotonic()
            self._active_workers, self._arrived = set(range(len(self._cluster.worker_tasks))), set()
            self._session = self._connect(self._graph, self._cluster.ps_tasks)
        self._active_workers.add(worker_index)
        if step > self._step:
            if not self._arrived:
                now = time.monotonic()
                timeout = max(self._min_timeout, _TIMEOUT_FACTOR * (now - self._round_start))
                self._timeout = min(timeout, self._max_timeout)
                self._deadline = now + self._timeout
            self._arrived.add(worker_index)
            self._next_step = step

    def _average(self):
        mask = np.isin(np.arange(len(self._cluster.worker_tasks)), list(self._arrived))
        self._arrived = set()
        try:
            self._session.run(
                self._average_op,
                {self._mask_placeholder: mask, self._step_placeholder: self._next_step},
            )
        except tf.errors.OpError:
            # A parameter server is lost. After its restart, the chief begins another generation.
            self._generation, self._active_workers = 0, set()
            return
        self._round_start, self._min_timeout = time.monotonic(), _MIN_TIMEOUT_SECS
        self._step = self._next_step
