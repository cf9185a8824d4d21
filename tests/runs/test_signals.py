"""Signals, which the tests send to their own process, or to one of their own."""
import os
import signal
import subprocess
import sys
import threading

import pytest

from cifar10.runs import signals
from tests.helpers import programs

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def received():
    """The signals that come through; after the test the handlers are again what they were."""
    came = []
    before = {number: signal.getsignal(number) for number in signals.STOPPING}
    signals.raise_on_signals()  # forgets what came before
    for number in signals.STOPPING:
        signal.signal(number, lambda number, _: came.append(number))
    yield came
    signals.raise_on_signals()
    for number, handler in before.items():
        signal.signal(number, handler)


def _send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize('number', signals.STOPPING)
def test_the_first_raises_and_is_remembered(number):
    signals.raise_on_signals()
    signals.raise_if_interrupted()
    with pytest.raises(signals.Interrupted) as error:
        _send(number)
    assert (error.value.number, str(error.value)) == (number, signal.Signals(number).name)
    for _ in range(2):  # it is not forgotten
        with pytest.raises(KeyboardInterrupt):
            signals.raise_if_interrupted()
    signals.raise_on_signals()  # but for a new start
    signals.raise_if_interrupted()


_PROGRAM = """
import os, signal, sys
sys.argv = ['program.py']
from cifar10.runs import signals
%s
print('ready', flush=True)
%s
"""
_WAIT_IN_C = "import ctypes; [ctypes.CDLL(None).sleep(100) for _ in range(9)]"  # a signal ends one sleep


def _run(setting, then, *numbers):
    """Sends signals to a program that has said that it is ready; returns its exit status and its stderr."""
    process = subprocess.Popen([sys.executable, '-c', _PROGRAM % (setting, then)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               universal_newlines=True, env=dict(os.environ, PYTHONPATH=programs.ROOT))
    try:
        process.stdout.readline()
        for number in numbers:
            process.send_signal(number)
        _, stderr = process.communicate(timeout=programs.DEADLINE_SECS)
        return process.returncode, stderr
    finally:
        process.kill()


def _line(number):
    return 'program.py: interrupted (%s)\n' % signal.Signals(number).name


@pytest.mark.parametrize('number', signals.STOPPING)
def test_every_signal_ends_the_start(number):
    assert _run('signals.end_on_signals()', 'signal.pause()', number) == (128 + number, _line(number))


@pytest.mark.parametrize('then', ['with signals.StopRequest():', 'try:'])
@pytest.mark.parametrize('first, second', [(signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGHUP)])
def test_the_second_ends_a_program_whatever_it_does(then, first, second):
    """The main thread is in C code, where no handler of Python can run."""
    waiting = then + '\n    ' + _WAIT_IN_C + ('\nfinally:\n    ' + _WAIT_IN_C if then == 'try:' else '')
    # The system may deliver them in either order.
    assert _run('signals.raise_on_signals()', waiting, first, second) in [(128 + last, _line(last)) for last in (first, second)]


def test_the_second_ends_children_too():
    """The child holds stderr open, to whose end the test reads."""
    setting = "signals.raise_on_signals(); import subprocess; signals.children.add(subprocess.Popen(['sleep', '1000']).pid)"
    status, stderr = _run(setting, 'with signals.StopRequest():\n    ' + _WAIT_IN_C, signal.SIGTERM, signal.SIGINT)
    assert (status, stderr) in [(128 + last, _line(last)) for last in BOTH]


def test_nohup():
    setting = 'signal.signal(signal.SIGHUP, signal.SIG_IGN); signals.%s()'
    for start in ('end_on_signals', 'raise_on_signals'):
        then = 'with signals.StopRequest() as stop:\n    os.kill(os.getpid(), signal.SIGHUP); assert stop.received is None'
        assert _run(setting % start, then) == (0, '')


def test_no_handlers_outside_the_main_thread():
    handlers = []

    def enter():
        with signals.StopRequest():
            handlers.extend(signal.getsignal(number) for number in signals.STOPPING)
    before = [signal.getsignal(number) for number in signals.STOPPING]
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert handlers == before


@pytest.mark.parametrize('number', signals.STOPPING)
def test_the_first_signal_requests_a_stop(received, number):
    with signals.StopRequest() as stop:
        assert stop.received is None
        _send(number)
        assert stop.received == number and stop.received.name == signal.Signals(number).name
        assert received == []


@pytest.mark.parametrize('first', BOTH)
@pytest.mark.parametrize('second', BOTH)
def test_the_second_signal_acts_as_before(received, first, second):
    with signals.StopRequest() as stop:
        _send(first)
        _send(second)
        assert (stop.received, received) == (first, [second])
    _send(first)
    assert received == [second, first]


def test_a_request_restores_the_handlers(received):
    with pytest.raises(ZeroDivisionError):
        with signals.StopRequest() as stop:
            1 / 0  # noqa: B018
    for number in BOTH:
        _send(number)
    assert (stop.received, received) == (None, BOTH)


def test_signals_are_held_back(received):
    with signals.held_back():
        for number in BOTH:
            _send(number)
        assert received == []
    assert received == BOTH
    _send(signal.SIGINT)
    assert received == BOTH + [signal.SIGINT]


def test_held_back_restores_the_handlers(received):
    with pytest.raises(ZeroDivisionError):
        with signals.held_back():
            1 / 0  # noqa: B018
    for number in BOTH:
        _send(number)
    assert received == BOTH


def test_held_back_signals_survive_an_error(received):
    with pytest.raises(ValueError), signals.held_back():
        _send(signal.SIGTERM)
        assert received == []
        raise ValueError
    assert received == [signal.SIGTERM]


def test_a_terminal_that_is_closed():
    """The shell and the system send SIGHUP one after the other: that is no second signal."""
    hang_up = 'os.kill(os.getpid(), signal.SIGHUP)'
    requested = 'with signals.StopRequest() as stop:\n    {0}\n    {0}\n    assert stop.received == signal.SIGHUP'.format(hang_up)
    assert _run('signals.raise_on_signals()', requested) == (0, '')
    raised = 'try:\n    {0}\nfinally:\n    {0}\n    os._exit(7)'.format(hang_up)
    assert _run('signals.raise_on_signals()', raised) == (7, '')
