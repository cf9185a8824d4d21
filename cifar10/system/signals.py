"""SIGINT, SIGTERM and SIGHUP end the process: at once, or tidily where there is something to save
or to remove."""

import contextlib
import os
import select
import signal
import socket
import sys
import threading

STOPPING = [  # Windows has no SIGHUP
    getattr(signal, name) for name in ('SIGINT', 'SIGTERM', 'SIGHUP') if hasattr(signal, name)
]
NOBODY_READS = getattr(signal, 'SIGPIPE', signal.SIGTERM)  # Windows has no SIGPIPE, nor SIGKILL
_KILL = getattr(signal, 'SIGKILL', signal.SIGTERM)

stderr = 2  # the file descriptor for lines; another one while 2 is something else
children = set()  # the processes, by number, that must not outlive this one
_arrived = []  # the signals that have come, also while no Python code could run in the main thread
_ending = threading.Lock()  # held by the thread that ends the process
_at_start = {}  # the handlers that Python has set


class Interrupted(KeyboardInterrupt):
    """A signal asks the process to end."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


def end_at_once(number, frame=None):
    """Ends the process and its children, with one line and exit status 128 + number, whatever it is
    doing; a handler of signals."""
    if not _ending.acquire(blocking=False):
        return  # the end is under way
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(child, _KILL)
    if number != NOBODY_READS and _can_write():
        name = signal.Signals(number).name
        line = '%s: interrupted (%s)\n' % (os.path.basename(sys.argv[0]), name)
        with contextlib.suppress(OSError):
            os.write(stderr, line.encode())
    os._exit(128 + number)


def _can_write():
    """Whether a line on stderr would be taken; if nobody reads at present, as of a pager, to write
    would wait."""
    try:  # Windows asks sockets only
        return os.name == 'nt' or bool(select.select([], [stderr], [], 1)[1])
    except OSError:  # it is closed
        return False


def end_on_signals():
    """Makes every signal end the process at once, but where a StopRequest is entered only the
    second one.

    So no exception comes up in TensorFlow's code, which could lose it or raise another one instead.
    The second works also while the main thread is in C++ code, where Python's handlers have to
    wait.
    """
    _at_start.update(_handlers())
    _set(dict.fromkeys(_at_start, end_at_once))
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_at_second, args=(reader, writer), daemon=True).start()


def _end_at_second(reader, unused_writer):
    """Reads the numbers of signals, which Python's C code writes to a socket as they come; it must
    stay open."""
    while True:
        number = reader.recv(1)[0]
        if number in STOPPING and not (_arrived and _is_repeated(number, _arrived[0])):
            _arrived.append(number)
            if len(_arrived) == 2:
                end_at_once(number)


def _is_repeated(number, first):
    """Whether a signal comes from the same event as the first one: when a terminal is closed, the
    shell and the system send SIGHUP."""
    return number == first == getattr(signal, 'SIGHUP', None)


def restore_defaults():
    """Makes signals act as they did before `end_on_signals`."""
    signal.set_wakeup_fd(-1)
    _set(_at_start)


def receive(number):
    """Acts as if the process had received the signal `number`, in the way that it treats SIGINT,
    which it never ignores."""
    signal.getsignal(signal.SIGINT)(number, None)


def _handlers():
    """The handlers of the signals that can be handled: none outside the main thread, where Python
    takes no handlers."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    # nohup ignores SIGHUP; None is a handler that is not Python's.
    return {
        number: found
        for number, found in zip(STOPPING, map(signal.getsignal, STOPPING))
        if found is not None and (found != signal.SIG_IGN or number == signal.SIGINT)
    }


def _set(handlers):
    for number, handler in handlers.items():
        signal.signal(number, handler)


class StopRequest:
    """While entered, the first signal only sets `received`, a signal.Signals; a second one acts as
    it did before."""

    received = None

    def __enter__(self):
        self._before = _handlers()  # which a second signal needs, even if it comes at once
        _set(dict.fromkeys(self._before, self._receive))
        return self

    def _receive(self, number, frame):
        if self.received is None:
            self.received = signal.Signals(number)
        elif not _is_repeated(number, self.received):
            _set(self._before)
            os.kill(os.getpid(), number)

    def __exit__(self, *unused_error):
        _set(self._before)


class Interruptible(StopRequest):
    """While entered, the first signal raises Interrupted in the main thread, so that what is half
    done is removed.

    It is not for code that calls TensorFlow, see `end_on_signals`.
    """

    def _receive(self, number, frame):
        is_first = self.received is None
        super()._receive(number, frame)
        if is_first:
            raise Interrupted(number)

    def __exit__(self, error_type, *unused_error):
        super().__exit__()
        # it came up where errors are ignored, as in a __del__
        if self.received and error_type is None:
            raise Interrupted(self.received)


@contextlib.contextmanager
def held_back():
    """Delays the signals to the end of the block, so that no process is lost while it starts."""
    caught = []
    before = _handlers()
    _set(dict.fromkeys(before, lambda number, _: caught.append(number)))
    try:
        yield
    finally:
        _set(before)
        for number in caught:
            if callable(before[number]):
                before[number](number, None)
            else:
                os.kill(os.getpid(), number)


@contextlib.contextmanager
def sigint_blocked():
    """Delays SIGINT to the end of the block; a process that is started in it never gets one."""
    if not hasattr(signal, 'pthread_sigmask'):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
