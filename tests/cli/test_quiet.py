"""A script starts quietly; the package itself changes nothing."""

import os
import signal
import subprocess
import sys

import pytest

from tests.helpers import programs

SCRIPTS = [
    'cifar10_benchmark',
    'cifar10_classic',
    'cifar10_dataset',
    'cifar10_distributed_train',
    'cifar10_eval',
    'cifar10_export',
    'cifar10_launch',
    'cifar10_multi_gpu_train',
    'cifar10_predict',
    'cifar10_results',
    'cifar10_run',
    'cifar10_train',
]


def _stand_in(directory, source):
    """A module that takes the place of TensorFlow; returns the PYTHONPATH that finds it."""
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
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )
    return process.returncode, process.stdout, process.stderr


def test_every_script_is_tested():
    found = [
        name for name in os.listdir(os.path.join(programs.ROOT, 'scripts')) if name.endswith('.py')
    ]
    assert sorted(found) == [script + '.py' for script in SCRIPTS]


# which need none
@pytest.mark.parametrize('script', sorted(set(SCRIPTS) - {'cifar10_dataset', 'cifar10_launch'}))
def test_a_signal_during_the_imports(tmp_path, script):
    """The stand-in says that its import has begun, and waits."""
    pythonpath = _stand_in(tmp_path, "print('importing', flush=True)\nopen(0).read()\n")
    words = {
        'cifar10_results': ['--runs=a:b:c'],
        'cifar10_benchmark': ['step'],
        'cifar10_run': ['program.py'],
        'cifar10_predict': ['--checkpoint_dir=%s' % tmp_path, 'cat.jpg'],
        'cifar10_distributed_train': ['--worker_hosts=a:1', '--job_name=worker', '--task_index=0'],
        'cifar10_export': ['--checkpoint_dir=%s' % tmp_path],
    }.get(script, [])
    process = programs.start(script, *words, PYTHONPATH=pythonpath)
    assert process.stdout.readline() == 'importing\n'
    process.send_signal(signal.SIGTERM if script == 'cifar10_eval' else signal.SIGINT)
    name, status = ('SIGTERM', 143) if script == 'cifar10_eval' else ('SIGINT', 130)
    assert process.communicate() == ('', '%s.py: interrupted (%s)\n' % (script, name))
    assert process.returncode == status


@pytest.mark.parametrize('script', SCRIPTS)
def test_help_and_mistakes_need_no_tensorflow(tmp_path, script):
    """Its import would take seconds."""
    pythonpath = _stand_in(tmp_path, "raise AssertionError('imported')")
    status, stdout, stderr = programs.run(script, '--help', PYTHONPATH=pythonpath)
    assert (status, stderr) == (0, '') and script in stdout
    status, _, stderr = programs.run(script, '--no_such_flag', PYTHONPATH=pythonpath)
    assert status == 2 and 'error: ' in stderr and 'Traceback' not in stderr


@pytest.mark.parametrize(
    'words, line',
    [
        (['--deterministic'], '--deterministic needs a seed: give --seed=1, say'),
        (
            ['--deterministic', '--seed=1', '--input_threads=2'],
            '--input_threads=2 leaves the order of sums, or of images, to chance: '
            'leave it out with --deterministic',
        ),
        (
            ['--recipe=fast', '--num_epochs_per_decay=3'],
            '--num_epochs_per_decay has no effect with --schedule=linear: leave it out, or '
            'give --schedule=staircase',
        ),
    ],
)
def test_flags_that_do_not_fit_together_need_no_tensorflow(tmp_path, words, line):
    pythonpath = _stand_in(tmp_path, "raise AssertionError('imported')")
    for script in ('cifar10_train', 'cifar10_multi_gpu_train', 'cifar10_distributed_train'):
        assert programs.run(script, *words, PYTHONPATH=pythonpath) == (
            1,
            '',
            '%s.py: error: %s\n' % (script, line),
        )


@pytest.mark.parametrize(
    'words, line',
    [
        (['--task_index=0'], '--job_name is missing: '),
        (['--job_name=ps', '--task_index=0'], 'There is no ps 0: --ps_hosts is empty'),
        (['--job_name=worker', '--task_index=0', '--worker_hosts=b'], "'b' is not an address: "),
        (
            ['--job_name=worker', '--task_index=0', '--mode=sync'],
            '--mode=sync needs a parameter server: ',
        ),
    ],
)
def test_mistakes_in_the_flags_of_a_cluster_need_no_tensorflow(tmp_path, words, line):
    pythonpath = _stand_in(tmp_path, "raise AssertionError('imported')")
    status, stdout, stderr = programs.run(
        'cifar10_distributed_train', '--worker_hosts=a:1', *words, PYTHONPATH=pythonpath
    )
    assert (status, stdout) == (1, '') and stderr.startswith(
        'cifar10_distributed_train.py: error: ' + line
    )


def test_a_program_hides_what_the_import_writes(tmp_path):
    pythonpath = _stand_in(
        tmp_path, "import os; os.write(2, b'chatter'); print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    )
    source = (
        "import os; from cifar10.cli import quiet; quiet.import_tensorflow(); os.write(2, b'after')"
    )
    assert _run(source, pythonpath) == (0, '3\n', 'after')
    assert _run(source, pythonpath, TF_CPP_MIN_LOG_LEVEL='2') == (0, '2\n', 'after')


def test_no_file_takes_the_place_of_one_that_is_closed(tmp_path):
    """What is written to stderr would go there."""
    pythonpath, found = _stand_in(tmp_path, ''), tmp_path / 'found'
    source = (
        "import os; [os.close(number) for number in range(3)]; from cifar10.cli import quiet; quiet.start('__main__')\n"
        'same = [os.path.samestat(os.fstat(number), os.stat(os.devnull)) for number in range(3)]\n'
        "open(%r, 'w').write(str(same))" % str(found)
    )
    assert _run(source, pythonpath)[0] == 0 and found.read_text() == '[True, True, True]'


@pytest.mark.parametrize('level', ['0', '1'])
def test_the_messages_can_be_seen(tmp_path, level):
    pythonpath = _stand_in(tmp_path, "import os; os.write(2, b'chatter')")
    source = 'from cifar10.cli import quiet; quiet.import_tensorflow()'
    assert _run(source, pythonpath, TF_CPP_MIN_LOG_LEVEL=level) == (0, '', 'chatter')


def test_a_failed_import_shows_what_it_wrote(tmp_path):
    pythonpath = _stand_in(
        tmp_path, "import os; os.write(2, b'chatter\\n'); raise ImportError('broken')"
    )
    status, stdout, stderr = _run(
        'from cifar10.cli import quiet; quiet.import_tensorflow()', pythonpath
    )
    assert (
        (status, stdout) == (1, '')
        and stderr.startswith('chatter\n')
        and stderr.endswith('ImportError: broken\n')
    )


def test_a_closed_stderr(tmp_path):
    pythonpath = _stand_in(tmp_path, "print('imported')")
    source = "import os; os.close(2); from cifar10.cli import quiet; quiet.start('__main__'); quiet.import_tensorflow()"
    assert _run(source, pythonpath) == (0, 'imported\n', '')


def test_a_library_changes_nothing(tmp_path):
    """Neither by quiet.start nor by the import of a script, once the modules that it needs are
    loaded."""
    pythonpath = _stand_in(tmp_path, "raise AssertionError('imported')")
    source = (
        'import os, signal; from cifar10.cli import quiet; state = dict(os.environ), signal.getsignal(signal.SIGINT); '
        "quiet.start('scripts.cifar10_train'); assert state == (dict(os.environ), signal.getsignal(signal.SIGINT))"
    )
    assert _run(source, pythonpath) == (0, '', '')


@pytest.mark.parametrize('script', ['cifar10_multi_gpu_train', 'cifar10_run', 'cifar10_launch'])
def test_a_package_that_is_not_installed(script):
    """Python without the packages of the environment."""
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    done = subprocess.run(
        [sys.executable, '-S', programs.path(script), '--num_gpus=4'],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=programs.DEADLINE_SECS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        '',
        '%s.py: error: the package absl is not installed: activate the environment (. venv/bin/activate), or run pip install '
        '-r requirements.txt in the checkout\n' % script,
    )
