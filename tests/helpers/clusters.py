"""Clusters on this machine: a process for each task, whose lines can be waited for, and which can
be killed or stopped."""

import itertools
import queue
import re
import subprocess
import threading
import time

from cifar10.distributed import launcher
from tests.helpers import forks, messages, observed, programs

DEADLINE_SECS = 100

_running = []


class Task:
    """A process of cifar10_distributed_train.py, and what it has printed, as far as it has been
    looked at.

    Attributes:
      stdout_lines: a list of lines of the output.
      stderr_lines: a list of all lines on stderr.
    """

    def __init__(self, command, environment=None, **observation):
        """Starts it; see observed.observe about `observation`."""
        self._process = forks.Process(
            [programs.path('cifar10_distributed_train')] + command, environment, **observation
        )
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
        """Waits until a line of the output has the pattern; returns the match.

        Raises:
          AssertionError: the process ends before, or the deadline passes.
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
        """Waits for the end; returns the exit status, or minus the signal that ended it."""
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
        """Sends a signal."""
        self._process.send_signal(number)

    def kill(self):
        """Kills it, also if it is stopped, and waits until it is gone."""
        self._process.kill()
        self.end()


def _read(stream, take, last):
    with stream:
        for line in itertools.chain(stream, last):
            take(line and line.rstrip('\n'))


def end_all():
    """Kills every task that is still running."""
    while _running:
        _running[0].kill()


class Cluster:
    """The tasks of a job; a task's name is like 'ps 0' or 'worker 1'.

    Attributes:
      flags: a list of those that every task gets.
      tasks: dict from names to Tasks, the newest one of each name.
    """

    def __init__(self, num_ps, num_workers, *flags, gate=None, **observation):
        """Starts nothing yet; see observed.observe about `gate` and `observation`."""
        self.names = [f'ps {i}' for i in range(num_ps)] + [
            f'worker {i}' for i in range(num_workers)
        ]
        hosts = [f'localhost:{port}' for port in launcher.free_ports(len(self.names))]
        self.addresses = dict(zip(self.names, hosts))
        self.flags = ['--worker_hosts=' + ','.join(hosts[num_ps:])] + list(flags)
        if num_ps:
            self.flags.append('--ps_hosts=' + ','.join(hosts[:num_ps]))
        self.tasks = {}
        self._observation = dict(observation, gate=gate)

    def start_another(self, name, *flags, **observation):
        """Starts and returns a Task of this name that is none of `tasks`."""
        job, index = name.split()
        own = ['--job_name=' + job, '--task_index=' + index]
        return Task(own + self.flags + list(flags), **dict(self._observation, **observation))

    def start(self, *names, flags=()):
        """Starts the tasks of these names, or all."""
        for name in names or self.names:
            self.tasks[name] = self.start_another(name, *flags)

    def kill(self, name):
        """Kills a task."""
        self.tasks[name].kill()

    def allow(self, step=10**9):
        """Opens the gate up to a step, or for good: closed at the last step, it would hold the
        second worker there for ever."""
        observed.write(self._observation['gate'], step)

    def wait_until_blocked(self, step, *names):
        """Waits until each of these workers, or all, has come to the gate at this step, or a later
        one."""
        for name in names or [name for name in self.names if name.startswith('worker')]:
            while int(self.wait_for(name, r'^Blocked at step (\d+)$').group(1)) < step:
                pass

    def wait_for(self, name, pattern):
        """See Task.wait_for."""
        return self.tasks[name].wait_for(pattern)

    def joined_step(self, name):
        """The step at which a worker joins the run."""
        return int(self.wait_for(name, r'^Joining the run at step (\d+)$').group(1))

    def resumed_step(self):
        """The step at which the chief resumes the run."""
        return int(self.wait_for('worker 0', '^' + messages.RESUMED).group(1))

    def succeed(self):
        """Waits for the end of all tasks, and asserts that each has the status 0."""
        assert set(self.end_all().values()) == {0}

    def end_all(self):
        """Waits for the end of all tasks; returns a dict from names to statuses."""
        # Servers wait for workers.
        return {name: task.end() for name, task in sorted(self.tasks.items(), reverse=True)}

    def text(self, name):
        """What has been seen of the lines of a task."""
        return '\n'.join(self.tasks[name].stdout_lines)


def factory(tmp_path, data_dir, flags, gate=10**9):
    """Returns a function that makes a Cluster, whose run is in tmp_path / 'run', and which trains
    up to the step of its gate."""

    def make(num_ps, num_workers, *further, gate=gate):
        path = str(tmp_path / 'gate')
        observed.write(path, gate)
        return Cluster(
            num_ps,
            num_workers,
            '--data_dir=' + data_dir,
            f'--train_dir={tmp_path / "run"}',
            *flags + list(further),
            gate=path,
        )

    return make
