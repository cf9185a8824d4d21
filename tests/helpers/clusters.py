"""Clusters on this machine: a process for each task, whose lines can be waited for, and which can be killed or stopped."""
import contextlib
import itertools
import json
from multiprocessing import reduction
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from cifar10.distributed import free_ports
from tests.helpers import observed, programs

DEADLINE_SECS = 100

_running = []
_servers = []  # the fork server, when it has been started


class _ForkServer:
    """See fork_server."""

    def __init__(self):
        self._channel, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', 'tests.helpers.fork_server', str(theirs.fileno())], cwd=programs.ROOT, bufsize=0,
            env=dict(os.environ, PYTHONPATH=programs.ROOT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs.fileno()])
        theirs.close()
        self._started, self._statuses = queue.Queue(), {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self._process.stdout:
            process, *status = map(int, line.split())
            if status:
                self._statuses[process].put(status[0])
            else:
                self._statuses[process] = queue.Queue()
                self._started.put(process)

    def start(self, request, files):
        """Starts a task; returns the number of its process, and a queue into which its exit status comes."""
        self._process.stdin.write((json.dumps(request) + '\n').encode())
        reduction.sendfds(self._channel, files)
        process = self._started.get(timeout=DEADLINE_SECS)
        return process, self._statuses[process]


class Task:
    """A process of cifar10_distributed_train.py, and what it has printed, as far as it has been looked at.

    Attributes:
      seen: a list of lines of the output.
      complaints: a list of all lines on stderr.
    """

    def __init__(self, command, environment=None, **observation):
        """Starts it; see observed.observe about `observation`."""
        if not _servers:
            _servers.append(_ForkServer())
        (output, output_end), (errors, errors_end) = os.pipe(), os.pipe()
        request = dict(command=[programs.path('cifar10_distributed_train')] + command, environment=environment or {},
            observed=observation)
        self._process, self._status = _servers[0].start(request, [output_end, errors_end])
        os.close(output_end)
        os.close(errors_end)
        self.seen, self.complaints, self._lines, self._ended = [], [], queue.Queue(), None
        self._readers = [threading.Thread(target=_read, args=arguments, daemon=True) for arguments in [
            (output, self._lines.put, [None]), (errors, self.complaints.append, [])]]
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
                raise AssertionError('No line with %r:\n%s' % (pattern, '\n'.join(self.seen[-50:] + self.complaints)))
            self.seen.append(line)
            match = re.search(pattern, line)
            if match:
                return match

    def end(self):
        """Waits for the end; returns the exit status, or minus the signal that ended it."""
        if self._ended is None:
            self._ended = self._status.get(timeout=DEADLINE_SECS)
            for reader in self._readers:
                reader.join(DEADLINE_SECS)
            _running.remove(self)
            while self._lines.queue[0] is not None:
                self.seen.append(self._lines.get())
        return self._ended

    def signal(self, number):
        """Sends a signal."""
        os.kill(self._process, number)

    def kill(self):
        """Kills it, also if it is stopped, and waits until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.end()


def _read(file, take, last):
    with os.fdopen(file, errors='backslashreplace') as lines:
        for line in itertools.chain(lines, last):
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

    def __init__(self, num_ps, num_workers, *flags, gate=None, digests=False):
        """Starts nothing yet; see observed.observe about `gate` and `digests`."""
        self.names = ['ps %d' % i for i in range(num_ps)] + ['worker %d' % i for i in range(num_workers)]
        hosts = ['localhost:%d' % port for port in free_ports.choose(len(self.names))]
        self.addresses = dict(zip(self.names, hosts))
        self.flags = ['--worker_hosts=' + ','.join(hosts[num_ps:])] + list(flags)
        if num_ps:
            self.flags.append('--ps_hosts=' + ','.join(hosts[:num_ps]))
        self.tasks = {}
        self._observation = dict(gate=gate, digests=digests)

    def start(self, *names, flags=(), environment=None):
        """Starts the tasks of these names, or all."""
        for name in names or self.names:
            job, index = name.split()
            self.tasks[name] = Task(['--job_name=' + job, '--task_index=' + index] + self.flags + list(flags), environment,
                                    **self._observation)

    def allow(self, step):
        """Opens the gate up to a step."""
        observed.write(self._observation['gate'], step)

    def wait_until_held(self, step, *names):
        """Waits until each of these workers has come to the gate at this step, or a later one."""
        for name in names:
            while int(self.wait_for(name, r'^Held at step (\d+)$').group(1)) < step:
                pass

    def wait_for(self, name, pattern):
        """See Task.wait_for."""
        return self.tasks[name].wait_for(pattern)

    def end_all(self):
        """Waits for the end of all tasks; returns a dict from names to statuses."""
        return {name: task.end() for name, task in self.tasks.items()}

    def text(self, name):
        """What has been seen of the lines of a task."""
        return '\n'.join(self.tasks[name].seen)
