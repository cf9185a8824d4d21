"""A script as a process under soak: signals, its output, and how it may end."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from tests.helpers import programs

DEADLINE_SECS = 120  # of whatever is waited for
STEP = re.compile(r': step (\d+), loss = ')
RESUMED = re.compile(r'^Resuming from .*, step (\d+)$', re.M)
SAVED = re.compile(r'^Saved .*-(\d+)$', re.M)
PRECISION = re.compile(
    r': (precision @ 1 = \d\.\d{3} \(\d+ of 50, step \d+\)), 95 % interval \S+ to \S+$', re.M
)
_SAID = 'Cannot (save|write summaries)'  # on stderr, and training goes on
# The kernel ends what a killed soak has started.
_DIE_WITH_SOAK = ['setpriv', '--pdeathsig', 'KILL'] if shutil.which('setpriv') else []


class Violation(Exception):
    """A promise that was not kept."""


def wait(condition, what, deadline_secs=DEADLINE_SECS, every_secs=0.02):
    """Waits until `condition()` is true, and returns its value.

    Raises:
      Violation: it takes too long.
    """
    end = time.monotonic() + deadline_secs
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Violation('%s: not within %d seconds' % (what, deadline_secs))
        time.sleep(every_secs)


class Process:
    """A script as a process of its own, whose output goes to two files."""

    def __init__(self, output, script, *args, stdout=None):
        """Starts the script.

        Args:
          output: path of its output, without .out and .err.
          script: its name.
          args: its flags.
          stdout: a file descriptor for its standard output, instead of the file.
        """
        self._paths = output + '.out', output + '.err'
        self._name = script + '.py'
        environment = {
            name: value for name, value in os.environ.items() if name != 'TF_CPP_MIN_LOG_LEVEL'
        }
        with open(self._paths[0], 'w') as out, open(self._paths[1], 'w') as err:
            self._popen = subprocess.Popen(
                _DIE_WITH_SOAK + [sys.executable, programs.path(script)] + list(args),
                stdin=subprocess.DEVNULL,
                stdout=out if stdout is None else stdout,
                stderr=err,
                start_new_session=True,
                env=dict(environment, PYTHONPATH=programs.ROOT),
            )
        self._pid = self._popen.pid

    def __str__(self):
        return '%s (%s)' % (self._name, self._paths[0][: -len('out')] + '{out,err}')

    def running(self):
        """Whether it has not ended."""
        return self._popen.poll() is None

    def send(self, number):
        """Sends a signal, unless the process has ended."""
        self._popen.send_signal(number)

    def stop(self):
        """Stops it until it gets SIGCONT."""

        def is_stopped():
            with open('/proc/%d/stat' % self._pid) as stat:
                return stat.read().rsplit(')', 1)[1].split()[0] in 'TZ'

        self.send(signal.SIGSTOP)
        wait(is_stopped, 'SIGSTOP to %s' % self)

    def note(self, output):
        """Takes `output`, bytes, as a part of what it has written to its standard output."""
        with open(self._paths[0], 'ab') as opened:
            opened.write(output)

    def stdout(self):
        """What it has written so far to its standard output."""
        with open(self._paths[0], errors='replace') as opened:
            return opened.read()

    def step(self):
        """The step of its last log line, or of the checkpoint from which it was resumed; 0 if there
        is neither."""
        stdout = self.stdout()
        numbers = STEP.findall(stdout) or RESUMED.findall(stdout)
        return int(numbers[-1]) if numbers else 0

    def wait_for_step(self):
        """Waits until it has logged a step, or has ended."""
        wait(lambda: STEP.search(self.stdout()) or not self.running(), 'The start of %s' % self)

    def advance(self, steps=1):
        """Waits until it has logged a step that is at least so much later, or has ended."""
        start = self.step()
        wait(lambda: self.step() >= start + steps or not self.running(), 'More steps of %s' % self)

    def wait_until_imported(self):
        """Waits until it imports TensorFlow: from then on it, and not Python itself, handles
        signals."""

        def imports():
            with contextlib.suppress(OSError), open('/proc/%d/maps' % self._pid) as maps:
                return 'tensorflow' in maps.read() or not self.running()
            return not self.running()

        wait(imports, 'The start of %s' % self)

    def end(self, *statuses, line=None):
        """Waits for its end, and checks its exit status and its output.

        Args:
          statuses: those that are right.
          line: a regular expression for the line on stderr of a process that fails.

        Returns:
          The exit status.

        Raises:
          Violation: a status or an output that was not promised, or no end.
        """
        wait(lambda: not self.running(), 'The end of %s' % self)
        status = self._popen.returncode
        with open(self._paths[1], errors='replace') as opened:
            stderr = opened.read()
        told = '; its status is %d, and on stderr it said: %s' % (
            status,
            stderr[-1000:].strip() or 'nothing',
        )
        for output in (self.stdout(), stderr):
            if 'Traceback' in output or 'Fatal Python error' in output:
                raise Violation('%s shows a traceback' % self + told)
        if status not in statuses:
            wanted = 'have ended with %s' % ' or '.join(map(str, statuses)) if statuses else 'go on'
            raise Violation('%s should %s' % (self, wanted) + told)
        lines = [
            text
            for text in stderr.splitlines()
            if not re.match('%s: %s' % (re.escape(self._name), _SAID), text)
        ]
        wanted = r'%s: (error: .*|interrupted.*)' % re.escape(self._name)
        # negative: Python itself has ended it
        told_of = [0] if status in (0, -signal.SIGKILL) else [1] if status > 0 else [0, 1]
        if len(lines) not in told_of or not all(
            re.fullmatch(wanted, text) and re.search(line or '', text) for text in lines
        ):
            raise Violation(
                '%s should have said %s'
                % (self, 'one line (%s)' % line if status > 0 else 'nothing')
                + told
            )
        # What Python's imports start, like ldconfig, outlives for a moment the process that is
        # killed meanwhile.
        wait(self._group_is_empty, 'The end of what %s has started' % self, deadline_secs=10)
        return status

    def _group_is_empty(self):
        try:
            os.killpg(self._pid, 0)
        except ProcessLookupError:
            return True
        return False

    def kill(self):
        """Ends it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        self._popen.wait()
