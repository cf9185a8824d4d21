"""A standard output that is full, closed, or of few characters; each in a process of its own."""

import os
import subprocess
import sys

import pytest

from tests.helpers import programs

_PROGRAM = """
import os
import sys
sys.argv = ['program.py']
from cifar10.cli import program, quiet
from cifar10.runs import signals
signals.end_on_signals()
quiet.guard_output()
%s
sys.stdout.flush()
sys.exit(3 if quiet.has_lost_output() else 0)
"""


def _run(program, stdout, **environment):
    """Runs a program; returns its exit status, what it wrote to stdout if that is a pipe, and its
    stderr."""
    done = subprocess.run(
        [sys.executable, '-c', _PROGRAM % program],
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        env=dict(os.environ, PYTHONPATH=programs.ROOT, **environment),
        timeout=programs.DEADLINE_SECS,
    )
    return done.returncode, done.stdout, done.stderr.decode()


def test_a_line_arrives_at_once():
    """A signal may end the process."""
    assert _run("print('one'); os._exit(0)", subprocess.PIPE) == (0, b'one\n', '')


def test_device_placement_arrives():
    """TensorFlow prints it by C's printf; the process ends as the scripts do, without what Python
    does at the end."""
    program = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
print('first')
tf.Session(config=tf.ConfigProto(log_device_placement=True)).run(tf.constant(1.0, name='last'))
program._end(0)"""
    status, stdout, _ = _run(
        program, subprocess.PIPE, PYTHONUNBUFFERED='', TF_CPP_MIN_LOG_LEVEL='3'
    )
    assert status == 0 and b'first\n' in stdout
    assert stdout.endswith(b'\nlast: (Const): /job:localhost/replica:0/task:0/device:CPU:0\n')


def test_what_is_printed_arrives():
    assert _run("print('one'); print('\\u00fc')", subprocess.PIPE, PYTHONIOENCODING='utf-8') == (
        0,
        'one\n\u00fc\n'.encode(),
        '',
    )


def test_characters_that_the_encoding_lacks():
    status, stdout, _ = _run("print('\\u00fc\\udcff')", subprocess.PIPE, PYTHONIOENCODING='ascii')
    assert (status, stdout) == (0, b'\\xfc\\udcff\n')


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='this system has no full device')
def test_a_full_disk_is_told_once():
    with open('/dev/full', 'w') as full:
        status, _, stderr = _run(
            "[print(i, flush=True) for i in range(3)]; print('on', file=sys.stderr)", full
        )
    assert (status, stderr) == (
        3,
        'program.py: cannot write to the standard output (No space left on device): lines are lost\non\n',
    )


_SAVING = """
with signals.StopRequest() as stop:
    print('nobody reads this')
    print('nor this')
print(stop.received.name, file=sys.stderr)
"""
_TIDY = """
try:
    with signals.Interruptible():
        print('nobody reads this')
except signals.Interrupted as interrupt:
    print(interrupt, file=sys.stderr)
"""


@pytest.mark.parametrize(
    'program, status, stderr',
    [
        (_SAVING, 0, 'SIGPIPE\n'),
        (_TIDY, 0, 'SIGPIPE\n'),
        ("print('nobody reads this'); print('on', file=sys.stderr)", 141, ''),
    ],
)
def test_nobody_reads(program, status, stderr):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert _run(program, writer) == (status, None, stderr)
    finally:
        os.close(writer)


def test_no_standard_output_at_all():
    program = "print('x'); sys.stdout.flush(); print(quiet.has_lost_output(), file=sys.stderr)"
    done = subprocess.run(
        ['sh', '-c', 'exec "$0" "$@" >&-', sys.executable, '-c', _PROGRAM % program],
        stderr=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=programs.ROOT),
        timeout=programs.DEADLINE_SECS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b'False\n')
