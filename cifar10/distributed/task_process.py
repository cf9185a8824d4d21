"""Process of this machine that runs a task of a cluster."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading

from cifar10.distributed.cluster import EX_TEMPFAIL
from cifar10.system import signals

_STEP = ': step '  # in a log line of the trainer
_CANNOT_LISTEN = ' cannot listen: '  # in the error for a port in use


class TaskProcess:
    """Process of a task; its output is printed with the task's name as prefix.

    It runs in its own session, so that Ctrl-C in a terminal reaches only the launcher.

    Attributes:
      name: such as 'worker 0'.
      status: the exit status; None before the end; -number after a signal.
      has_trained: True after a log line of a step.
      cannot_listen: True after the error for a port in use.
    """

    def __init__(self, name, command, cores=(), gpus=None):
        """Start the task.

        Args:
          name: see above.
          command: list of strings.
          cores: the cores of the process; empty for all.
          gpus: list of strings for CUDA_VISIBLE_DEVICES; None for that of this process.
        """
        self.name, self.status, self.has_trained, self.cannot_listen = name, None, False, False
        environment = dict(os.environ, PYTHONUNBUFFERED='1')
        environment.pop('TF_CONFIG', None)  # it may name another cluster
        if gpus is not None:
            # nvidia-smi sorts by PCI bus, CUDA by speed.
            if 'CUDA_VISIBLE_DEVICES' not in environment:
                environment.setdefault('CUDA_DEVICE_ORDER', 'PCI_BUS_ID')
            environment['CUDA_VISIBLE_DEVICES'] = ','.join(gpus) or '-1'
        with signals.delay_signals():
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
        self._lines = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(pipe,), daemon=True)
            for pipe in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe):
        with pipe:
            for line in pipe:
                self._lines.put((pipe, line.rstrip('\n')))

    def print_lines(self):
        """Print the new lines."""
        while not self._lines.empty():
            pipe, line = self._lines.get()
            self.has_trained |= _STEP in line
            self.cannot_listen |= _CANNOT_LISTEN in line
            with contextlib.suppress(OSError):  # stderr may be a closed pipe
                is_output = pipe is self._process.stdout
                file = sys.stdout if is_output else sys.stderr
                print(f'[{self.name}] {line}', file=file)

    def has_ended(self):
        """Return True if the process has ended; also set `status` and print the last lines."""
        if self.status is None and self._process.poll() is not None:
            self.status = self._process.returncode
            signals.child_pids.discard(self._process.pid)
            for reader in self._readers:
                reader.join(timeout=1)  # Another process may hold the pipe open.
            self.print_lines()
        return self.status is not None

    def terminate(self):
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self):
        """Kill the process, if it has not ended."""
        if self.status is None:
            self._process.kill()
            self._process.wait()
            self.has_ended()

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
