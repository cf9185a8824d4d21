"""The scripts, as a process or inside the process of the test, where TensorFlow is loaded."""

import contextlib
import io
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from unittest import mock

from absl import app, flags

from tests.helpers import forks
from tests.helpers.forks import DEADLINE_SECS, ROOT

# absl defines them once per process: own_flags must not remove them
app.define_help_flags()

SCRIPTS = sorted(
    name[: -len('.py')]
    for name in os.listdir(os.path.join(ROOT, 'scripts'))
    if name.endswith('.py')
)
AS_A_USER = ('env',)  # wrapper of a script that imports TensorFlow itself

_running = []

# Calls scripts in a new process.
_DRIVER = """
import json, os, sys
from tests.helpers import programs
print(json.dumps([programs.call(*words) for words in json.loads(sys.argv[1])]), flush=True)
os._exit(0)
"""


def path(script, checkout=ROOT):
    """Return the file of a script."""
    return os.path.join(checkout, 'scripts', script + '.py')


def start(script, *args, wrapper=(), checkout=ROOT, **environment):
    """Start a script; it is killed after a deadline, or at the end of the test.

    With a wrapper or an environment it starts as a user starts it, else as a fork, which is faster.

    Args:
      wrapper: prefix of the command, see faults.
      checkout: the working directory of a fork, which has the script and its packages.
    """
    if wrapper or environment:
        inherited = {
            name: value for name, value in os.environ.items() if name != 'TF_CPP_MIN_LOG_LEVEL'
        }
        process = subprocess.Popen(
            list(wrapper) + [sys.executable, path(script)] + list(args),
            universal_newlines=True,
            env=dict(inherited, **dict({'PYTHONPATH': ROOT}, **environment)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    else:
        command = [path(script, checkout)] + list(args)
        process = forks.Process(command, checkout=checkout)
    timer = threading.Timer(DEADLINE_SECS, _end, [process])
    timer.daemon = True
    timer.start()
    _running.append((process, timer))
    return process


def _end(process):
    """End a running process: after SIGTERM it can end its children."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()


def end_all():
    """End every running process."""
    while _running:
        process, timer = _running.pop()
        timer.cancel()
        _end(process)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def run(script, *args, **environment):
    """Run a script to its end; return (exit status, stdout, stderr)."""
    process = start(script, *args, **environment)
    stdout, stderr = process.communicate()
    return process.returncode, stdout, stderr


def succeed(script, *args):
    """Run a script that must succeed without output on stderr; return its stdout."""
    status, stdout, stderr = run(script, *args)
    assert (status, stderr) == (0, ''), stderr
    return stdout


@contextlib.contextmanager
def own_flags():
    """Remove the flags defined in the block, so that another script can define them."""
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
        flags.FLAGS.unparse_flags()
        flags.FLAGS.set_gnu_getopt(True)  # cifar10_run.py changes it


def call(script, *args):
    """Run a script inside this process; return (exit status, stdout, stderr)."""
    argv, environment, handler = sys.argv, dict(os.environ), signal.getsignal(signal.SIGINT)
    sys.argv = [path(script)] + list(args)
    # The end of a script must not end all tests.
    with own_flags(), mock.patch.object(os, '_exit', sys.exit), contextlib.redirect_stdout(
        io.StringIO()
    ) as stdout, contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            runpy.run_path(path(script), run_name='__main__')
            status = 0
        except SystemExit as end:
            status = end.code or 0
        finally:
            signal.signal(signal.SIGINT, handler)
            sys.argv = argv
            os.environ.clear()
            os.environ.update(environment)
    return status, stdout.getvalue(), stderr.getvalue()


def call_in_one_process(commands, wrapper=(), preamble=''):
    """Run scripts inside one new process; return a list of what `call` returns.

    Args:
      commands: a list of lists of words, each the arguments of `call`.
      wrapper: prefix of the process's command, see faults.
      preamble: Python code that comes first.
    """
    driver = subprocess.run(
        list(wrapper) + [sys.executable, '-c', preamble + _DRIVER, json.dumps(commands)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECS,
    )
    assert driver.returncode == 0, driver.stderr
    return json.loads(driver.stdout.splitlines()[-1])
