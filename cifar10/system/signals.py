"""Stop by SIGINT, SIGTERM or SIGHUP, or by the end of the reader of standard output."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time

STOP_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
_REPEAT_SECS = 1

child_pids = set()  # processes to kill at the second signal
_requests = []  # the StopRequest of the current block


class StopRequest:
    """Context manager in which the first signal sets `received_signal`.

    The second one ends a script; in a notebook, the former handler gets it. An ignored signal
    (nohup) stays ignored. The same signal within a second counts once: `timeout` signals the
    process and then its group, and both the shell and the kernel signal the end of a terminal.
    Ctrl-C can also end the reader of the output, so it counts once directly after a closed pipe.

    A thread counts the signals, because Python's handlers wait while the main thread is in C++
    code, and run once for equal signals of this time.
    """

    received_signal = _first = None

    def __init__(self, raises=False):
        """Make the request; `raises`: raise KeyboardInterrupt(number) at the first signal.

        The block then removes unfinished files. TensorFlow could suppress the exception.
        """
        self._raises = raises

    def __enter__(self):
        _requests.append(self)
        is_main = threading.current_thread() is threading.main_thread()
        handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS if is_main}
        self._is_script = handlers.get(signal.SIGINT) == signal.SIG_DFL  # see program.start
        self._handlers = {n: found for n, found in handlers.items() if found != signal.SIG_IGN}
        for number in self._handlers:
            signal.signal(number, self._handle)
        if self._is_script:
            reader, self._writer = socket.socketpair()
            self._writer.setblocking(False)
            signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            threading.Thread(
                target=self._exit_at_second, name='count signals', args=[reader], daemon=True
            ).start()
        return self

    def _handle(self, number, frame):
        if self._is_script or not self._is_second(number):
            self.receive(number)
        else:
            signal.signal(number, self._handlers[number])
            os.kill(os.getpid(), number)

    def receive(self, number):
        """Set `received_signal`, and raise KeyboardInterrupt if requested; only the first time."""
        if self.received_signal is None:
            self.received_signal = signal.Signals(number)
            if number == signal.SIGPIPE:
                self._first = number, time.monotonic()
            if self._raises:
                raise KeyboardInterrupt(number)

    def _exit_at_second(self, reader):
        """Read the signal numbers that Python's C code writes to a socket, until it is closed."""
        with reader:
            for (number,) in iter(lambda: reader.recv(1), b''):
                if number in self._handlers and self._is_second(number):
                    _exit(number)

    def _is_second(self, number):
        """Count a signal; return True if it is the second one."""
        now = time.monotonic()
        first, time_of_first = self._first = self._first or (number, now)
        return now - time_of_first >= _REPEAT_SECS or first not in (number, signal.SIGPIPE)

    def __exit__(self, *unused_error):
        _requests.remove(self)
        for number, handler in self._handlers.items():
            # A script ends now: the repetition must not replace its exit status.
            is_repetition = self._is_script and number == self.received_signal
            signal.signal(number, signal.SIG_IGN if is_repetition else handler)
        if self._is_script:
            signal.set_wakeup_fd(-1)
            self._writer.close()


def receive_broken_pipe():
    """Let the end of the reader count as a first signal, never as a second; else exit."""
    if not _requests:
        os._exit(128 + signal.SIGPIPE)
    _requests[-1].receive(signal.SIGPIPE)


def _exit(number):
    """Kill the children, print a line and exit with status 128 + number."""
    for child in child_pids:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    line = f'{os.path.basename(sys.argv[0])}: interrupted ({signal.Signals(number).name})\n'
    with contextlib.suppress(OSError):
        os.write(2, line.encode())
    os._exit(128 + number)
