"""Signals to a program under the runner; the oracle is the same program under Python."""

import signal
import subprocess
import sys

import pytest

from tests.helpers import programs

pytestmark = pytest.mark.slow

SAVES = """
w = tf.Variable(0.0)
with tf.Session() as session:
    session.run(w.initializer)
    try:
        session.run(tf.assign_add(w, 1.0))
        print('waits', flush=True)
        time.sleep(1000)  # An interrupt in a loop of runs may be lost in a destructor.
    except KeyboardInterrupt:
        path = tf.train.Saver().save(session, 'ckpt/model', write_meta_graph=False)
        print('saved', session.run(w) == tf.train.load_variable(path, 'Variable'))
"""
JOINS = """
server = tf.train.Server.create_local_server()
print('waits', flush=True)
server.join()
"""


@pytest.mark.parametrize(
    'text, signum, status, stdout',
    [(SAVES, signal.SIGINT, 0, 'saved True\n'), (JOINS, signal.SIGTERM, -signal.SIGTERM, '')],
)
def test_a_program_gets_the_signal(tmp_path, text, signum, status, stdout):
    program = tmp_path / 'program.py'
    program.write_text(f'import os, time, tensorflow as tf\nos.chdir({str(tmp_path)!r})\n' + text)
    process = programs.start('cifar10_run', str(program))
    assert process.stdout.readline() == 'waits\n', process.stderr.read()
    process.send_signal(signum)
    assert process.communicate() == (stdout, '')
    assert process.returncode == status


def _interrupt(process):
    """Interrupt a program that waits; return its exit status, output and traceback."""
    assert process.stdout.readline() == 'waits\n', process.stderr.read()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    # TensorFlow 1.15 warns first. Some versions of Python mark the failing part of a line with ^.
    lines = stderr[stderr.index('Traceback') :].splitlines()
    return process.returncode, stdout, [line for line in lines if line.strip(' ^~')]


def test_ctrl_c_does_what_it_does_under_python(tmp_path):
    program = tmp_path / 'program.py'
    program.write_text(
        'import atexit, time\n'
        'atexit.register(print, "end")\n'
        'try:\n'
        '    print("waits", flush=True), time.sleep(1000)\n'
        'finally:\n'
        '    print("closes its files")\n'
    )
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    expected = _interrupt(subprocess.Popen([sys.executable, str(program)], **pipes))
    assert expected[1] == 'closes its files\nend\n'
    runner = programs.start('cifar10_run', str(program), wrapper=programs.AS_A_USER)
    assert _interrupt(runner) == expected
