"""Signals to a program under the runner; the oracle is the same program under Python."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.helpers import programs

pytestmark = pytest.mark.slow

START = """import sys, time
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
def wait():
    print('waits', flush=True), time.sleep(1000)
"""
SAVES = """
w = tf.Variable(0.0)
update = tf.assign_add(w, 1.0)
with tf.Session() as session:
    session.run(w.initializer)
    try:
        session.run(update)
        wait()  # An interrupt in a loop of runs may be lost in a destructor, in any Python.
    except KeyboardInterrupt:
        path = tf.train.Saver().save(session, 'ckpt/model', write_meta_graph=False)
        print('saved', session.run(w) == tf.train.load_variable(path, 'Variable'))
"""
ENDS = """
try:
    wait()
finally:
    print('closes its files')
"""
EXITS = """
import atexit, signal
atexit.register(print, 'end')
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
wait()
"""
JOINS = """
server = tf.train.Server.create_local_server()
print('waits', flush=True)
server.join()
"""
IN_RUN = """
with tf.Session() as session:
    print('waits', flush=True)
    session.run(tf.FIFOQueue(1, tf.float32).dequeue())
"""


def _start(command, directory):
    """Start a program; return a function that ends it with a signal, and then its results."""
    directory.mkdir()
    process = subprocess.Popen(
        command,
        cwd=str(directory),
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL='3', TF_ENABLE_ONEDNN_OPTS='0'),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    timer = threading.Timer(programs.DEADLINE_SECS, process.kill)
    timer.start()

    def end(signum):
        try:
            assert process.stdout.readline() == 'waits\n', process.stderr.read()
            process.send_signal(signum)
            stdout, stderr = process.communicate()
        finally:
            timer.cancel()
            process.kill()
            process.communicate()
        # Some versions of Python mark the failing part of a line with ^.
        lines = [line for line in stderr.splitlines() if line.strip(' ^~')]
        places = [number for number, line in enumerate(lines) if line.startswith('Traceback')]
        return process.returncode, stdout, lines[places[0] :] if places else []

    return end


@pytest.mark.parametrize(
    'text, signum, stdout',
    [
        (SAVES, signal.SIGINT, 'saved True\n'),
        (ENDS, signal.SIGINT, 'closes its files\n'),
        (ENDS, signal.SIGTERM, ''),
        (EXITS, signal.SIGTERM, 'end\n'),
        (JOINS, signal.SIGTERM, ''),
        (IN_RUN, signal.SIGTERM, ''),
    ],
)
def test_a_signal_does_what_it_does_under_python(tmp_path, text, signum, stdout):
    program = tmp_path / 'program.py'
    program.write_text(START + text)
    under_python = _start([sys.executable, str(program)], tmp_path / 'python')
    command = [sys.executable, programs.path('cifar10_run'), str(program)]
    under_runner = _start(command, tmp_path / 'runner')
    expected, found = under_python(signum), under_runner(signum)
    assert found == expected
    assert found[1] == stdout
