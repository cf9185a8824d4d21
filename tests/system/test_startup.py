"""Quiet start of a script; a full, closed or ASCII standard output."""

import glob
import os
import re
import signal
import subprocess
import sys

import pytest

from tests.helpers import programs

SCRIPTS = sorted(
    os.path.basename(path)[: -len('.py')] for path in glob.glob(programs.path('cifar10_*'))
)


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


# without those that need no TensorFlow
@pytest.mark.parametrize('script', sorted(set(SCRIPTS) - {'cifar10_dataset', 'cifar10_launch'}))
def test_a_signal_during_the_imports(tmp_path, script):
    """The fake TensorFlow prints a line and waits."""
    pythonpath = _stand_in(tmp_path, "print('importing', flush=True)\nopen(0).read()\n")
    words = {
        'cifar10_results': ['--runs=a:b:c'],
        'cifar10_benchmark': ['step'],
        'cifar10_run': ['program.py'],
        'cifar10_predict': [f'--checkpoint_dir={tmp_path}', 'cat.jpg'],
        'cifar10_distributed_train': ['--worker_hosts=a:1', '--job_name=worker', '--task_index=0'],
        'cifar10_export': [f'--checkpoint_dir={tmp_path}'],
    }.get(script, [])
    process = programs.start(script, *words, PYTHONPATH=pythonpath)
    assert process.stdout.readline() == 'importing\n'
    process.send_signal(signal.SIGTERM if script == 'cifar10_eval' else signal.SIGINT)
    name, status = ('SIGTERM', 143) if script == 'cifar10_eval' else ('SIGINT', 130)
    assert process.communicate() == ('', f'{script}.py: interrupted ({name})\n')
    assert process.returncode == status


@pytest.mark.parametrize('script', SCRIPTS)
def test_mistakes_need_no_tensorflow(tmp_path, script):
    """The import takes seconds."""
    pythonpath = _stand_in(tmp_path, "raise AssertionError('imported')")
    status, _, stderr = programs.run(script, '--no_such_flag', PYTHONPATH=pythonpath)
    assert status == 2 and 'error: ' in stderr and 'Traceback' not in stderr


@pytest.mark.parametrize(
    'script, words, line',
    [
        ('cifar10_train', ['--deterministic'], '--deterministic needs a seed: add --seed=1'),
        (
            'cifar10_multi_gpu_train',
            ['--deterministic', '--seed=1', '--num_preprocess_threads=2'],
            '--num_preprocess_threads=2 makes the order of sums or examples random: ',
        ),
        (
            'cifar10_distributed_train',
            ['--worker_hosts=a:1', '--task_index=0'],
            '--job_name is missing: ',
        ),
    ],
)
def test_flags_that_do_not_fit_together_need_no_tensorflow(tmp_path, script, words, line):
    pythonpath = _stand_in(tmp_path, "raise AssertionError('imported')")
    status, stdout, stderr = programs.run(script, *words, PYTHONPATH=pythonpath)
    assert (status, stdout) == (1, '') and stderr.startswith(f'{script}.py: error: {line}')


def test_a_program_hides_what_the_import_writes(tmp_path):
    pythonpath = _stand_in(
        tmp_path, "import os; os.write(2, b'chatter'); print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    )
    source = "import os; from cifar10.system import startup; startup.import_tensorflow(); os.write(2, b'after')"
    assert _run(source, pythonpath) == (0, '3\n', 'after')
    assert _run(source, pythonpath, TF_CPP_MIN_LOG_LEVEL='2') == (0, '2\n', 'after')
    assert _run(source, pythonpath, TF_CPP_MIN_LOG_LEVEL='1') == (0, '1\n', 'chatterafter')


def test_no_file_takes_the_place_of_one_that_is_closed(tmp_path):
    """The file would receive the messages of stderr."""
    pythonpath, found = _stand_in(tmp_path, ''), tmp_path / 'found'
    source = (
        "import os; [os.close(number) for number in range(3)]; from cifar10.system import startup; startup.start('__main__')\n"
        'same = [os.path.samestat(os.fstat(number), os.stat(os.devnull)) for number in range(3)]\n'
        f"open({str(found)!r}, 'w').write(str(same))"
    )
    assert _run(source, pythonpath)[0] == 0 and found.read_text() == '[True, True, True]'


def test_a_failed_import_shows_what_it_wrote(tmp_path):
    pythonpath = _stand_in(
        tmp_path, "import os; os.write(2, b'chatter\\n'); raise ImportError('broken')"
    )
    status, stdout, stderr = _run(
        'from cifar10.system import startup; startup.import_tensorflow()', pythonpath
    )
    assert (
        (status, stdout) == (1, '')
        and stderr.startswith('chatter\n')
        and stderr.endswith('ImportError: broken\n')
    )


def test_a_closed_stderr(tmp_path):
    pythonpath = _stand_in(tmp_path, "print('imported')")
    source = "import os; os.close(2); from cifar10.system import startup; startup.start('__main__'); startup.import_tensorflow()"
    assert _run(source, pythonpath) == (0, 'imported\n', '')


def test_a_library_changes_nothing(tmp_path):
    """Neither startup.start nor the import of a script changes the process."""
    pythonpath = _stand_in(tmp_path, "raise AssertionError('imported')")
    source = (
        'import os, signal; from cifar10.system import startup; state = dict(os.environ), signal.getsignal(signal.SIGINT); '
        "startup.start('scripts.cifar10_train'); assert state == (dict(os.environ), signal.getsignal(signal.SIGINT))"
    )
    assert _run(source, pythonpath) == (0, '', '')


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
signals.install_handlers()
startup.protect_stdout()
%s
sys.stdout.flush()
sys.exit(3 if startup.has_lost_output() else 0)
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
    for encoding, text in [('ascii', '\\xfc\\udcff'), ('utf-8', '\u00fc\\udcff')]:
        printed = (f'one\n{text}\n').encode()
        assert _print(program, subprocess.PIPE, PYTHONIOENCODING=encoding) == (0, printed, '')


def test_device_placement_arrives():
    """TensorFlow prints it by C's printf; a script ends without Python's finalization."""
    program = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
print('first')
tf.Session(config=tf.ConfigProto(log_device_placement=True)).run(tf.constant(1.0, name='last'))
program._end(0)"""
    status, stdout, _ = _print(
        program, subprocess.PIPE, PYTHONUNBUFFERED='', TF_CPP_MIN_LOG_LEVEL='3'
    )
    assert status == 0 and b'first\n' in stdout
    assert stdout.endswith(b'\nlast: (Const): /job:localhost/replica:0/task:0/device:CPU:0\n')


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='this system has no full device')
def test_a_full_disk_is_told_once():
    with open('/dev/full', 'w') as full:
        status, _, stderr = _print(
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
print(stop.received_signal.name, file=sys.stderr)
"""
_TIDY = """
try:
    with signals.RaiseOnSignal():
        print('nobody reads this')
except signals.SignalInterrupt as interrupt:
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
        assert _print(program, writer) == (status, None, stderr)
    finally:
        os.close(writer)


def test_no_standard_output_at_all():
    program = "sys.stdout = None; startup.protect_stdout(); print('x'); print(startup.has_lost_output(), file=sys.stderr)"
    assert _print(program, subprocess.DEVNULL) == (0, None, 'False\n')
