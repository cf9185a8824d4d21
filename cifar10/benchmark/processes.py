"""Measurements of the time and memory of processes."""

from concurrent import futures
import contextlib
import datetime
import math
import multiprocessing
import os
import re
import subprocess
import sys
import time
from typing import NamedTuple

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.system import signals

try:
    import resource
except ImportError:  # Windows
    resource = None

_STEP_LINE = re.compile(r'(?:\[worker 0\] )?(\S+ \S+): step (\d+), ')
# On Linux: the name of an interface, 8 numbers of its received and 8 of its sent data, bytes first.
# In a container, the interfaces in /sys may be those of the machine.
_INTERFACES = '/proc/net/dev'


def call_in_new_process(function, *args):
    """Return function(*args), called in a new process with its own memory.

    Raises:
      UserError: `function` raised it, or the process died.
    """
    spawn = multiprocessing.get_context('spawn')
    with futures.ProcessPoolExecutor(1, spawn) as pool, contextlib.ExitStack() as end:
        with signals.delay_signals():
            result = pool.submit(_call, function, args)
            (process,) = multiprocessing.active_children()
            signals.child_pids.add(process.pid)
            end.callback(signals.child_pids.discard, process.pid)
            end.callback(process.kill)  # An interrupt does not wait for the result.
        try:
            return result.result()
        except futures.process.BrokenProcessPool:
            raise UserError(
                'The benchmark process has died',
                'if memory is short, choose a smaller {batch_size}',
                'batch_size',
            )


def _call(function, args):
    try:
        return function(*args)
    except (UserError, OSError):
        raise
    except Exception as error:  # TensorFlow's errors cannot be pickled.
        raise UserError(f'The measurement failed: {errors.reason(error)}')


def resource_usage():
    """Return the CPU seconds (user and system) and the peak memory in MB of this process."""
    return time.process_time(), _peak_mb(resource and resource.getrusage(resource.RUSAGE_SELF))


class LoggedStep(NamedTuple):
    """Time and traffic at the log line of a step."""

    time: datetime.datetime
    bytes_sent: float  # total of the loopback interface; NaN if unknown


def run_trainer(command, min_last_step, terminate_fn=subprocess.Popen.kill):
    """Run a training script or the launcher to its end.

    Args:
      command: list of strings.
      min_last_step: the step that the script must reach.
      terminate_fn: a function that ends the process if the measurement is interrupted.

    Returns:
      A dict from each step that the chief logs to its LoggedStep; and the peak memory in MB.

    Raises:
      UserError: the script failed or was stopped; stderr shows the reason.
    """
    logged_steps = {}
    with contextlib.ExitStack() as end:
        # In a new session, Ctrl-C does not reach the script. The benchmark ends the script.
        with signals.delay_signals():
            process = end.enter_context(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, universal_newlines=True, start_new_session=True
                )
            )
            signals.child_pids.add(process.pid)
            end.callback(signals.child_pids.discard, process.pid)
            end.callback(terminate_fn, process)
        for line in process.stdout:
            match = _STEP_LINE.match(line)
            if match:
                when = datetime.datetime.fromisoformat(match.group(1))
                logged_steps[int(match.group(2))] = LoggedStep(when, _loopback_bytes())
        rusage = None
        if resource:
            _, process.returncode, rusage = os.wait4(process.pid, 0)
        status = process.wait()
    script = os.path.basename(command[1])
    if status:
        raise UserError(f'{script} failed')
    if max(logged_steps, default=0) < min_last_step:  # ended by a signal
        raise UserError(f'{script} was stopped before step {min_last_step}', 'measure again')
    return logged_steps, _peak_mb(rusage)


def terminate_gracefully(process):
    """Terminate a script; give it 20 seconds to end its own processes."""
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()


def _loopback_bytes():
    if not os.path.exists(_INTERFACES):
        return math.nan
    with open(_INTERFACES) as interfaces:
        return int(re.findall(r'^ *lo:(.*)', interfaces.read(), re.M)[0].split()[8])


def _peak_mb(rusage):
    if rusage is None:
        return math.nan
    return rusage.ru_maxrss / (2**20 if sys.platform == 'darwin' else 2**10)
