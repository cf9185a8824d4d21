"""Scripts forked from a process that has imported TensorFlow; see fork_server."""

import concurrent.futures
import contextlib
import json
from multiprocessing import reduction
import os
import queue
import signal
import socket
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE_SECS = 120

_servers = []  # the fork server, once started


class Process:
    """Forked script with the interface of a subprocess.Popen with three text pipes."""

    def __init__(self, command, environment=None, checkout=ROOT, gate=None):
        """Start a script.

        Args:
          command: list of strings, the script's file and its arguments.
          environment: a dict of environment variables.
          checkout: the script's working directory, and the place of its packages.
          gate: the path of a gate, see gates.py.
        """
        if not _servers:
            _servers.append(_Server())
        theirs, ours = zip(os.pipe(), *[reversed(os.pipe()) for _ in range(2)])
        request = dict(command=command, environment=environment or {}, checkout=checkout, gate=gate)
        self.pid, self._status = _servers[0].fork(request, theirs)
        for file in theirs:
            os.close(file)
        self.stdin = os.fdopen(ours[0], 'w')
        self.stdout, self.stderr = [os.fdopen(file, errors='backslashreplace') for file in ours[1:]]
        self.returncode = None

    def poll(self):
        """Return the exit status, minus the signal number, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        """Wait for the end; return the exit status.

        Raises:
          subprocess.TimeoutExpired: the timeout has passed.
        """
        if self.returncode is None:
            try:
                self.returncode = self._status.get(timeout != 0, timeout)
                self._status.put(self.returncode)  # another thread may also wait for it
            except queue.Empty:
                raise subprocess.TimeoutExpired('the script', timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """Close stdin and wait for the end of the process; return the texts of stdout and
        stderr."""
        self.stdin.close()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            stderr = pool.submit(self.stderr.read)
            stdout = self.stdout.read()
        self.wait(timeout)
        return stdout, stderr.result()

    def send_signal(self, number):
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def terminate(self):
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """Send SIGKILL, which also ends a stopped process."""
        self.send_signal(signal.SIGKILL)


class _Server:
    """Client of the fork server."""

    def __init__(self):
        self._channel, theirs = socket.socketpair()
        inherited = {
            name: value for name, value in os.environ.items() if name != 'TF_CPP_MIN_LOG_LEVEL'
        }
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'tests.helpers.fork_server', str(theirs.fileno())],
            cwd=ROOT,
            bufsize=0,
            env=dict(inherited, PYTHONPATH=ROOT),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            # it ends after the tests, and then kills the scripts
            start_new_session=True,
        )
        theirs.close()
        self._started, self._statuses = queue.Queue(), {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self._process.stdout:
            process, *status = map(int, line.split())
            if status:
                self._statuses.pop(process).put(status[0])
            else:
                self._statuses[process] = queue.Queue()
                self._started.put((process, self._statuses[process]))

    def fork(self, request, files):
        """Start a script; return its process id, and a queue for its exit status."""
        self._process.stdin.write((json.dumps(request) + '\n').encode())
        reduction.sendfds(self._channel, files)
        return self._started.get(timeout=DEADLINE_SECS)
