"""Child processes for measurements."""

from concurrent import futures
import contextlib
import datetime
import multiprocessing
import os
import re
import subprocess

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.system import signals

_STEP_LINE = re.compile(r'(\S+ \S+): step (\d+), ')


def _kill_at_end(process, stack):
    """Kill a child process when the ExitStack ends, or when a signal ends this process."""
    signals.child_pids.add(process.pid)
    stack.callback(signals.child_pids.discard, process.pid)
    stack.callback(process.kill)


def call_in_new_process(function, *args):
    """Return function(*args), called in a new process with its own memory.

    Raises:
      UserError: `function` raised it.
    """
    spawn = multiprocessing.get_context('spawn')
    with futures.ProcessPoolExecutor(1, spawn) as pool, contextlib.ExitStack() as stack:
        result = pool.submit(_call, function, args)
        (process,) = multiprocessing.active_children()
        _kill_at_end(process, stack)
        return result.result()


def _call(function, args):
    try:
        return function(*args)
    except (UserError, OSError):
        raise
    except Exception as error:  # TensorFlow's errors cannot be pickled.
        raise UserError(f'The measurement failed: {errors.reason(error)}')


def run_trainer(command):
    """Run the command of a training script to its end.

    Returns:
      A dict from each logged step to its datetime.

    Raises:
      UserError: the script failed; stderr shows the reason.
    """
    times = {}
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(
            # In a new session, Ctrl-C does not reach the script: the benchmark ends it.
            subprocess.Popen(
                command, stdout=subprocess.PIPE, universal_newlines=True, start_new_session=True
            )
        )
        _kill_at_end(process, stack)
        for line in process.stdout:
            match = _STEP_LINE.match(line)
            if match:
                times[int(match.group(2))] = datetime.datetime.fromisoformat(match.group(1))
        status = process.wait()
    if status:
        raise UserError(f'{os.path.basename(command[1])} failed')
    return times
