"""The scripts: each as a process of its own, or inside the test's process, where no TensorFlow has
to start."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import threading

from absl import app, flags

from tests.helpers import forks
from tests.helpers.forks import DEADLINE_SECS, ROOT

# absl does so once per process: they must not be removed with a script's flags
app.define_help_flags()

AS_A_USER = ('env',)  # the wrapper of a script that imports TensorFlow itself

_running = []


def path(script):
    """The file of a script."""
    return os.path.join(ROOT, 'scripts', script + '.py')


def start(script, *args, wrapper=(), observation=None, **environment):
    """Starts a script; it is killed after a deadline, or at the end of the test.

    As a user would, if it gets a wrapper or an environment; else as a fork, which is quicker.

    Args:
      wrapper: words of a command that becomes the command after it, see faults.
      observation: of a fork, the arguments of observed.observe.
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
        process = forks.Process([path(script)] + list(args), **observation or {})
    timer = threading.Timer(DEADLINE_SECS, _end, [process])
    timer.daemon = True
    timer.start()
    _running.append((process, timer))
    return process


def _end(process):
    """Ends a process that is still running: SIGTERM lets it end what it has started."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()


def end_all():
    """Ends every process that is still running."""
    while _running:
        process, timer = _running.pop()
        timer.cancel()
        _end(process)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def run(script, *args, **environment):
    """Runs a script to its end; returns (exit status, stdout, stderr)."""
    process = start(script, *args, **environment)
    stdout, stderr = process.communicate()
    return process.returncode, stdout, stderr


def succeed(script, *args):
    """Runs a script that must succeed without a word on stderr; returns its stdout."""
    status, stdout, stderr = run(script, *args)
    assert (status, stderr) == (0, ''), stderr
    return stdout


@contextlib.contextmanager
def own_flags():
    """Removes the flags that are defined in the block, so that another script can define them."""
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
        flags.FLAGS.unparse_flags()


def call(script, *args):
    """Runs a script inside this process; returns (exit status, stdout, stderr)."""
    argv, environment = sys.argv, dict(os.environ)
    umask = os.umask(0o022)
    os.umask(umask)
    sys.argv = [path(script)] + list(args)
    with own_flags(), contextlib.redirect_stdout(
        io.StringIO()
    ) as stdout, contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            runpy.run_path(path(script), run_name='__main__')
            status = 0
        except SystemExit as end:
            status = end.code or 0
        finally:
            sys.argv = argv
            os.umask(umask)
            os.environ.clear()
            os.environ.update(environment)
    return status, stdout.getvalue(), stderr.getvalue()
