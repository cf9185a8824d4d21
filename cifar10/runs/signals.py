"""SIGINT, SIGTERM and SIGHUP: the first asks for a tidy end, the second ends the process at once."""
import contextlib
import os
import signal
import sys
import threading

_NAMES = ['SIGINT', 'SIGTERM', 'SIGHUP']  # Windows has no SIGHUP
STOPPING = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]

stderr = 2  # the file descriptor for lines; another one while 2 is something else
children = set()  # the processes, by number, that must not outlive this one
_raised = []  # since `raise_on_signals`: the signals that `_raise` has handled
_arrived = []  # and those that have come, also while no Python code could run in the main thread
_watching = threading.Event()
_ending = threading.RLock()


class Interrupted(KeyboardInterrupt):
    """A signal asks the process to end."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


def end_at_once(number, frame=None):
    """Ends the process and its children, with one line and exit status 128 + number, whatever it is doing; a handler of signals."""
    _ending.acquire()  # for good: if another thread comes here too, it waits for the end
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.write(stderr, ('%s: interrupted (%s)\n' % (os.path.basename(sys.argv[0]), signal.Signals(number).name)).encode())
    os._exit(128 + number)


def end_on_signals():
    """Makes every signal end the process at once: before there is anything to save or to tidy up."""
    _handle(end_at_once)


def restore_defaults():
    """Makes signals act as they do in any Python program."""
    _handle(signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def raise_on_signals():
    """Makes the first signal raise Interrupted in the main thread, and the second one end the process at once.

    The second works also while the main thread is in TensorFlow's C++ code, where Python's handlers have to wait. Where C++ calls
    Python, as in the construction of graphs, the exception may be lost: see `raise_if_interrupted`.
    """
    _raised.clear()
    _arrived.clear()
    _handle(_raise)
    if not _watching.is_set():
        _watching.set()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=_end_at_second, args=(reader,), daemon=True).start()


def _handle(handler):
    for number in STOPPING:
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, handler)


def _raise(number, frame):
    if _raised and not _is_repeated(number, _raised[0]):
        end_at_once(number)
    if _raised:
        return
    _raised.append(number)
    raise Interrupted(number)


def _is_repeated(number, first):
    """Whether a signal comes from the same event as the first one: when a terminal is closed, the shell and the system send SIGHUP."""
    return number == first == getattr(signal, 'SIGHUP', None)


def _end_at_second(reader):
    """Reads the numbers of signals, which Python's C code writes to a pipe as they come."""
    while True:
        number = os.read(reader, 1)[0]
        if number in STOPPING and not (_arrived and _is_repeated(number, _arrived[0])):
            _arrived.append(number)
            if len(_arrived) == 2:
                end_at_once(number)


def raise_if_interrupted():
    """Raises Interrupted if `raise_on_signals` has raised it before: then it was lost."""
    if _raised:
        raise Interrupted(_raised[0])


def receive(number):
    """Acts as if the process had received the signal `number`, in the way that it treats SIGTERM."""
    signal.getsignal(signal.SIGTERM)(number, None)


class StopRequest:
    """While entered, the first signal only sets `received`, a signal.Signals; a second one acts as it did before.

    Outside the main thread, where Python takes no handlers, it does nothing.
    """
    received = None

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in STOPPING}
            _handle(self._receive)
        return self

    def _receive(self, number, frame):
        if self.received is None:
            self.received = signal.Signals(number)
        elif _is_repeated(number, self.received):
            pass
        elif self._before.get(number) is _raise:
            end_at_once(number)
        else:
            self.__exit__()
            os.kill(os.getpid(), number)

    def __exit__(self, *unused_error):
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def held_back():
    """Delays the signals to the end of the block, so that no process is lost while it starts."""
    caught = []
    before = {number: signal.getsignal(number) for number in STOPPING}
    _handle(lambda number, _: caught.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in caught:
            if callable(before[number]):
                before[number](number, None)
            else:
                os.kill(os.getpid(), number)
