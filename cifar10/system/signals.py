"""Handlers of SIGINT, SIGTERM and SIGHUP.

They end the process at once, or tidily where there is something to save or to remove.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import threading

STOP_SIGNALS = [  # Windows has no SIGHUP
    getattr(signal, name) for name in ('SIGINT', 'SIGTERM', 'SIGHUP') if hasattr(signal, name)
]
BROKEN_PIPE_SIGNAL = getattr(
    signal, 'SIGPIPE', signal.SIGTERM
)  # Windows has no SIGPIPE, nor SIGKILL
_KILL = getattr(signal, 'SIGKILL', signal.SIGTERM)

stderr_fd = 2  # the file descriptor for lines; another one while 2 is something else
child_pids = set()  # the ids of processes that must not outlive this one
_received_signals = []  # also those that came while the main thread was in C++ code
_ending_lock = threading.Lock()  # held by the thread that ends the process
_initial_handlers = {}  # the handlers that Python has set


class SignalInterrupt(KeyboardInterrupt):
    """Signal that asks the process to end."""

    def __init__(self, signum):
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


def exit_immediately(signum, frame=None):
    """End process and children, with a line and exit status 128 + number; a signal handler."""
    if not _ending_lock.acquire(blocking=False):
        return  # the end is under way
    for child in child_pids:
        with contextlib.suppress(OSError):
            os.kill(child, _KILL)
    if signum != BROKEN_PIPE_SIGNAL and _can_write():
        name = signal.Signals(signum).name
        line = f'{os.path.basename(sys.argv[0])}: interrupted ({name})\n'
        with contextlib.suppress(OSError):
            os.write(stderr_fd, line.encode())
    os._exit(128 + signum)


def _can_write():
    """Return whether stderr takes a line now.

    If nobody reads, as of a pager, writing would wait.
    """
    try:  # Windows asks sockets only
        return os.name == 'nt' or bool(select.select([], [stderr_fd], [], 1)[1])
    except OSError:  # it is closed
        return False


def install_handlers():
    """Make every signal, or in a StopRequest the second one, end the process at once.

    So no exception comes up in TensorFlow's code, which could lose it or raise another one instead.
    The second works also while the main thread is in C++ code, where Python's handlers have to
    wait.
    """
    _initial_handlers.update(_handlers())
    _set(dict.fromkeys(_initial_handlers, exit_immediately))
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_exit_at_second_signal, args=(reader, writer), daemon=True).start()


def _exit_at_second_signal(reader, unused_writer):
    """Read the numbers of signals, which Python's C code writes to a socket as they come.

    The writer must stay open.
    """
    while True:
        signum = reader.recv(1)[0]
        if signum in STOP_SIGNALS and not (
            _received_signals and _is_repeated(signum, _received_signals[0])
        ):
            _received_signals.append(signum)
            if len(_received_signals) >= 2:
                exit_immediately(signum)


def _is_repeated(signum, first):
    """Return whether a signal comes from the same event as the first one.

    When a terminal is closed, the shell and the system send SIGHUP.
    """
    return signum == first == getattr(signal, 'SIGHUP', None)


def restore_handlers():
    """Make signals act as they did before `install_handlers`."""
    signal.set_wakeup_fd(-1)
    _set(_initial_handlers)


def raise_signal(signum):
    """Run the handler of SIGINT, which is never ignored, as if `signum` had been received."""
    if not _received_signals:
        _received_signals.append(signum)  # The next one is the second.
    signal.getsignal(signal.SIGINT)(signum, None)


def _handlers():
    """Return the handlers of the signals that can be handled.

    There are none outside the main thread, where Python takes no handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    # nohup ignores SIGHUP; None is a handler that is not Python's.
    return {
        signum: found
        for signum, found in zip(STOP_SIGNALS, map(signal.getsignal, STOP_SIGNALS))
        if found is not None and (found != signal.SIG_IGN or signum == signal.SIGINT)
    }


def _set(handlers):
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


class StopRequest:
    """Block in which the first signal only sets `received_signal`, a signal.Signals.

    A second one ends the process if `install_handlers` has been called; else it acts as before the
    block.
    """

    received_signal = None

    def __enter__(self):
        self._before = _handlers()
        _set(dict.fromkeys(self._before, self._handle))
        return self

    def _handle(self, signum, frame):
        if self.received_signal is None:
            self.received_signal = signal.Signals(signum)
        elif not _initial_handlers and not _is_repeated(signum, self.received_signal):
            _set(self._before)
            os.kill(os.getpid(), signum)

    def __exit__(self, *unused_error):
        _set(self._before)


class RaiseOnSignal(StopRequest):
    """Context manager in which the first signal raises SignalInterrupt in the main thread.

    So half-written files are removed. It is not for code that calls TensorFlow, see
    `install_handlers`.
    """

    def _handle(self, signum, frame):
        is_first = self.received_signal is None
        super()._handle(signum, frame)
        if is_first:
            raise SignalInterrupt(signum)

    def __exit__(self, error_type, *unused_error):
        super().__exit__()
        # it came up where errors are ignored, as in a __del__
        if self.received_signal and error_type is None:
            raise SignalInterrupt(self.received_signal)


@contextlib.contextmanager
def delay_signals():
    """Delay the signals to the end of the block, so that no process is lost while it starts."""
    delayed_signals = []
    before = _handlers()
    _set(dict.fromkeys(before, lambda signum, _: delayed_signals.append(signum)))
    try:
        yield
    finally:
        _set(before)
        for signum in delayed_signals:
            if callable(before[signum]):
                before[signum](signum, None)
            else:
                os.kill(os.getpid(), signum)


@contextlib.contextmanager
def block_sigint():
    """Delay SIGINT to the end of the block; a process that is started in it never gets one."""
    if not hasattr(signal, 'pthread_sigmask'):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
