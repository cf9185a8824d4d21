"""Signals to the process of the tests, or to a subprocess."""

import os
import signal
import subprocess
import sys
import types

import pytest

from cifar10.system import signals
from tests.helpers import programs

INT, TERM, HUP, PIPE = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE


@pytest.fixture
def received():
    """Signals that reach the former handlers, which are restored after the test."""
    came = []
    for number in signals.STOP_SIGNALS:
        signal.signal(number, lambda number, _: came.append(number))
    return came


def _send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize('number', signals.STOP_SIGNALS)
@pytest.mark.parametrize('raises', [False, True])
def test_the_first_signal(received, number, raises):
    """Later ones reach the former handlers, in a notebook for example."""
    try:
        with signals.StopRequest(raises) as stop:
            _send(number)
            assert not raises
    except KeyboardInterrupt as error:
        assert raises and error.args == (number,)
    assert stop.received_signal == number and received == []
    _send(number)
    assert received == [number]


@pytest.mark.parametrize('number', signals.STOP_SIGNALS)
def test_a_former_handler_gets_the_second_signal(received, number):
    """In a notebook, no thread ends the process."""
    with signals.StopRequest() as stop:
        _send(number)
        _send(number)
        assert (stop.received_signal, received) == (number, [])
        other = INT if number != INT else TERM
        _send(other)
        assert received == [other] and signal.set_wakeup_fd(-1) == -1


def test_a_closed_pipe_is_a_first_signal():
    with signals.StopRequest() as stop:
        signals.receive_broken_pipe()
        assert stop.received_signal == PIPE
        signals.receive_broken_pipe()
    with signals.StopRequest() as stop:
        stop.receive(INT)
        signals.receive_broken_pipe()
        assert stop.received_signal == INT
    with pytest.raises(KeyboardInterrupt), signals.StopRequest(raises=True):
        signals.receive_broken_pipe()


_PROGRAM = """
import os, signal, sys
sys.argv = ['program.py']
from cifar10.system import signals
signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in program.start
%s
"""
# A signal ends one sleep.
_WAIT_IN_C = (
    'import ctypes; print("ready", flush=True); [ctypes.CDLL(None).sleep(100) for _ in range(9)]'
)


def _run(program, *numbers):
    """Send signals to a program after its first line; return its exit status and stderr."""
    process = subprocess.Popen(
        [sys.executable, '-c', _PROGRAM % program],
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


@pytest.mark.parametrize(
    'program, first, second',
    [
        ('with signals.StopRequest():\n    {0}', INT, TERM),
        (
            'with signals.StopRequest(raises=True):\n    try:\n        {0}\n    finally:\n        {0}',
            TERM,
            HUP,
        ),
        # The child holds stderr open, and _run reads until its end.
        (
            "import subprocess; signals.child_pids.add(subprocess.Popen(['sleep', '1000']).pid)\n"
            'with signals.StopRequest():\n    {0}',
            TERM,
            INT,
        ),
    ],
)
def test_the_second_ends_a_program_whatever_it_does(program, first, second):
    """It ends the children, too. Handlers of Python wait while the main thread is in C code."""
    found = _run(program.format(_WAIT_IN_C), first, second)
    # The kernel may deliver them in either order.
    assert found in [(128 + last, _line(last)) for last in (first, second)]


def test_nohup():
    hang_up = 'os.kill(os.getpid(), signal.SIGHUP)'
    program = f'{hang_up}; assert stop.received_signal is None'
    program = f'with signals.StopRequest() as stop:\n    {program}\n{hang_up}'
    assert _run('signal.signal(signal.SIGHUP, signal.SIG_IGN)\n' + program) == (0, '')


@pytest.mark.parametrize(
    'came, last',
    [
        ([(INT, 5), (INT, 5.1), (INT, 5.999)], None),
        ([(HUP, 5), (HUP, 5.1), (HUP, 6)], HUP),
        ([(INT, 5), (TERM, 5)], TERM),
        ([(PIPE, 5), (INT, 5.999)], None),
        ([(signal.SIGUSR1, 4), (TERM, 5)], None),
        ([(PIPE, 5), (INT, 6)], INT),
    ],
)
def test_a_repetition_within_a_second_counts_once(monkeypatch, came, last):
    """Ctrl-C in a pipeline can close the pipe first."""
    signal.signal(signal.SIGUSR1, lambda *unused: None)  # a signal of the user's code
    times = iter([time for number, time in came if number != signal.SIGUSR1])
    monkeypatch.setattr(signals, 'time', types.SimpleNamespace(monotonic=times.__next__))
    signal.signal(INT, signal.SIG_DFL)  # as in a script
    exits = []
    monkeypatch.setattr(signals, '_exit', exits.append)
    stop = signals.StopRequest()
    with stop:
        if came[0][0] == PIPE:
            signals.receive_broken_pipe()
        thread = next(
            t for t in signals.threading.enumerate() if t.name.startswith('count signals')
        )
        for number, _ in came:
            if number != PIPE:
                _send(number)
    thread.join()
    assert exits == ([last] if last else []) and stop.received_signal in dict(came)


@pytest.mark.parametrize('number', signals.STOP_SIGNALS)
def test_a_script_ignores_the_repetition_after_the_block(number):
    send = f'os.kill(os.getpid(), {int(number)})'
    program = f'with signals.StopRequest():\n    {send}\n{send}'
    assert _run(program) == (0, '')
    other = TERM if number != TERM else HUP
    assert _run(f'{program}\nos.kill(os.getpid(), {int(other)})') == (-other, '')
