"""Clusters on this machine, one process per task."""

import itertools
import queue
import re
import subprocess
import threading
import time

from cifar10.distributed import launcher
from tests.helpers import forks, gates, messages, programs

DEADLINE_SECS = 100
FLAGS = ['--batch_size=8'] + [f'--{threads}_threads=1' for threads in ('intra_op', 'inter_op')]

_running = []


class Task:
    """Process of cifar10_distributed_train.py.

    Attributes:
      stdout_lines: the list of lines of stdout that `wait_for` has read; all after `end`.
      stderr_lines: the list of all lines of stderr.
    """

    def __init__(self, command, environment=None, gate=None):
        """Start the process; see forks.Process."""
        command = [programs.path('cifar10_distributed_train')] + command
        self._process = forks.Process(command, environment, gate=gate)
        self.stdout_lines, self.stderr_lines, self._lines = [], [], queue.Queue()
        self._readers = [
            threading.Thread(target=_read, args=arguments, daemon=True)
            for arguments in [
                (self._process.stdout, self._lines.put, [None]),
                (self._process.stderr, self.stderr_lines.append, []),
            ]
        ]
        for reader in self._readers:
            reader.start()
        _running.append(self)

    def wait_for(self, pattern):
        """Wait for a line of stdout with the pattern, and return the match.

        Raises:
          AssertionError: the process ends first, or the deadline passes.
        """
        deadline = time.monotonic() + DEADLINE_SECS
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self._lines.put(None)
                lines = '\n'.join(self.stdout_lines[-50:] + self.stderr_lines)
                raise AssertionError(f'No line with {pattern!r}:\n{lines}')
            self.stdout_lines.append(line)
            match = re.search(pattern, line)
            if match:
                return match

    def end(self):
        """Wait for the end, and return the exit status, or minus the number of the signal."""
        if self in _running:
            try:
                self._process.wait(DEADLINE_SECS)
            except subprocess.TimeoutExpired:
                self.stdout_lines += filter(None, self._lines.queue)
                lines = '\n'.join(self.stdout_lines + self.stderr_lines)
                raise AssertionError(f'It does not end:\n{lines}')
            for reader in self._readers:
                reader.join(DEADLINE_SECS)
            self._process.stdin.close()
            _running.remove(self)
            while self._lines.queue[0] is not None:
                self.stdout_lines.append(self._lines.get())
        return self._process.returncode

    def signal(self, number):
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self):
        """Kill the process, even if stopped, and wait for its end."""
        self._process.kill()
        self.end()


def _read(stream, take, last):
    with stream:
        for line in itertools.chain(stream, last):
            take(line and line.rstrip('\n'))


def end_all():
    """Kill all running tasks."""
    while _running:
        _running[0].kill()


class Cluster:
    """Tasks of a cluster, with names like 'ps 0' and 'worker 1'.

    Attributes:
      flags: the list of flags of every task.
      tasks: dict from names to the newest Tasks.
    """

    def __init__(self, num_ps, num_workers, *flags, gate=None):
        """Choose addresses; see gates.py about `gate`."""
        self.names = [f'ps {i}' for i in range(num_ps)] + [
            f'worker {i}' for i in range(num_workers)
        ]
        hosts = [f'localhost:{port}' for port in launcher.free_ports(len(self.names))]
        self.addresses = dict(zip(self.names, hosts))
        self.flags = ['--worker_hosts=' + ','.join(hosts[num_ps:])] + list(flags)
        if num_ps:
            self.flags.append('--ps_hosts=' + ','.join(hosts[:num_ps]))
        self.tasks, self._gate = {}, gate

    def start_another(self, name, *flags):
        """Start and return a Task of this name outside of `tasks`."""
        job, index = name.split()
        own = ['--job_name=' + job, '--task_index=' + index]
        return Task(own + self.flags + list(flags), gate=self._gate)

    def start(self, *names, flags=()):
        """Start the tasks of these names, or all."""
        for name in names or self.names:
            self.tasks[name] = self.start_another(name, *flags)

    def kill(self, name):
        """Kill a task."""
        self.tasks[name].kill()

    def allow(self, step=10**9):
        """Open the gate up to a step, or forever, because it would block the last step."""
        gates.open_to(self._gate, step)

    def wait_until_blocked(self, step, *names):
        """Wait until each of these workers, or all, are at the gate at this step or later."""
        for name in names or [name for name in self.names if name.startswith('worker')]:
            while int(self.wait_for(name, r'^Blocked at step (\d+)$').group(1)) < step:
                pass

    def wait_for(self, name, pattern):
        """See Task.wait_for."""
        return self.tasks[name].wait_for(pattern)

    def resumed_step(self):
        """Return the step at which the chief resumes the run."""
        return int(self.wait_for('worker 0', '^' + messages.RESUMED).group(1))

    def succeed(self):
        """Wait for the end of all tasks, and assert status 0."""
        assert set(self.end_all().values()) == {0}

    def end_all(self):
        """Wait for the end of all tasks; return a dict from names to exit statuses."""
        # Servers wait for workers.
        return {name: task.end() for name, task in sorted(self.tasks.items(), reverse=True)}

    def text(self, name):
        """Return the text of a task's stdout_lines."""
        return '\n'.join(self.tasks[name].stdout_lines)


def factory(tmp_path, data_dir, flags, gate=10**9):
    """Return a function that makes a Cluster with a gate and the run tmp_path / 'run'."""

    def make(num_ps, num_workers, *further, gate=gate):
        path = str(tmp_path / 'gate')
        gates.open_to(path, gate)
        return Cluster(
            num_ps,
            num_workers,
            '--data_dir=' + data_dir,
            f'--train_dir={tmp_path / "run"}',
            *FLAGS + flags + list(further),
            gate=path,
        )

    return make
