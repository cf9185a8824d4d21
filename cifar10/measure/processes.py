"""Processes whose time and memory are measured."""

import contextlib
import datetime
import math
import multiprocessing
import os
import re
import subprocess
import sys
import time

from cifar10.errors import UserError
from cifar10.runs import signals

try:
    import resource
except ImportError:  # Windows does not tell the peak memory in this way
    resource = None

_END_SECS = 20
_STEP_LINE = re.compile(r'^(\S+ \S+): step (\d+), ')


def fresh_process(function, *args):
    """Returns function(*args), called in a new process: nothing is warmed up there, and its memory
    is its own.

    Raises:
      UserError: `function` raised it, or the process died.
    """
    context = multiprocessing.get_context('spawn')
    receiver, sender = context.Pipe(duplex=False)
    context.Lock()  # the first one starts a process of multiprocessing, which unblocks SIGINT here
    process = context.Process(target=_send, args=(sender, function, args), daemon=True)
    with contextlib.ExitStack() as end:  # whatever interrupts the benchmark ends the process too
        # of Ctrl-C the benchmark tells, and ends it
        with signals.held_back(), signals.sigint_blocked():
            process.start()
            signals.children.add(process.pid)
            end.callback(signals.children.discard, process.pid)
            end.callback(process.join)
            end.callback(process.kill)
        sender.close()
        try:
            result = receiver.recv()
        except EOFError:
            process.join()
            raise UserError(
                'The measuring process %s'
                % (
                    'was killed: make sure that there is enough memory'
                    if process.exitcode < 0
                    else 'failed'
                )
            )
    if isinstance(result, UserError):
        raise result
    return result


def _send(sender, function, args):
    try:
        sender.send(function(*args))
    except UserError as error:
        sender.send(error)


def usage():
    """The CPU seconds that this process has used (user and system), and its peak memory in MB."""
    return time.process_time(), _peak_mb(resource and resource.getrusage(resource.RUSAGE_SELF))


def run_trainer(command, first_step, last_step):
    """Runs a training script to its end.

    Args:
      command: list of strings.
      first_step, last_step: steps that have log lines.

    Returns:
      The seconds between those two lines, and the peak memory of the process in MB.

    Raises:
      UserError: it failed; stderr shows why.
    """
    times = {}

    def read(line):
        match = _STEP_LINE.match(line)
        if match:
            times[int(match.group(2))] = datetime.datetime.fromisoformat(match.group(1))

    peak_mb = watched(command, read)
    if last_step not in times:  # a signal has ended it
        raise UserError(
            '%s was stopped before step %d: measure again'
            % (os.path.basename(command[1]), last_step)
        )
    return (times[last_step] - times[first_step]).total_seconds(), peak_mb


def watched(command, read, end_early=subprocess.Popen.kill):
    """Runs a script to its end, and calls read(line) for each line of its standard output; returns
    its peak memory in MB.

    Args:
      command: list of strings.
      read: a function.
      end_early: a function that ends the process when something else interrupts the measurement.

    Raises:
      UserError: it failed; stderr shows why.
    """
    with contextlib.ExitStack() as end:
        # in a session of its own, Ctrl-C does not reach the script; the benchmark ends it
        with signals.held_back():
            process = end.enter_context(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, universal_newlines=True, start_new_session=True
                )
            )
            signals.children.add(process.pid)
            end.callback(signals.children.discard, process.pid)
            end.callback(end_early, process)
        for line in process.stdout:
            read(line)
        used = None
        if resource:
            _, process.returncode, used = os.wait4(process.pid, 0)
        status = process.wait()
    if status:
        raise UserError('%s failed' % os.path.basename(command[1]))
    return _peak_mb(used)


def end_with_tasks(process):
    """Ends a script that has to end what it has started."""
    process.terminate()
    try:
        process.wait(_END_SECS)
    except subprocess.TimeoutExpired:
        process.kill()


def _peak_mb(used):
    return (
        math.nan
        if used is None
        else used.ru_maxrss / (2**20 if sys.platform == 'darwin' else 2**10)
    )
