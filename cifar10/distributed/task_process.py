"""One task of a cluster as a process of this machine."""

import contextlib
import os
import signal
import subprocess
import sys
import time

from cifar10.distributed.statuses import STALLED
from cifar10.runs import signals

_STEP = b': step '  # in the log lines of a trainer
_PORT_IN_USE = b'port is in use'  # in its line when another process has its port


class TaskProcess:
    """A process, whose lines appear with the task in front.

    It is in a session of its own, so that Ctrl-C in a terminal reaches only the process that has
    started it.

    Attributes:
      name: such as 'worker 0'.
      status: its exit status, None while it runs. A negative one is the signal that ended it.
      has_trained: whether it has printed the line of a step.
      found_port_in_use: whether it has said that its port is in use.
    """

    def __init__(self, name, command, cores=(), gpus=None):
        """Starts the task.

        Args:
          name: see above.
          command: list of strings.
          cores: the cores of the machine that it may use; none for all.
          gpus: the GPUs that it may use, list of strings as in CUDA_VISIBLE_DEVICES; None for those
            of this process.
        """
        self.name, self.status, self.has_trained, self.found_port_in_use = name, None, False, False
        # it may name another cluster
        environment = {key: value for key, value in os.environ.items() if key != 'TF_CONFIG'}
        if gpus is not None:
            # The numbers are those of nvidia-smi. By default CUDA sorts by speed.
            if 'CUDA_VISIBLE_DEVICES' not in environment:
                environment.setdefault('CUDA_DEVICE_ORDER', 'PCI_BUS_ID')
            environment['CUDA_VISIBLE_DEVICES'] = ','.join(gpus) or '-1'
        with signals.held_back():
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment, PYTHONUNBUFFERED='1'),
                start_new_session=True,
            )
            signals.children.add(self._process.pid)
        if cores:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(self._process.pid, cores)
        self._last_awake = time.monotonic()
        # what has come of the next line
        self._begun = {self._process.stdout: b'', self._process.stderr: b''}
        for pipe in self._begun:
            os.set_blocking(pipe.fileno(), False)

    @property
    def pipes(self):
        """The pipes that are still open."""
        return list(self._begun)

    def show(self, pipe):
        """Shows the lines that have come through a pipe; returns whether there may be more."""
        data = pipe.read(1 << 16)
        if data is None:
            return False
        *lines, self._begun[pipe] = (self._begun[pipe] + data).split(b'\n')
        for line in lines:
            self._show_line(pipe, line)
        if not data:
            self._close(pipe)
        return bool(data)

    def _show_line(self, pipe, line):
        self.has_trained |= _STEP in line
        self.found_port_in_use |= _PORT_IN_USE in line
        text = '[%s] %s\n' % (self.name, line.decode(errors='backslashreplace'))
        if pipe is self._process.stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
        elif sys.stderr is not None:
            with contextlib.suppress(OSError):  # nobody may read it any more
                sys.stderr.write(text)
                sys.stderr.flush()

    def _close(self, pipe):
        begun = self._begun.pop(pipe)
        if begun:
            self._show_line(pipe, begun)
        pipe.close()

    def has_ended(self):
        """Whether the process has ended; sets `status`, and shows its last lines."""
        if self.status is None and self._process.poll() is not None:
            self.status = self._process.returncode
            signals.children.discard(self._process.pid)
            for pipe in self.pipes:
                while self.show(pipe):
                    pass
            for pipe in self.pipes:  # another process holds it open
                self._close(pipe)
        return self.status is not None

    def stopped_secs(self):
        """For how many seconds it has been seen stopped, by SIGSTOP for example; 0 on systems that
        do not tell."""
        try:
            is_stopped = (
                hasattr(os, 'waitid')
                and os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
                is not None
            )
        except ChildProcessError:  # it has just ended
            is_stopped = False
        if not is_stopped:
            self._last_awake = time.monotonic()
        return time.monotonic() - self._last_awake

    def terminate(self):
        """Asks the process to end."""
        self._process.terminate()

    def kill(self):
        """Ends the process, if it has not ended."""
        if self.status is None:
            self._process.kill()
            self._process.wait()
            self.has_ended()

    @property
    def can_start_again(self):
        """Whether the process ended of something that does not have to happen again: a signal, or
        its peers."""
        return self.status == STALLED or self.status < 0 or self.status > 128

    @property
    def end(self):
        """How it ended, in words."""
        if self.status >= 0:
            return '%s ended with status %d' % (self.name, self.status)
        number = -self.status
        return '%s was ended by %s' % (
            self.name,
            signal.Signals(number).name if number in list(signal.Signals) else 'signal %d' % number,
        )
