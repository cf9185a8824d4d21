"""Results, resource usage and ends of measured processes, without TensorFlow."""

import contextlib
import datetime
import multiprocessing
import os
import signal
import sys
import time

import numpy as np
import pytest

from cifar10.benchmark import processes
from cifar10.cli import program
from cifar10.errors import UserError
from cifar10.system import startup


class _CannotBePickled(Exception):
    """As errors of TensorFlow, which hold an operation."""

    def __reduce__(self):
        raise TypeError


def _fail(how):
    if how == 'killed':
        os.kill(os.getpid(), signal.SIGKILL)
    raise UserError('no such file') if how == 'mistake' else _CannotBePickled('no memory')


@pytest.mark.parametrize(
    'how, line',
    [
        ('killed', 'The benchmark process has died: '),
        ('mistake', 'no such file$'),
        ('error', 'The measurement failed: no memory$'),
    ],
)
def test_a_measurement_that_fails(how, line):
    with pytest.raises(UserError, match='^' + line):
        processes.call_in_new_process(_fail, how)


def _use(megabytes):
    """Use the system and the memory.

    Returns:
      CPU seconds by resource_usage(), CPU and system seconds by os.times(), MB, process id, handler
      of Ctrl-C in a child process of a script.
    """
    startup.import_tensorflow = lambda: None
    program.start('__mp_main__', define_flags=None)
    (cpu, _), times = processes.resource_usage(), os.times()
    np.ones(megabytes << 20, np.uint8)
    os.urandom(20 << 20)
    (cpu_after, peak), times_after = processes.resource_usage(), os.times()
    return (
        cpu_after - cpu,
        sum(times_after[:2]) - sum(times[:2]),
        times_after.system - times.system,
        peak,
        os.getpid(),
        signal.getsignal(signal.SIGINT),
    )


def test_usage_is_time_and_peak_of_memory():
    """The process ignores Ctrl-C: the benchmark reports it."""
    # On Linux, a new process inherits the peak of its parent.
    megabytes = int(processes.resource_usage()[1]) + 100
    cpu, expected, system, peak, pid, handler = processes.call_in_new_process(_use, megabytes)
    assert pid != os.getpid() and handler == signal.SIG_IGN
    assert system > 0.04  # four ticks of the clock of os.times()
    assert abs(cpu - expected) < 0.03
    assert megabytes < peak < megabytes + 100


class _Interrupted(BaseException):
    pass


@contextlib.contextmanager
def _interrupted_by(number):
    """Expect that the signal interrupts the block; yield a list for its child processes."""
    children = []

    def handle(*_):
        children.extend(multiprocessing.active_children())
        raise _Interrupted

    before = signal.signal(number, handle)
    try:
        with pytest.raises(_Interrupted):
            yield children
    finally:
        signal.signal(number, before)


class _SignalWhileSent:
    """A number of seconds. Its pickling, just before a child process starts, sends a signal."""

    def __init__(self, number, seconds):
        self._number, self._seconds = number, seconds

    def __reduce__(self):
        os.kill(os.getpid(), self._number)
        return float, (self._seconds,)


def test_signal_ends_a_fresh_process():
    with _interrupted_by(signal.SIGINT) as children:
        processes.call_in_new_process(time.sleep, _SignalWhileSent(signal.SIGINT, 20))
    (child,) = children  # it had started, because something ended it
    assert child.exitcode == -signal.SIGKILL


def test_signal_ends_a_trainer(tmp_path):
    pid = tmp_path / 'pid'
    trainer = 'import os, time; open(%r, "w").write(str(os.getpid())); os.kill(os.getppid(), %d); time.sleep(20)'
    start = time.monotonic()
    with _interrupted_by(signal.SIGTERM):
        processes.run_trainer(
            [sys.executable, '-c', trainer % (str(pid), signal.SIGTERM)],
            20,
            processes.terminate_gracefully,
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert time.monotonic() - start < 10


LINE = '2026-01-01 00:00:0%d.500000: step %d, loss = 1.00 (1.0 examples/sec; 1.000 sec/batch)\n'


def _run(text, min_last_step, more=''):
    return processes.run_trainer([sys.executable, '-c', more + f'print({text!r})'], min_last_step)


def test_marks_of_a_trainer(monkeypatch):
    """The lines of a trainer, or of the chief in the output of the launcher; the peak of memory."""
    megabytes = int(processes.resource_usage()[1]) + 100
    sent = iter([1000, 5000])
    monkeypatch.setattr(processes, '_loopback_bytes', lambda: next(sent))
    text = '[worker 0] ' + LINE % (1, 10) + '[worker 1] ' + LINE % (2, 99) + LINE % (3, 20) + 'End'
    logged_steps, peak = _run(text, 20, f'bytearray({megabytes} << 20); ')
    assert megabytes < peak < megabytes + 100
    assert logged_steps == {
        10: (datetime.datetime(2026, 1, 1, 0, 0, 1, 500000), 1000),
        20: (datetime.datetime(2026, 1, 1, 0, 0, 3, 500000), 5000),
    }


@pytest.mark.parametrize(
    'text, more, complaint',
    [
        # a signal gives exit status 0
        (LINE % (1, 10), '', '-c was stopped before step 20: measure again'),
        ('', '', '-c was stopped before step 20: measure again'),
        (LINE % (1, 20), 'import atexit, os; atexit.register(os._exit, 1); ', '-c failed'),
    ],
)
def test_trainer_may_end_early(text, more, complaint):
    with pytest.raises(UserError, match=f'^{complaint}$'):
        _run(text, 20, more)
