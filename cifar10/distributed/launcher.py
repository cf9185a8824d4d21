"""Launcher of a cluster on this machine: starts and restarts one process per task."""

import contextlib
import itertools
import os
import random
import re
import socket
import subprocess
import time

from cifar10 import errors
from cifar10.distributed.cluster import Cluster, Task
from cifar10.distributed.task_process import TaskProcess
from cifar10.system import signals

CHIEF_GRACE_SECS = 30  # for the chief's last checkpoint after a signal
PS_GRACE_SECS = 10  # for the end of the parameter servers after the workers
GRACE_SECS = 5  # for the end of other tasks
_POLL_SECS = 0.05

_GPU = re.compile(r'\d+|(GPU|MIG)-.+')  # in CUDA_VISIBLE_DEVICES: an index or a UUID


class Launcher:
    """Supervisor of the tasks of one cluster.

    A task is restarted after a signal or EX_TEMPFAIL. In an all-reduce, all tasks are restarted.
    Other statuses except 0 end all tasks. Exception: if a port is in use before any task has
    trained, all tasks are restarted on other ports.

    Workers get equal shares of the cores, if possible, and groups of GPUs. Workers share cores or
    GPUs if there are too few. Parameter servers get no GPUs.

    `run` returns after the end of all tasks. After SIGKILL of this process, each task ends at its
    next line of output, because the pipe is closed.
    """

    def __init__(self, command_of, num_ps, num_workers, gpus_per_worker, max_restarts):
        """Make a launcher; `run` starts the tasks.

        Args:
          command_of: a function that returns the command of a task, a list of strings, from the
            Cluster, the Task, and True if the run has begun.
          num_ps: the number of parameter servers; 0 means all-reduce.
          num_workers: the number of workers.
          gpus_per_worker: the number of GPUs of each worker.
          max_restarts: the maximum number of restarts.
        """
        self._command_of, self._restarts_left = command_of, max_restarts
        self._num_ps, self._num_workers = num_ps, num_workers
        self._names = [f'ps {index}' for index in range(num_ps)]
        self._names += [f'worker {index}' for index in range(num_workers)]
        self._gpus_per_worker = gpus_per_worker
        self._tasks = {}  # from names to the last TaskProcess
        self._stop = signals.StopRequest()
        self._is_stopping = self._has_begun = False

    def run(self):
        """Start the tasks and wait for their end.

        After the first signal, the chief saves a checkpoint, and all tasks end. A second signal
        kills them.

        Returns:
          The exit status: 0, or that of the failed task (128 + number after a signal).

        Raises:
          signals.SignalInterrupt: after a signal, if the chief's exit status is not 0.
        """
        with self._stop:
            try:
                self._assign_gpus()
                self._choose_ports()
                self._start(self._names)
                return self._supervise()
            except signals.SignalInterrupt:
                self._end('worker 0', CHIEF_GRACE_SECS)
                self._end('', GRACE_SECS)
                if self._tasks['worker 0'].status:
                    raise
                return 0
            finally:
                for task in self._running():
                    task.kill()

    def _choose_ports(self):
        hosts = [f'localhost:{port}' for port in free_ports(len(self._names))]
        self._cluster = Cluster(tuple(hosts[: self._num_ps]), tuple(hosts[self._num_ps :]))

    def _assign_gpus(self):
        """Assign groups of GPUs to the workers, and print the assignment."""
        gpus = _visible_gpus()
        gpu_cycle = itertools.cycle(gpus)  # workers share GPUs if there are too few
        self._gpus = [
            list(dict.fromkeys(itertools.islice(gpu_cycle, self._gpus_per_worker))) or None
            for _ in range(self._num_workers)
        ]
        if not gpus:
            return
        assignments = [f'worker {i} gets {", ".join(own)}' for i, own in enumerate(self._gpus)]
        print('GPUs: ' + '; '.join(assignments))
        num_requested = self._num_workers * self._gpus_per_worker
        if len(gpus) < num_requested:
            print(
                f'The workers request {num_requested} GPUs, but there are {len(gpus)}: workers share GPUs'
            )

    def _start(self, names):
        for name in names:
            job_name, index = name.split()
            task, cores, gpus = Task(job_name, int(index)), (), []
            if job_name == 'worker':
                cores, gpus = _worker_cores(task.index, self._num_workers), self._gpus[task.index]
            command = self._command_of(self._cluster, task, self._has_begun)
            self._tasks[name] = TaskProcess(name, command, cores, gpus)

    def _running(self, prefix=''):
        """Return the running tasks whose names have this prefix."""
        return [
            task
            for name, task in self._tasks.items()
            if name.startswith(prefix) and not task.has_ended()
        ]

    def _failed(self):
        """Return the tasks with an exit status other than 0; restartable ones are last."""
        failed = [task for task in self._tasks.values() if task.status]
        return sorted(failed, key=lambda task: task.is_restartable)

    def _supervise(self):
        while True:
            self._poll()
            workers = [self._tasks[name] for name in self._names[self._num_ps :]]
            if all(worker.status == 0 for worker in workers):
                self._end_ps_tasks()
                return 0
            if self._failed() and not self._restart():
                status = self._failed()[0].status
                self._end('worker', GRACE_SECS)
                self._end('', GRACE_SECS)
                return status if status > 0 else 128 - status

    def _poll(self):
        """Print the tasks' new lines.

        Raises:
          signals.SignalInterrupt: after the first signal, once.
        """
        time.sleep(_POLL_SECS)
        for task in self._tasks.values():
            task.print_lines()
            task.has_ended()  # This also records its exit status.
        if self._stop.received_signal and not self._is_stopping:
            self._is_stopping = True
            raise signals.SignalInterrupt(self._stop.received_signal)

    def _wait(self, tasks, secs):
        deadline = time.monotonic() + secs
        while not all(task.has_ended() for task in tasks) and time.monotonic() < deadline:
            self._poll()

    def _end(self, prefix, secs):
        """Terminate the tasks whose names have this prefix, and kill them after `secs`."""
        running = self._running(prefix)
        for task in running:
            task.terminate()
        self._wait(running, secs)
        for task in running:
            task.kill()

    def _end_ps_tasks(self):
        self._wait(self._running(), PS_GRACE_SECS)
        for task in self._running():
            errors.warn(
                f'{task.name} still runs {PS_GRACE_SECS} s after the end of the workers: it is terminated'
            )
        self._end('', GRACE_SECS)

    def _restart(self):
        """Restart the necessary tasks after a failure; return False if none is restarted."""
        if not self._num_ps and self._failed()[0].is_restartable:
            # The other workers soon fail too, possibly with an error that forbids a restart.
            self._wait(self._running(), GRACE_SECS)
        task, *others = self._failed()
        # Another process took a port before the first step, so nothing is lost.
        needs_ports = any(failed.cannot_listen for failed in [task] + others) and not any(
            each.has_trained for each in self._tasks.values()
        )
        names, action = [task.name], 'it is restarted'
        if not needs_ports and not task.is_restartable:
            names, action = [], 'it is not restarted'
        elif not self._restarts_left:
            names, action = [], 'no restarts are left'
        elif needs_ports:
            names, action = self._names, 'all tasks are restarted on other ports'
            self._choose_ports()
        elif not self._num_ps:
            names, action = self._names, 'all workers are restarted'
        if names:
            self._restarts_left -= 1
            action += f' ({self._restarts_left} restarts left)'
        errors.warn(f'{task.end_message}: {action}')
        self._has_begun |= self._tasks['worker 0'].has_trained
        for name in names:
            self._tasks[name].kill()
        self._start(names)
        return bool(names)


def free_ports(number):
    """Return different free ports of this machine.

    These ports are below the ephemeral ports of Linux, macOS and Windows. An outgoing connection
    could take an ephemeral port before the server starts.
    """
    ports = []
    # At random, so that simultaneous launchers seldom choose the same ports
    for port in random.SystemRandom().sample(range(10001, 2**15), 100 + number):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(('', port))
            ports.append(port)
    return ports[:number]


def _worker_cores(index, num_workers):
    """Return the cores of a worker; none if an equal division is impossible."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else []
    if not cores or max(len(cores), num_workers) % min(len(cores), num_workers):
        return []
    first = index * len(cores) // num_workers
    return cores[first : first + max(1, len(cores) // num_workers)]


def _visible_gpus():
    """Return the GPUs of CUDA_VISIBLE_DEVICES, else of nvidia-smi, else none."""
    visible = os.environ.get('CUDA_VISIBLE_DEVICES')
    if visible is None:
        command = ['nvidia-smi', '--query-gpu=index', '--format=csv,noheader']
        try:
            visible = subprocess.check_output(
                command,
                stderr=subprocess.DEVNULL,
                timeout=30,  # Without persistence mode, the driver initializes every GPU first.
                universal_newlines=True,
            ).replace('\n', ',')
        except (OSError, subprocess.SubprocessError):
            return []
    # CUDA ignores all entries from the first malformed one, such as -1, which hides all GPUs.
    return list(itertools.takewhile(_GPU.fullmatch, map(str.strip, visible.split(','))))
