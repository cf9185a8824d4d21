"""Handlers of SIGINT, SIGTERM and SIGHUP: immediate exit, or request of a stop."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time

# Windows has no SIGHUP, SIGPIPE and SIGKILL.
STOP_SIGNALS = [
    getattr(signal, name) for name in ('SIGINT', 'SIGTERM', 'SIGHUP') if hasattr(signal, name)
]
BROKEN_PIPE_SIGNAL = getattr(signal, 'SIGPIPE', signal.SIGTERM)
_KILL = getattr(signal, 'SIGKILL', signal.SIGTERM)
_REPEAT_SECS = 1

stderr_fd = 2  # changed while descriptor 2 is redirected
child_pids = set()  # processes to kill at exit
_first = []  # number and time of the first signal
_ending_lock = threading.Lock()  # acquired once, by the exiting thread
_initial_handlers = {}  # those before install_handlers
_counting_thread = []  # after install_handlers: the socket from which it reads the signals


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
    if signum != BROKEN_PIPE_SIGNAL:
        name = signal.Signals(signum).name
        line = f'{os.path.basename(sys.argv[0])}: interrupted ({name})\n'
        with contextlib.suppress(OSError):
            os.write(stderr_fd, line.encode())
    os._exit(128 + signum)


def _count(signum):
    """Count a signal; return True if it is the second one.

    The same signal within a second counts once: `timeout` signals the process and then its group,
    and both the shell and the kernel signal the end of a terminal. Ctrl-C can also end the reader
    of the output, so a signal directly after a closed pipe is not the second one.
    """
    now = time.monotonic()
    if not _first:
        _first.append((signum, now))
    number, when = _first[0]
    return now - when >= _REPEAT_SECS or number not in (signum, BROKEN_PIPE_SIGNAL)


def install_handlers():
    """Let each stop signal, or in a StopRequest the second one, end the process immediately.

    The handlers raise no exception, because TensorFlow could suppress or replace it. A thread
    counts the signals, because Python's handlers wait while the main thread is in C++ code.
    """
    _initial_handlers.update(_handlers())
    _set(dict.fromkeys(_initial_handlers, exit_immediately))
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_exit_at_second_signal, args=[reader], daemon=True).start()
    _counting_thread.append(writer)


def _exit_at_second_signal(reader):
    """Read the signal numbers that Python's C code writes to a socket, until it is closed."""
    for (signum,) in iter(lambda: reader.recv(1), b''):
        if signum in STOP_SIGNALS and _count(signum):
            exit_immediately(signum)


def restore_handlers():
    """Restore the state from before install_handlers."""
    signal.set_wakeup_fd(-1)
    _set(_initial_handlers)
    _initial_handlers.clear()
    _first.clear()
    while _counting_thread:
        _counting_thread.pop().close()


def raise_signal(signum):
    """Call the handler of SIGINT, which is never ignored, with `signum`."""
    _count(signum)
    signal.getsignal(signal.SIGINT)(signum, None)


def _handlers():
    """Return the handlers that can be replaced; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    # Keep an ignored SIGHUP (nohup) or SIGTERM ignored.
    return {
        signum: found
        for signum, found in zip(STOP_SIGNALS, map(signal.getsignal, STOP_SIGNALS))
        if found != signal.SIG_IGN or signum == signal.SIGINT
    }


def _set(handlers):
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


class StopRequest:
    """Context manager in which the first signal only sets `received_signal`, a signal.Signals.

    The second signal ends a script: the thread of install_handlers counts it. Without that thread,
    as in a notebook, the former handlers get it.
    """

    received_signal = None

    def __enter__(self):
        if not _counting_thread:
            _first.clear()  # Each cell of a notebook counts anew.
        self._before = _handlers()
        _set(dict.fromkeys(self._before, self._handle))
        return self

    def _handle(self, signum, frame):
        is_second = not _counting_thread and _count(signum)
        if self.received_signal is None:
            self.received_signal = signal.Signals(signum)
        elif is_second:
            _set(self._before)
            os.kill(os.getpid(), signum)

    def __exit__(self, *unused_error):
        # After a signal, a script saves, evaluates and ends: the repetition must not end it before.
        if not (self.received_signal and _counting_thread):
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
