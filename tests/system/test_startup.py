"""Quiet start of a script; a closed pipe or ASCII as standard output."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.helpers import programs


def _stand_in(directory, source):
    """Writes a fake TensorFlow; returns its PYTHONPATH."""
    (directory / 'tensorflow' / 'compat').mkdir(parents=True)
    (directory / 'tensorflow' / '__init__.py').write_text(source)
    for name in ('__init__', 'v1'):
        (directory / 'tensorflow' / 'compat' / (name + '.py')).write_text('')
    return os.pathsep.join([str(directory), programs.ROOT])


def _run(source, pythonpath, **environment):
    inherited = {
        name: value for name, value in os.environ.items() if name != 'TF_CPP_MIN_LOG_LEVEL'
    }
    process = subprocess.run(
        [sys.executable, '-c', source],
        env=dict(inherited, PYTHONPATH=pythonpath, **environment),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize(
    'script, number', [('cifar10_train', signal.SIGINT), ('cifar10_eval', signal.SIGTERM)]
)
def test_a_signal_during_the_imports(tmp_path, script, number):
    """The fake TensorFlow prints a line and waits."""
    pythonpath = _stand_in(tmp_path, "print('importing', flush=True)\nopen(0).read()\n")
    process = programs.start(script, PYTHONPATH=pythonpath)
    assert process.stdout.readline() == 'importing\n'
    process.send_signal(number)
    assert process.communicate() == ('', '')
    assert process.returncode == -number


def test_mistakes_need_no_tensorflow():
    """The import takes seconds."""
    mistakes = [[script, '--no_such_flag'] for script in programs.SCRIPTS]
    contradictions = [
        ['cifar10_train', '--deterministic'],
        ['cifar10_distributed_train', '--worker_hosts=a:1', '--task_index=0'],
    ]
    lines = [
        '--deterministic needs a seed: add --seed=1',
        '--job_name is missing: give --worker_hosts, ',
    ]
    results = programs.call_in_one_process(
        mistakes + contradictions, preamble="import sys; sys.modules['tensorflow'] = None\n"
    )
    for (script, _), (status, _, stderr) in zip(mistakes, results):
        assert status == 2 and stderr.startswith(f'{script}.py: error: Unknown command line flag ')
    for (script, *_), line, result in zip(contradictions, lines, results[len(mistakes) :]):
        status, stdout, stderr = result
        assert (status, stdout) == (1, '') and stderr.startswith(f'{script}.py: error: {line}')


def test_a_program_hides_what_the_import_writes(tmp_path):
    pythonpath = _stand_in(
        tmp_path, "import os; os.write(2, b'chatter'); print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    )
    source = "import os; from cifar10.system import startup; startup.import_tensorflow(); os.write(2, b'after')"
    assert _run(source, pythonpath) == (0, '3\n', 'after')
    assert _run(source, pythonpath, TF_CPP_MIN_LOG_LEVEL='1') == (0, '1\n', 'chatterafter')


def test_a_library_changes_nothing(tmp_path):
    """The import of a script parses no flags, handles no signals and keeps standard output."""
    source = (
        'import os, signal, sys\n'
        'def state(): return sys.stdout, dict(os.environ), signal.getsignal(signal.SIGINT)\n'
        'before = state()\n'
        'from cifar10.scripts import cifar10_launch\n'
        'assert state() == before and not cifar10_launch.FLAGS.is_parsed()'
    )
    assert _run(source, _stand_in(tmp_path, "raise AssertionError('imported')")) == (0, '', '')


def test_a_package_that_is_not_installed():
    """Python without site-packages."""
    done = subprocess.run(
        [sys.executable, '-S', programs.path('cifar10_run')],
        env={name: value for name, value in os.environ.items() if name != 'PYTHONPATH'},
        stderr=subprocess.PIPE,
        text=True,
        timeout=programs.DEADLINE_SECS,
    )
    assert done.returncode == 1 and re.fullmatch(
        r'cifar10_run.py: error: the package absl is not installed: .*pip install .*\n', done.stderr
    )


_PROGRAM = """
import os
import sys
sys.argv = ['program.py']
from cifar10.cli import program
from cifar10.system import signals, startup
startup.protect_stdout()
%s
sys.stdout.flush()
"""


def _print(program, stdout, **environment):
    """Runs a program; returns its exit status, its stdout if that is a pipe, and its stderr."""
    done = subprocess.run(
        [sys.executable, '-c', _PROGRAM % program],
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        env=dict(os.environ, PYTHONPATH=programs.ROOT, **environment),
        timeout=programs.DEADLINE_SECS,
    )
    return done.returncode, done.stdout, done.stderr.decode()


def test_lines_arrive_at_once():
    """A signal may end the process. Characters outside the encoding are escaped."""
    program = "print('one'); print('\\u00fc\\udcff'); os._exit(0)"
    printed = b'one\n\\xfc\\udcff\n'
    assert _print(program, subprocess.PIPE, PYTHONIOENCODING='ascii') == (0, printed, '')


_SAVING = """
with signals.StopRequest() as stop:
    print('nobody reads this')
    print('nor this')
print(stop.received_signal.name, file=sys.stderr)
"""
_TIDY = """
try:
    with signals.StopRequest(raises=True):
        print('nobody reads this')
except KeyboardInterrupt as interrupt:
    print(interrupt.args[0].name, file=sys.stderr)
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
        assert _print(program, writer) == (status, None, stderr)
    finally:
        os.close(writer)
