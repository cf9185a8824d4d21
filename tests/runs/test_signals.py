"""SIGINT and SIGTERM, which the tests send to their own process."""
import os
import signal
import threading

import pytest

from cifar10.runs import signals

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def received():
    """The signals that come through; after the test the handlers are again what they were."""
    came = []
    handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in BOTH}
    yield came
    signals.raise_on_ctrl_c()  # forgets the interrupt of the test
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _send(number):
    os.kill(os.getpid(), number)


def test_ctrl_c_raises_and_is_remembered():
    signals.raise_on_ctrl_c()
    signals.raise_if_interrupted()
    with pytest.raises(KeyboardInterrupt):
        _send(signal.SIGINT)
    for _ in range(2):  # it is not forgotten
        with pytest.raises(KeyboardInterrupt):
            signals.raise_if_interrupted()


def test_an_interrupt_that_was_lost():
    """As where C++ calls Python and drops the exception."""
    signals.raise_on_ctrl_c()
    try:
        _send(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    with pytest.raises(KeyboardInterrupt):
        signals.raise_if_interrupted()


def test_a_new_start_forgets_the_interrupt():
    signals.raise_on_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        _send(signal.SIGINT)
    signals.raise_on_ctrl_c()
    signals.raise_if_interrupted()


def test_only_ctrl_c_raises(received):
    signals.raise_on_ctrl_c()
    _send(signal.SIGTERM)
    signals.raise_if_interrupted()
    assert received == [signal.SIGTERM]


def test_no_handlers_outside_the_main_thread():
    handlers = []

    def enter():
        with signals.StopRequest():
            handlers.extend(signal.getsignal(number) for number in BOTH)
    before = [signal.getsignal(number) for number in BOTH]
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert handlers == before


@pytest.mark.parametrize('number', BOTH)
def test_the_first_signal_requests_a_stop(received, number):
    with signals.StopRequest() as stop:
        assert stop.received is None
        _send(number)
        assert stop.received == signal.Signals(number).name
        assert received == []


@pytest.mark.parametrize('first', BOTH)
@pytest.mark.parametrize('second', BOTH)
def test_the_second_signal_acts_as_before(received, first, second):
    with signals.StopRequest() as stop:
        _send(first)
        _send(second)
        assert (stop.received, received) == (signal.Signals(first).name, [second])
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
