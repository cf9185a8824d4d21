"""Handlers of SIGINT, SIGTERM and SIGHUP: immediate exit, or request of a stop."""

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

stderr_fd = 2  # changed while descriptor 2 is redirected
child_pids = set()  # processes to kill at exit
_received_signals = []  # including those received in C++ code
_ending_lock = threading.Lock()  # acquired once, by the exiting thread
_initial_handlers = {}  # those before install_handlers
_watch = []  # after install_handlers: the socket that gets signal numbers, and the thread


class SignalInterrupt(KeyboardInterrupt):
    """Signal that asks the process to stop."""

    def __init__(self, signum):
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


def exit_immediately(signum, frame=None):
    """Kill the children, print a line and exit with status 128 + signum; a signal handler."""
    if not _ending_lock.acquire(blocking=False):
        return  # The exit has begun.
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
    """Return True if a write to stderr does not block, as in a pipe that nobody reads."""
    try:  # On Windows, select takes sockets only.
        return os.name == 'nt' or bool(select.select([], [stderr_fd], [], 1)[1])
    except OSError:  # stderr is closed.
        return False


def install_handlers():
    """Let each stop signal, or in a StopRequest the second one, end the process immediately.

    The handlers raise no exception, because TensorFlow could suppress or replace it. A thread
    handles the second signal, because Python's handlers wait while the main thread is in C++ code.
    """
    _initial_handlers.update(_handlers())
    _set(dict.fromkeys(_initial_handlers, exit_immediately))
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_exit_at_second_signal, args=[reader], daemon=True)
    thread.start()
    _watch[:] = [writer, thread]


def _exit_at_second_signal(reader):
    """Read the signal numbers that Python's C code writes to a socket, until it is closed."""
    for (signum,) in iter(lambda: reader.recv(1), b''):
        if signum in STOP_SIGNALS and not (
            _received_signals and _is_repeated(signum, _received_signals[0])
        ):
            _received_signals.append(signum)
            if len(_received_signals) >= 2:
                exit_immediately(signum)


def _is_repeated(signum, first):
    """Return True if a signal is the first one's duplicate.

    When a terminal is closed, both the shell and the kernel send SIGHUP.
    """
    return signum == first == getattr(signal, 'SIGHUP', None)


def restore_handlers():
    """Restore the state from before install_handlers."""
    signal.set_wakeup_fd(-1)
    _set(_initial_handlers)
    _initial_handlers.clear()
    _received_signals.clear()
    if _watch:
        writer, thread = _watch
        _watch.clear()
        writer.close()
        thread.join()


def raise_signal(signum):
    """Call the handler of SIGINT, which is never ignored, with `signum`."""
    if not _received_signals:
        _received_signals.append(signum)  # The next signal is the second one.
    signal.getsignal(signal.SIGINT)(signum, None)


def _handlers():
    """Return the handlers that can be replaced; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    # Keep an ignored SIGHUP (nohup) or SIGTERM ignored. None is a handler not set by Python.
    return {
        signum: found
        for signum, found in zip(STOP_SIGNALS, map(signal.getsignal, STOP_SIGNALS))
        if found is not None and (found != signal.SIG_IGN or signum == signal.SIGINT)
    }


def _set(handlers):
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


class StopRequest:
    """Context manager in which the first signal only sets `received_signal`, a signal.Signals.

    The second signal ends a script: the thread of install_handlers gets it. Without that thread, as
    in a notebook, the former handlers get it.
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

    The exception lets the code remove unfinished files. Do not call TensorFlow in the block; see
    install_handlers.
    """

    def _handle(self, signum, frame):
        is_first = self.received_signal is None
        super()._handle(signum, frame)
        if is_first:
            raise SignalInterrupt(signum)

    def __exit__(self, error_type, *unused_error):
        super().__exit__()
        # Python ignores exceptions in a __del__: raise the exception again.
        if self.received_signal and error_type is None:
            raise SignalInterrupt(self.received_signal)


@contextlib.contextmanager
def delay_signals():
    """Delay signals to the end of the block, so that each child is recorded."""
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
