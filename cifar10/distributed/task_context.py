"""Context of a task: TensorFlow server, TaskInfo and watchdog.

The watchdog is a thread, because a call of TensorFlow's runtime may never return if the peer is
stopped or unreachable.
"""

import contextlib
import os
import sys
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.distributed import server
from cifar10.distributed.cluster import EX_TEMPFAIL, FILLING
from cifar10.errors import UserError

_POLL_SECS = 0.2
_FIRST_MESSAGE_SECS = 5
_NEXT_MESSAGE_SECS = 30
_ATTEMPTS = 3  # of connect_timeout_secs each, for the first contact
_DNS_UPDATE_SECS = 30  # until the name of a host resolves to its new address


def exit_process(message, status=EX_TEMPFAIL):
    """Print the message and end the process from any thread."""
    errors.warn(message)
    with contextlib.suppress(OSError, ValueError):  # a closed pipe
        sys.stdout.flush()
    os._exit(status)


class Watchdog:
    """Thread that prints the awaited tasks, and ends a process without progress."""

    def __init__(self, describe):
        """Start the thread, without a limit.

        Args:
          describe: a function that returns the phase, the awaited tasks ('' if unknown), and a
            reason why these may be unreachable, or ''. A call can take seconds.
        """
        self._describe = describe
        self._limit = None
        threading.Thread(target=self._run, daemon=True).start()

    def set_limit(self, secs, name):
        """Set the limit: end the process after `secs` seconds without a call of `reset`.

        For tasks that may be unreachable, the limit is three times as long. The status is 1, so
        that no supervisor restarts the process. `name` names the limit in the message.
        """
        self.reset()
        self._limit = secs, name

    def stop(self):
        """Remove the limit."""
        self._limit = None

    def reset(self):
        """Restart the timer."""
        self._last_progress = time.monotonic()

    def _run(self):
        try:
            self._poll()
        except Exception as error:  # Without a watchdog, the process could wait forever.
            exit_process(f'The watchdog failed ({error}): restart this task')

    def _poll(self):
        last_progress = None
        while True:
            time.sleep(_POLL_SECS)
            limit = self._limit  # read once, because another thread can set it
            if not limit:
                continue
            secs, _ = limit
            if last_progress != self._last_progress:
                last_progress, next_message, attempts = self._last_progress, _FIRST_MESSAGE_SECS, 1
            if time.monotonic() - last_progress < min(next_message, attempts * secs):
                continue
            phase, awaited, unreachable_reason = self._describe()
            if last_progress != self._last_progress or not self._limit:
                continue
            waited = time.monotonic() - last_progress
            if waited >= attempts * secs:
                self._end_after_timeout(limit, phase, awaited, unreachable_reason, attempts)
                attempts += 1
            if waited >= next_message:
                next_message += _NEXT_MESSAGE_SECS
                if awaited:
                    print(f'{phase.capitalize()}: waiting for {awaited}')

    @staticmethod
    def _end_after_timeout(limit, phase, awaited, unreachable_reason, attempts):
        secs, name = limit
        times = f'{attempts} times ' if attempts > 1 else ''
        waited = f'{phase.capitalize()}: waited {attempts * secs} seconds ({times}{name})'
        if unreachable_reason and attempts == _ATTEMPTS:
            exit_process(f'{waited} for {awaited}: {unreachable_reason}', status=1)
        if not unreachable_reason and phase == FILLING:
            exit_process(waited + ': restart this task, with a longer time if the disk is slow')
        if not unreachable_reason:
            awaited = awaited or 'an update, although all other tasks answer'
            exit_process(f'{waited} for {awaited}: restart this task when the others are running')


class TaskContext:
    """Server, TaskInfo and watchdog of a task.

    Attributes:
      cluster: a Cluster.
      task: a Task.
      target: the target of the server.
      timeouts: the Timeouts.
      watchdog: a Watchdog.
    """

    def __init__(self, cluster, task, config_proto, timeouts):
        """Start the server, and wait until it answers at the task's address.

        Args:
          cluster: see above.
          task: see above.
          config_proto: a tf.ConfigProto, see server.start_server.
          timeouts: see above.

        Raises:
          UserError: the port is not available, or another process answers at the task's address.
        """
        self.cluster, self.task, self.timeouts = cluster, task, timeouts
        self.target = server.start_server(cluster, task, config_proto)
        self._task_info = server.OwnTaskInfo(self.target, cluster, task)
        self._is_address_verified = False  # True if the task's address leads to this process
        self._has_connected = False  # True after an answer of the chief; on the chief, of any task
        self.watchdog = Watchdog(self._describe)
        self._start_timer('connect')
        self._verify_own_address()

    def _verify_own_address(self):
        first_seen = None  # time of the first answer of another process
        while True:
            found = server.read_task_info(self.cluster.address(self.task))
            self._is_address_verified = found == self._task_info.task_info
            if self._is_address_verified:
                return
            if isinstance(found, server.TaskInfo):
                first_seen = first_seen or time.monotonic()
                if time.monotonic() > first_seen + _DNS_UPDATE_SECS:
                    raise UserError(
                        f'Another process answers at the address of {self.cluster.describe(self.task)}, as {found.name}',
                        'check {task_index} and the addresses, or end that process',
                        'task_index',
                    )
            time.sleep(_POLL_SECS)

    def connect(self, graph, tasks):
        """Return a tf.Session for a graph with operations on only these Tasks."""
        return tf.Session(self.target, graph, server.config_with_device_filters(tasks))

    def set_phase(self, phase):
        """Publish the phase of the task, a constant of cluster.py."""
        if phase != self._task_info.task_info.phase:
            self._task_info.set_phase(phase)

    def _start_timer(self, name):
        """Start the watchdog with one of the Timeouts."""
        self._timer = name
        self.watchdog.set_limit(getattr(self.timeouts, name), name + '_timeout_secs')

    def join(self, phase, restarts_timer=True):
        """Record that the task has joined the others; publish its phase; restart the timer."""
        self._has_connected |= not self.task.is_chief
        if restarts_timer:
            self._start_timer('connect')
        self.set_phase(phase)

    def report_progress(self):
        """Restart the timer after an update."""
        self._has_connected = True
        if self._timer != 'stall':
            self._start_timer('stall')
        self.watchdog.reset()

    def read_task_infos(self, tasks):
        """Return a dict from each Task to the result of server.read_task_info."""
        task_infos = server.query_all(server.read_task_info, self.cluster, tasks)
        for task, task_info in task_infos.items():
            if isinstance(task_info, server.TaskInfo) and (self.task.is_chief or task.is_chief):
                self._has_connected = True
        return task_infos

    def check_addresses(self, task_infos):
        """Raise UserError if a task was started with other addresses."""
        for other, task_info in task_infos.items():
            if (
                isinstance(task_info, server.TaskInfo)
                and task_info.cluster != self.cluster.addresses
            ):
                name, own = self.cluster.describe(other), self.cluster.describe(self.task)
                raise UserError(
                    f'{name} was started with {task_info.cluster}, but {own} with {self.cluster.addresses}',
                    'give all tasks the same',
                )

    def wait_for_workers_to_leave(self, state_variables):
        """Wait until all reachable workers have left, at most for the stall timeout."""
        deadline = time.monotonic() + self.timeouts.stall
        while time.monotonic() < deadline:
            left = state_variables.read()[0].left
            remaining = [worker for worker in self.cluster.worker_tasks if not left[worker.index]]
            if len(server.unreachable_tasks(self.cluster, remaining)) == len(remaining):
                break
            time.sleep(_POLL_SECS)

    def _describe(self):
        """Return the phase, the awaited tasks and a reason; see Watchdog."""
        phase = self._task_info.task_info.phase
        if phase == FILLING:
            return phase, '', ''
        if not self._is_address_verified:
            address = self.cluster.address(self.task)
            found = server.read_task_info(address)
            reason = found if isinstance(found, str) else f'{found.name} answers'
            return (
                phase,
                f'{self.task} ({address}: {reason}), the address of this task',
                'check task_index and the addresses',
            )
        others = [
            task for task in self.cluster.ps_tasks + self.cluster.worker_tasks if task != self.task
        ]
        awaited = ', '.join(server.describe_awaited(self.cluster, self.read_task_infos(others)))
        if self._has_connected or not others:
            return phase, awaited, ''
        who = 'no other task has ever' if self.task.is_chief else 'the chief has never'
        return phase, awaited, who + ' answered; the run has ended, or the addresses are wrong'
