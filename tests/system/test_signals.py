"""Signals to the process of the tests, or to a subprocess."""

import contextlib
import os
import signal
import subprocess
import sys
import types

import pytest

from cifar10.system import signals
from tests.helpers import programs

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def received():
    """Signals that reach the former handlers, which are restored after the test."""
    came = []
    before = {number: signal.getsignal(number) for number in signals.STOP_SIGNALS}
    for number in signals.STOP_SIGNALS:
        signal.signal(number, lambda number, _: came.append(number))
    yield came
    for number, handler in before.items():
        signal.signal(number, handler)


def _send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize('number', signals.STOP_SIGNALS)
def test_the_first_signal_raises(received, number):
    with pytest.raises(signals.SignalInterrupt) as error, signals.RaiseOnSignal():
        _send(number)
    assert (error.value.signum, str(error.value)) == (number, signal.Signals(number).name)
    _send(number)
    assert received == [number]


def test_an_interrupt_that_was_lost(received):
    done = []
    with pytest.raises(signals.SignalInterrupt, match='^SIGTERM$'), signals.RaiseOnSignal():
        with contextlib.suppress(signals.SignalInterrupt):
            _send(signal.SIGTERM)
        done.append('the rest of the block')
    assert (received, done) == ([], ['the rest of the block'])


_PROGRAM = """
import os, signal, sys
sys.argv = ['program.py']
from cifar10.system import signals
%s
%s
"""
_READY = 'print("ready", flush=True); '
# A signal ends one sleep.
_WAIT_IN_C = _READY + 'import ctypes; [ctypes.CDLL(None).sleep(100) for _ in range(9)]'


def _run(setting, then, *numbers):
    """Send signals to a program after its first line; return its exit status and stderr."""
    process = subprocess.Popen(
        [sys.executable, '-c', _PROGRAM % (setting, then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=programs.ROOT),
    )
    try:
        process.stdout.readline()
        for number in numbers:
            process.send_signal(number)
        _, stderr = process.communicate(timeout=programs.DEADLINE_SECS)
        return process.returncode, stderr
    finally:
        process.kill()


def _line(number):
    return f'program.py: interrupted ({signal.Signals(number).name})\n'


@pytest.mark.parametrize('number', signals.STOP_SIGNALS)
def test_every_signal_ends_the_start(number):
    assert _run('signals.install_handlers()', _READY + 'signal.pause()', number) == (
        128 + number,
        _line(number),
    )


_LOST = """
class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
Lost()
"""


def test_no_signal_is_lost():
    """Python ignores exceptions in __del__, and TensorFlow can ignore them in callbacks."""
    assert _run('signals.install_handlers()', _LOST) == (128 + signal.SIGINT, _line(signal.SIGINT))


def test_defaults_are_restored():
    """A program with its own handlers receives all signals."""
    handlers = '[signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], signal.set_wakeup_fd(-1)'
    then = f'assert ({handlers}) == ([signal.default_int_handler, signal.SIG_DFL], -1)'
    setting = 'signals.install_handlers(); signals.restore_handlers()'
    assert _run(setting, then) == (0, '')
    assert _run('signals.install_handlers()', then)[0] == 1


_WAIT_TWICE = 'with signals.RaiseOnSignal():\n    try:\n        {0}\n    finally:\n        {0}'


@pytest.mark.parametrize(
    'waiting, first, second',
    [
        ('with signals.StopRequest():\n    {0}', signal.SIGINT, signal.SIGTERM),
        (_WAIT_TWICE, signal.SIGTERM, signal.SIGHUP),
    ],
)
def test_the_second_ends_a_program_whatever_it_does(waiting, first, second):
    """Handlers of Python wait while the main thread is in C code."""
    found = _run('signals.install_handlers()', waiting.format(_WAIT_IN_C), first, second)
    # The kernel may deliver them in either order.
    assert found in [(128 + last, _line(last)) for last in (first, second)]


def test_the_second_ends_children_too():
    """The child holds stderr open; the test reads until its end."""
    setting = "signals.install_handlers(); import subprocess; signals.child_pids.add(subprocess.Popen(['sleep', '1000']).pid)"
    status, stderr = _run(
        setting, 'with signals.StopRequest():\n    ' + _WAIT_IN_C, signal.SIGTERM, signal.SIGINT
    )
    assert (status, stderr) in [(128 + last, _line(last)) for last in BOTH]


def test_nohup():
    hang_up = 'os.kill(os.getpid(), signal.SIGHUP)'
    then = f'{hang_up}\nwith signals.StopRequest() as stop:\n    {hang_up}; assert stop.received_signal is None'
    assert _run(
        'signal.signal(signal.SIGHUP, signal.SIG_IGN); signals.install_handlers()', then
    ) == (
        0,
        '',
    )


@pytest.fixture
def clock(monkeypatch):
    """An imitated clock; its time is `now`."""
    clock = types.SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(signals, 'time', clock)
    return clock


INT, TERM, PIPE = signal.SIGINT, signal.SIGTERM, signal.SIGPIPE


@pytest.mark.parametrize('first, second', [(INT, INT), (PIPE, INT)])
def test_a_repetition_within_a_second_counts_once(clock, monkeypatch, first, second):
    """Ctrl-C in a pipeline can close the pipe first."""
    monkeypatch.setattr(signals, '_first', [])
    found = []
    for number, now in [(first, 100), (second, 100), (second, 100.5), (second, 100.999)]:
        clock.now = now
        found.append(signals._count(number))
    assert found == [False] * 4
    clock.now = 101
    assert signals._count(second) and signals._count(TERM)


@pytest.mark.parametrize('first, second, secs', [(INT, TERM, 0), (INT, INT, 1)])
def test_the_second_signal_acts_as_before(received, clock, first, second, secs):
    with signals.StopRequest() as stop:
        _send(first)
        _send(first)
        clock.now += secs
        assert (stop.received_signal, received) == (first, [])
        _send(second)
        assert (stop.received_signal, received) == (first, [second])
    _send(first)
    assert received == [second, first]


def test_signals_are_held_back(received):
    """Also by a block with an error."""
    with pytest.raises(ValueError), signals.delay_signals():
        for number in BOTH:
            _send(number)
        assert received == []
        raise ValueError
    assert received == BOTH
    _send(signal.SIGINT)
    assert received == BOTH + [signal.SIGINT]


# The thread has read every signal.
_READ_ALL = """
(thread,) = [thread for thread in signals.threading.enumerate() if thread.daemon]
signals._counting_thread[0].close()
thread.join()
"""


def _installed(*times):
    """Return the code that installs the handlers; the signals come at these times."""
    clock = f'types.SimpleNamespace(monotonic=iter({times}).__next__)'
    return f'import types; signals.time = {clock}; signals.install_handlers()'


@pytest.mark.parametrize('number', signals.STOP_SIGNALS)
def test_a_script_ignores_the_repetition(number):
    """Also after the block: the script may still evaluate the last checkpoint."""
    send = f'os.kill(os.getpid(), {int(number)})'
    requested = f'with signals.StopRequest() as stop:\n    {send}\n    {send}\n{send}\n'
    requested += f'assert stop.received_signal == {int(number)}\n{_READ_ALL}'
    raised = f'try:\n    with signals.RaiseOnSignal():\n        {send}\nexcept signals.SignalInterrupt:\n    pass\n'
    raised += f'{send}\n{send}\n{_READ_ALL}'
    for then in (requested, raised):
        assert _run(_installed(5, 5.1, 5.9), then) == (0, '')


@pytest.mark.parametrize('number', signals.STOP_SIGNALS)
def test_a_second_later_it_ends_the_script(number):
    """Inside and after the block, while the main thread is in C code."""
    send = f'os.kill(os.getpid(), {int(number)})'
    inside = f'with signals.StopRequest():\n    {send}\n    {send}\n    {_WAIT_IN_C}'
    after = f'with signals.StopRequest():\n    {send}\n{send}\n{_WAIT_IN_C}'
    for then in (inside, after):
        assert _run(_installed(5, 6), then) == (128 + number, _line(number))
