"""SIGINT and SIGTERM: as an exception, as a request to stop, or held back for a while."""
import contextlib
import os
import signal
import sys
import threading

_interrupted = threading.Event()


def raise_on_ctrl_c():
    """Makes SIGINT raise KeyboardInterrupt, and remembers it.

    Where C++ calls Python, as in TensorFlow's construction of graphs, the exception may be lost: see `raise_if_interrupted`.
    """
    def handle(number, frame):
        _interrupted.set()
        raise KeyboardInterrupt
    _interrupted.clear()
    signal.signal(signal.SIGINT, handle)


def raise_if_interrupted():
    """Raises KeyboardInterrupt if `raise_on_ctrl_c` raised it before: then it was lost."""
    if _interrupted.is_set():
        raise KeyboardInterrupt


def exit_on_sigterm():
    """Makes SIGTERM raise SystemExit, so that every `finally` is carried out; the exit status is 143."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


class StopRequest:
    """While entered, the first SIGINT or SIGTERM only sets `received`, to its name; a second one acts as before.

    Outside the main thread, where Python takes no handlers, it does nothing.
    """
    received = None

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def _receive(self, number, frame):
        if self.received is None:
            self.received = signal.Signals(number).name
        else:
            self.__exit__()
            os.kill(os.getpid(), number)

    def __exit__(self, *unused_error):
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def held_back():
    """Delays SIGINT and SIGTERM to the end of the block, so that no process is lost while it starts."""
    caught = []
    handlers = {number: signal.signal(number, lambda number, _: caught.append(number))
                for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in caught:
            os.kill(os.getpid(), number)
