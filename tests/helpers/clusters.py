"""Clusters on this machine: a process for each task, whose lines can be waited for, and which can be killed or stopped."""
import os
import queue
import random
import re
import signal
import socket
import threading
import time

from tests.helpers import programs

DEADLINE_SECS = 100
PORT_IN_USE = 'the port is in use'


def free_ports(count):
    """Different ports at which nobody listens; below those that the system gives to outgoing connections."""
    found = []
    while len(found) < count:
        port = random.randrange(12000, 32000)
        with socket.socket() as probe:
            if port not in found and probe.connect_ex(('localhost', port)):
                found.append(port)
    return found


class Cluster:
    """The tasks of a job; a task's name is like 'ps 0' or 'worker 1'."""

    def __init__(self, num_ps, num_workers, *flags):
        ports = free_ports(num_ps + num_workers)
        hosts = ['localhost:%d' % port for port in ports]
        self.names = ['ps %d' % i for i in range(num_ps)] + ['worker %d' % i for i in range(num_workers)]
        self.addresses = dict(zip(self.names, hosts))
        self._flags = ['--worker_hosts=' + ','.join(hosts[num_ps:])] + list(flags)
        if num_ps:
            self._flags.append('--ps_hosts=' + ','.join(hosts[:num_ps]))
        self._processes, self._lines, self.seen = {}, {}, {name: [] for name in self.names}

    def start(self, *names, flags=()):
        """Starts the tasks of these names, or all."""
        for name in names or self.names:
            job, index = name.split()
            process = programs.start('cifar10_distributed_train', '--job_name=' + job, '--task_index=' + index,
                                     *self._flags + list(flags))
            lines = queue.Queue()
            for stream in (process.stdout, process.stderr):
                threading.Thread(target=_read, args=(stream, lines), daemon=True).start()
            self._processes[name], self._lines[name] = process, lines

    def wait_for(self, name, pattern):
        """Waits until the task prints a line that has the pattern; returns the match.

        Raises:
          AssertionError: it ends before, or the deadline passes.
        """
        deadline, ended = time.monotonic() + DEADLINE_SECS, 0
        while ended < 2:
            line = self._lines[name].get(timeout=max(0.01, deadline - time.monotonic()))
            ended += line is None
            if line is not None:
                self.seen[name].append(line)
                match = re.search(pattern, line)
                if match:
                    return match
        raise AssertionError('%s ended without %r:\n%s' % (name, pattern, '\n'.join(self.seen[name][-20:])))

    def end(self, name):
        """Waits for the end of a task; returns its status."""
        status = self._processes[name].wait(timeout=DEADLINE_SECS)
        for line in iter(self._lines[name].get, None):
            self.seen[name].append(line)
        for line in iter(self._lines[name].get, None):
            self.seen[name].append(line)
        return status

    def end_all(self):
        """Waits for the end of all tasks; returns a dict from names to statuses."""
        return {name: self.end(name) for name in self._processes}

    def signal(self, name, number):
        """Sends a signal to a task."""
        os.kill(self._processes[name].pid, number)

    def kill(self, name):
        """Kills a task, and waits until it is gone."""
        self.signal(name, signal.SIGKILL)
        self._processes[name].wait(timeout=DEADLINE_SECS)

    def text(self, name):
        """What has been seen of the lines of a task."""
        return '\n'.join(self.seen[name])


def _read(stream, lines):
    try:
        for line in stream:
            lines.put(line.rstrip('\n'))
    except ValueError:  # closed at the end of the test
        pass
    lines.put(None)
