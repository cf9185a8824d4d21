"""Launcher of a cluster on this machine: starts and restarts one process per task."""

import contextlib
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from cifar10 import errors
from cifar10.distributed.cluster import EX_TEMPFAIL, Cluster, Task
from cifar10.system import signals

CHIEF_GRACE_SECS = 30  # for the chief's last checkpoint after a signal
GRACE_SECS = 10  # for the end of other tasks
_POLL_SECS = 0.05
_LOSS = ', loss = '  # in a log line of the trainer
_GPU = re.compile(r'\d+|(GPU|MIG)-.+')  # in CUDA_VISIBLE_DEVICES: an index or a UUID


class Launcher:
    """Supervisor of the tasks of one cluster.

    A task is started again after a signal or EX_TEMPFAIL. If the mode is not async, all tasks are:
    an all-reduce cannot continue, and an exact update needs one gradient of each worker. In the
    mode async, the other tasks continue, unless one of them waits in vain (EX_TEMPFAIL). Other
    statuses except 0 end all tasks.

    Workers get equal shares of the cores, if possible, and groups of GPUs. Workers share cores or
    GPUs if there are too few. Parameter servers get no GPUs.

    After SIGKILL of this process, each task ends at its next line of output, because the pipe is
    closed.
    """

    def __init__(self, command, num_ps, num_workers, max_restarts):
        """Make a launcher; `run` starts the tasks by a cluster_flags.TrainerCommand."""
        self._command = command
        self._num_ps, self._num_workers = num_ps, num_workers
        self._names = [f'ps {index}' for index in range(num_ps)]
        self._names += [f'worker {index}' for index in range(num_workers)]
        self._restarts_left = dict.fromkeys(self._names, max_restarts)
        self._tasks = {}  # from names to the last TaskProcess
        self._stop = signals.StopRequest()
        self._has_begun = False  # True after a step of the chief

    def run(self):
        """Start the tasks and wait for their end.

        After the first signal, the chief saves a checkpoint, and all tasks end. A second signal
        kills them.

        Returns:
          The exit status: 0, or that of the failed task (128 + number after a signal).

        Raises:
          KeyboardInterrupt: after a signal, if the chief's exit status is not 0.
        """
        with self._stop:
            try:
                self._assign_gpus()
                hosts = [f'localhost:{port}' for port in free_ports(len(self._names))]
                self._cluster = Cluster(tuple(hosts[: self._num_ps]), tuple(hosts[self._num_ps :]))
                self._start(self._names)
                return self._supervise()
            finally:
                for task in self._tasks.values():
                    task.kill()

    def _assign_gpus(self):
        """Assign groups of GPUs to the workers, and print the assignment."""
        gpus, num_gpus = _visible_gpus(), self._command.num_gpus
        gpu_cycle = itertools.cycle(gpus)  # workers share GPUs if there are too few
        self._gpus = [
            list(dict.fromkeys(itertools.islice(gpu_cycle, num_gpus))) or None
            for _ in range(self._num_workers)
        ]
        if not gpus:
            return
        assignments = [f'worker {i} gets {", ".join(own)}' for i, own in enumerate(self._gpus)]
        print('GPUs: ' + '; '.join(assignments))
        num_requested = self._num_workers * num_gpus
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
            command = self._command(self._cluster, task, self._has_begun)
            self._tasks[name] = TaskProcess(name, command, cores, gpus)

    def _supervise(self):
        """Restart lost tasks until the chief has ended, and return the exit status."""
        while self._tasks['worker 0'].status != 0:
            time.sleep(_POLL_SECS)
            if self._stop.received_signal:
                self._end(['worker 0'], CHIEF_GRACE_SECS)
                self._end(self._names, GRACE_SECS)
                if self._tasks['worker 0'].status:
                    raise KeyboardInterrupt(self._stop.received_signal)
                return 0
            failed = [task for task in self._tasks.values() if task.status]
            # A mistake comes first: the others then fail, too.
            for task in sorted(failed, key=lambda task: task.is_restartable)[:1]:
                if not self._restart(task):
                    self._end(self._names, GRACE_SECS)
                    return task.status if task.status > 0 else 128 - task.status
        # The run is saved. A task that is behind, or stopped, has nothing to add.
        self._wait(self._names, GRACE_SECS)
        self._end(self._names, GRACE_SECS)
        return 0

    def _wait(self, names, secs):
        deadline = time.monotonic() + secs
        while time.monotonic() < deadline and any(
            self._tasks[name].status is None for name in names
        ):
            time.sleep(_POLL_SECS)

    def _end(self, names, secs):
        """Terminate the tasks, and kill them after `secs`."""
        for name in names:
            self._tasks[name].terminate()
        self._wait(names, secs)
        for name in names:
            self._tasks[name].kill()

    def _restart(self, task):
        """Start the task, or all tasks, again; return False if that is not allowed."""
        is_alone = self._command.is_async and task.status != EX_TEMPFAIL
        names, action = self._names, 'all tasks are started again'
        if is_alone:
            names, action = [task.name], 'it is started again'
        if not task.is_restartable:
            names, action = [], 'it is not started again'
        elif not self._restarts_left[task.name]:
            names, action = [], 'no restarts are left'
        if names:
            self._restarts_left[task.name] -= 1
            action += f' ({self._restarts_left[task.name]} restarts left)'
        errors.warn(f'{task.end_message}: {action}')
        self._has_begun |= self._tasks['worker 0'].has_trained
        for name in names:
            self._tasks[name].kill()
        self._start(names)
        return bool(names)


class TaskProcess:
    """Process of a task; its output is printed with the task's name as prefix.

    It runs in its own session, so that Ctrl-C in a terminal reaches only the launcher.

    Attributes:
      name: such as 'worker 0'.
      has_trained: True after a log line of a step.
    """

    def __init__(self, name, command, cores=(), gpus=None):
        """Start the task on these cores (empty: all) and GPUs (None: those of this process)."""
        self.name, self.has_trained = name, False
        environment = dict(os.environ, PYTHONUNBUFFERED='1')
        environment.pop('TF_CONFIG', None)  # it may name another cluster
        # A proxy does not reach the tasks. gRPC reads the first name, in TensorFlow 1.15 the other.
        environment['no_grpc_proxy'] = 'localhost'
        others = environment.get('no_proxy', environment.get('NO_PROXY', ''))
        environment['no_proxy'] = f'{others},localhost'.lstrip(',')
        if gpus is not None:
            # nvidia-smi sorts by PCI bus, CUDA by speed.
            if 'CUDA_VISIBLE_DEVICES' not in environment:
                environment.setdefault('CUDA_DEVICE_ORDER', 'PCI_BUS_ID')
            environment['CUDA_VISIBLE_DEVICES'] = ','.join(gpus) or '-1'
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding='utf-8',
            errors='backslashreplace',
            env=environment,
            start_new_session=True,
        )
        signals.child_pids.add(self._process.pid)
        if cores:
            with contextlib.suppress(ProcessLookupError):  # the process has ended
                os.sched_setaffinity(self._process.pid, cores)
        pipes = [(self._process.stdout, 'stdout'), (self._process.stderr, 'stderr')]
        self._readers = [
            threading.Thread(target=self._copy, args=arguments, daemon=True) for arguments in pipes
        ]
        for reader in self._readers:
            reader.start()

    def _copy(self, pipe, stream):
        for line in pipe:
            self.has_trained |= _LOSS in line
            with contextlib.suppress(OSError):  # The reader of stderr may have closed it.
                print(f'[{self.name}] {line}', end='', file=getattr(sys, stream), flush=True)

    @property
    def status(self):
        """The exit status, after all output is printed; -number after a signal; None before."""
        status = self._process.poll()
        if status is not None and self._process.pid in signals.child_pids:
            signals.child_pids.discard(self._process.pid)
            for reader in self._readers:
                reader.join(timeout=1)  # Another process may hold the pipe open.
        return status

    def terminate(self):
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self):
        """Kill the process, and wait for its end."""
        self._process.kill()
        self._process.wait()
        signals.child_pids.discard(self._process.pid)

    @property
    def is_restartable(self):
        """True after a signal or EX_TEMPFAIL."""
        return self.status == EX_TEMPFAIL or self.status < 0 or self.status > 128

    @property
    def end_message(self):
        """Text with the exit status or the signal."""
        how = f'ended with status {self.status}'
        if self.status < 0:
            how = 'was ended by ' + signal.Signals(-self.status).name
        return f'{self.name} {how}'


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
