"""Script as a process under soak: signals, output, allowed exit statuses."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from tests.helpers import messages, programs

DEADLINE_SECS = 120  # of every wait
STEP = re.compile(r': step (\d+), loss = ')
RESUMED = re.compile('^' + messages.RESUMED, re.M)
# The kernel kills the child processes of a killed soak.
_DIE_WITH_SOAK = ['setpriv', '--pdeathsig', 'KILL'] if shutil.which('setpriv') else []


class Violation(Exception):
    """A broken promise."""


def wait(condition, subject):
    """Wait until `condition()` is true.

    Raises:
      Violation: the deadline has passed.
    """
    end = time.monotonic() + DEADLINE_SECS
    while not condition():
        if time.monotonic() > end:
            raise Violation(f'{subject}: not within {DEADLINE_SECS} seconds')
        time.sleep(0.001)


class Process:
    """Script as a process whose output goes to two files."""

    def __init__(self, output, script, *args, stdout=None):
        """Start the script.

        Args:
          output: path of its output, without .out and .err.
          script: its name.
          args: its flags.
          stdout: a file descriptor that replaces the file of its stdout.
        """
        self.out, self._err = output + '.out', output + '.err'
        self._name = script + '.py'
        environment = dict(os.environ, PYTHONPATH=programs.ROOT)
        environment.pop('TF_CPP_MIN_LOG_LEVEL', None)
        with open(self.out, 'w') as out, open(self._err, 'w') as err:
            self._popen = subprocess.Popen(
                _DIE_WITH_SOAK + [sys.executable, programs.path(script)] + list(args),
                stdin=subprocess.DEVNULL,
                stdout=out if stdout is None else stdout,
                stderr=err,
                start_new_session=True,
                env=environment,
            )
        self.send = self._popen.send_signal

    def __str__(self):
        return f'{self._name} ({self.out}, {self._err})'

    def running(self):
        """Return True if the process has not ended."""
        return self._popen.poll() is None

    def ends_within(self, secs):
        """Wait up to `secs` seconds for its end; return False if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(secs)
        return not self.running()

    def stdout(self):
        """Return its stdout so far."""
        with open(self.out, errors='replace') as opened:
            return opened.read()

    def step(self):
        """Return the step of its last log line, else of its resumed checkpoint, else 0."""
        stdout = self.stdout()
        numbers = STEP.findall(stdout) or RESUMED.findall(stdout)
        return int(numbers[-1]) if numbers else 0

    def wait_for(self, pattern, count=1):
        """Wait until its stdout has `count` matches of a pattern, or it has ended."""
        wait(
            lambda: len(re.findall(pattern, self.stdout())) >= count or not self.running(),
            f'Line {count} like {pattern} of {self}',
        )

    def advance(self, steps=1):
        """Wait until it has logged a step at least `steps` later, or has ended."""
        start = self.step()
        wait(lambda: self.step() >= start + steps or not self.running(), f'More steps of {self}')

    def wait_until_imported(self):
        """Wait until it imports TensorFlow: from then on the script handles signals, not Python."""

        def imports():
            with contextlib.suppress(OSError), open(f'/proc/{self._popen.pid}/maps') as maps:
                if 'tensorflow' in maps.read():
                    return True
            return not self.running()

        wait(imports, f'The start of {self}')

    def end(self, *statuses, line=''):
        """Wait for its end; check its exit status and its output.

        Args:
          statuses: the allowed exit statuses.
          line: a regular expression for the line on stderr of a failed process.

        Returns:
          The exit status.

        Raises:
          Violation: unexpected status or output, or no end.
        """
        wait(lambda: not self.running(), f'The end of {self}')
        status = self._popen.returncode
        with open(self._err, errors='replace') as opened:
            stderr = opened.read()
        # Training continues after the first kind of line.
        lines = re.sub(r'(?m)^\S+: Cannot (save|write summaries).*\n', '', stderr).splitlines()
        has_line = all(
            re.match(r'\S+: (error: |interrupted)', text) and re.search(line, text)
            for text in lines
        )
        # A negative status: the signal ended Python before its handlers.
        if status not in statuses or not has_line or status >= 0 and len(lines) != (status > 0):
            raise Violation(
                f'{self} ended with status {status}, not with {statuses} and "{line}": {stderr[-1000:]}'
            )
        wait(self._group_is_empty, f'The end of what {self} has started')
        return status

    def _group_is_empty(self):
        try:
            os.killpg(self._popen.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def kill(self):
        """Kill the process."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
