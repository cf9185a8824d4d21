"""A run under soak: the processes that work on it, and what must be true of it whatever happens to them.

See tests/soak.py.
"""
import contextlib
import glob
import hashlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from tensorboard.backend.event_processing import event_accumulator
import tensorflow.compat.v1 as tf

from tests.helpers import programs

DEADLINE_SECS = 120  # of whatever is waited for
MAX_TO_KEEP = 3
SUMMARY_STEPS = 20
logging.getLogger('tensorboard').setLevel(logging.ERROR)  # it tells of every start
STEP = re.compile(r': step (\d+), loss = ')
RESUMED = re.compile(r'^Resuming from .*, step (\d+)$', re.M)
SAVED = re.compile(r'^Saved .*-(\d+)$', re.M)
PRECISION = re.compile(r': (precision @ 1 = \d\.\d{3} \(\d+ of 50, step \d+\))$', re.M)
_SAID = 'Cannot (save|write summaries)'  # training goes on after that
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
        environment = {name: value for name, value in os.environ.items() if name != 'TF_CPP_MIN_LOG_LEVEL'}
        with open(self._paths[0], 'w') as out, open(self._paths[1], 'w') as err:
            self._popen = subprocess.Popen(
                _DIE_WITH_SOAK + [sys.executable, programs.path(script)] + list(args), stdin=subprocess.DEVNULL,
                stdout=out if stdout is None else stdout, stderr=err, start_new_session=True,
                env=dict(environment, PYTHONPATH=programs.ROOT))
        self.pid = self._popen.pid

    def __str__(self):
        return '%s (%s)' % (self._name, self._paths[0][:-len('out')] + '{out,err}')

    def running(self):
        """Whether it has not ended."""
        return self._popen.poll() is None

    def send(self, number):
        """Sends a signal, unless the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._popen.send_signal(number)

    def stop(self):
        """Stops it until it gets SIGCONT."""
        def is_stopped():
            with open('/proc/%d/stat' % self.pid) as stat:
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
        """The step of its last log line, or of the checkpoint from which it was resumed; 0 if there is neither."""
        stdout = self.stdout()
        numbers = STEP.findall(stdout) or RESUMED.findall(stdout)
        return int(numbers[-1]) if numbers else 0

    def wait_for_step(self):
        """Waits until it has logged a step, or has ended."""
        wait(lambda: STEP.search(self.stdout()) or not self.running(), 'The start of %s' % self)

    def quiet(self):
        """Waits until it handles signals: until it has begun to import TensorFlow."""
        def handles():
            with contextlib.suppress(OSError):
                with open('/proc/%d/maps' % self.pid) as maps:
                    return 'tensorflow' in maps.read()
            return not self.running()
        wait(handles, 'The start of %s' % self)

    def end(self, *statuses, line=None):
        """Waits for its end, and checks its exit status and its output.

        Args:
          statuses: those that are right.
          line: a regular expression for the line on stderr of a process that fails; None for one that does not say why.

        Returns:
          The exit status.
        """
        wait(lambda: not self.running(), 'The end of %s' % self)
        status = self._popen.returncode
        with open(self._paths[1], errors='replace') as opened:
            stderr = opened.read()
        told = '; status %d, on stderr: %s' % (status, stderr[-1000:])
        for output in (self.stdout(), stderr):
            if 'Traceback' in output or 'Fatal Python error' in output:
                raise Violation('%s shows a traceback' % self + told)
        if status not in statuses:
            raise Violation('%s should have ended with %s' % (self, ' or '.join(map(str, statuses))) + told)
        lines = [text for text in stderr.splitlines() if not re.match('%s: %s' % (re.escape(self._name), _SAID), text)]
        wanted = r'%s: (error: .*|interrupted.*)' % re.escape(self._name)
        if len(lines) != (status > 0) or not all(re.fullmatch(wanted, text) and re.search(line or '', text) for text in lines):
            raise Violation('%s should have said %s' % (self, 'one line (%s)' % line if status > 0 else 'nothing') + told)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            raise Violation('%s has left a process behind' % self)
        return status

    def kill(self):
        """Ends it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()


def intact_checkpoints(directory):
    """The step and the time of each checkpoint in `directory` of which every value can be read."""
    found = set()
    for index in glob.glob(os.path.join(glob.escape(directory), 'model.ckpt-*.index')):
        with contextlib.suppress(tf.errors.OpError, RuntimeError, OSError, ValueError, OverflowError):
            saved = os.stat(index).st_mtime_ns
            reader = tf.train.load_checkpoint(index[:-len('.index')])
            values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
            found.add((int(values['global_step']), saved))
    return found


def fingerprint(directory, left_out=()):
    """The content and the times of all that is in `directory`, but for the names `left_out` there."""
    found = {}
    for folder, folders, names in os.walk(directory):
        if folder == directory:
            folders[:], names = [set(entries) - set(left_out) for entries in (folders, names)]
        found[folder] = None
        for path in [os.path.join(folder, name) for name in names]:
            with open(path, 'rb') as opened:
                found[path] = hashlib.sha256(opened.read()).hexdigest(), os.stat(path).st_mtime_ns
    return found


class Record:
    """What is known of the run, to compare it with what is found."""

    def __init__(self, directory, checkpoints_read=0):
        self._directory = directory
        self.checkpoints_read = checkpoints_read
        self.intact = set()  # (step, time) of the checkpoints that were seen intact, and must not vanish
        self._others = set()  # those that were damaged on purpose
        self.forgiven = set()  # steps whose summaries were destroyed on purpose
        self.open_since = None  # the step since when the summaries of the trainer that works now may be lost

    def scan(self):
        """Reads all checkpoints; returns the step of the newest intact one, or None.

        Raises:
          Violation: one has vanished, not because of --max_to_keep.
        """
        found = intact_checkpoints(self._directory)
        self.checkpoints_read += len(found)
        for step, saved in self.intact - found:
            newer = [other for other in found | self._others if other[1] > saved]
            if len(newer) < MAX_TO_KEEP:
                raise Violation('The checkpoint of step %d has vanished or is damaged; there are only those of %s'
                                % (step, sorted(other[0] for other in found)))
        self.intact = found
        return max(found)[0] if found else None

    def damaged(self, checkpoint):
        """Notes that a checkpoint, as in `intact`, is not to be counted on any more."""
        self._others.add(checkpoint)
        self.intact.discard(checkpoint)

    def close(self, step):
        """Notes that summaries are no longer lost, at about this step."""
        if self.open_since is not None:
            self.forgiven.update(range(self.open_since, step + 2 * SUMMARY_STEPS))
            self.open_since = None

    def check_curve(self, last):
        """Reads the event files as TensorBoard does.

        Args:
          last: the step up to which there must be summaries.

        Raises:
          Violation: steps come twice, or are missing.
        """
        steps = curve(self._directory)
        if steps != sorted(set(steps)):
            raise Violation('The curve overlaps: steps %s' % [b for a, b in zip(steps, steps[1:]) if b <= a])
        missing = set(range(SUMMARY_STEPS, last + 1, SUMMARY_STEPS)) - set(steps) - self.forgiven
        strange = [step for step in steps if step % SUMMARY_STEPS]
        if self.open_since is not None:
            missing = {step for step in missing if step < self.open_since}
        if missing or strange:
            raise Violation('The curve has gaps up to step %d: %s are missing; %s should not be there'
                            % (last, sorted(missing), strange))


def curve(path):
    """The steps of `total_loss` in an event file, or in all those of a directory."""
    accumulator = event_accumulator.EventAccumulator(path, {event_accumulator.SCALARS: 0}, purge_orphaned_data=True)
    accumulator.Reload()
    return [event.step for event in accumulator.Scalars('total_loss')] if 'total_loss' in accumulator.Tags()['scalars'] else []
