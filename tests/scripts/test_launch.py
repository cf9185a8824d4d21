"""Flags of the launcher."""

import shutil
import subprocess
import sys

import pytest

from cifar10.distributed import launcher
from cifar10.distributed.cluster import Cluster, Task
from tests.helpers import programs

TRAINER = 'cifar10_distributed_train.py'


@pytest.fixture
def launched(monkeypatch):
    """Arguments of the launchers; each ends with status 75."""
    found = []

    class _Launcher:
        def __init__(self, *args):
            found.append(args)

        def run(self):
            return 75

    monkeypatch.setattr(launcher, 'Launcher', _Launcher)
    return found


@pytest.mark.parametrize(
    'words, flags, numbers',
    [
        ([], [], (1, 2, 3, 1)),
        (
            [
                '--num_ps=64',
                '--num_workers',
                '64',
                '--max_restarts=0',
                '--',
                '--num_ps=1',
                '--help',
                '--num_gpus=4',
            ],
            ['--num_ps=1', '--help', '--num_gpus=4'],
            (64, 64, 0, 4),
        ),
    ],
)
def test_what_is_launched(launched, words, flags, numbers):
    assert programs.call('cifar10_launch', *words) == (75, '', '')
    ((command_of, *found),) = launched
    assert [*found, command_of.num_gpus] == list(numbers)
    trainer = programs.path('cifar10_launch').replace('cifar10_launch.py', TRAINER)
    assert command_of(Cluster((), ('a:1',)), Task('worker', 0), False) == [
        sys.executable,
        trainer,
        '--worker_hosts=a:1',
        '--job_name=worker',
        '--task_index=0',
        *flags,
    ]


@pytest.mark.parametrize('flag', ['--task_index=1', '-worker_hosts', '--ps_hosts=a:1'])
def test_flags_of_each_task(flag):
    assert programs.call('cifar10_launch', '--', '--max_steps=1', flag) == (
        1,
        '',
        f'cifar10_launch.py: error: {flag} is set by the launcher, for each task: leave it out\n',
    )


def test_a_number_out_of_bounds(launched):
    status, _, stderr = programs.call('cifar10_launch', '--num_workers=0')
    assert (status, launched) == (2, []) and ' --num_workers=0: ' in stderr


def test_the_tasks_need_not_wait_for_an_import():
    """The launcher itself does not import TensorFlow."""
    source = "import runpy, sys; sys.modules['tensorflow'] = None; del sys.argv[0]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    process = subprocess.run(
        [sys.executable, '-c', source, programs.path('cifar10_launch'), '--', '--job_name=ps'],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (process.returncode, process.stderr) == (
        1,
        'cifar10_launch.py: error: --job_name=ps is set by the launcher, for each task: leave it out\n',
    )


@pytest.mark.slow
def test_a_launch(tmp_path):
    """A real launch, with another trainer script."""
    script = shutil.copy(programs.path('cifar10_launch'), str(tmp_path))
    (tmp_path / TRAINER).write_text('import sys; print(*sys.argv[2:]); sys.exit(4)')
    status, stdout, stderr = programs.run(
        'cifar10_launch',
        '--num_ps=0',
        '--num_workers=1',
        '--',
        '--max_steps=5',
        wrapper=['sh', '-c', 'python=$1; shift 2; exec "$python" "$0" "$@"', script],
    )
    assert (status, stdout) == (4, '[worker 0] --job_name=worker --task_index=0 --max_steps=5\n')
    assert stderr == 'cifar10_launch.py: worker 0 ended with status 4: it is not started again\n'
