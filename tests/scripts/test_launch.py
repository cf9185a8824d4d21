"""cifar10_launch.py, with another program in the place of the trainer."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers import faults, programs

# The tasks need not wait for an import of TensorFlow by the launcher.
_WITHOUT_TENSORFLOW = """
import runpy, sys
sys.modules['tensorflow'] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name='__main__')
"""


@pytest.fixture
def launch(tmp_path):
    """launch(trainer, *words): exit status, stdout and stderr of a launch of this source."""
    script = shutil.copy(programs.path('cifar10_launch'), str(tmp_path))

    def launch(trainer, *words):
        (tmp_path / 'cifar10_distributed_train.py').write_text('import sys\n' + trainer)
        done = subprocess.run(
            [sys.executable, '-c', _WITHOUT_TENSORFLOW, script, *words],
            env=dict(os.environ, PYTHONPATH=programs.ROOT),
            capture_output=True,
            text=True,
            timeout=programs.DEADLINE_SECS,
        )
        return done.returncode, done.stdout, done.stderr

    return launch


def test_the_default_cluster(launch):
    status, stdout, stderr = launch('print(*sys.argv[-2:])')
    assert (status, stderr) == (0, '')
    assert sorted(stdout.splitlines()) == [
        '[ps 0] --job_name=ps --task_index=0',
        '[worker 0] --job_name=worker --task_index=0',
        '[worker 1] --job_name=worker --task_index=1',
    ]


def test_flags_of_the_launcher_and_of_the_trainer(launch):
    own = ['--num_ps=0', '--num_workers', '1', '--max_restarts=0']
    trainer = ['--num_ps=1', '--help']
    status, stdout, stderr = launch(
        'del sys.argv[-3]; print(*sys.argv[1:]); sys.exit(75)', *own, '--', *trainer
    )
    assert (status, stdout) == (
        75,
        '[worker 0] --num_ps=1 --help --job_name=worker --task_index=0\n',
    )
    assert stderr == 'cifar10_launch.py: worker 0 ended with status 75: no restarts are left\n'


@pytest.mark.slow
def test_behind_a_proxy_that_nobody_listens_to(tmp_path, data_dir):
    names = 'http_proxy', 'https_proxy', 'grpc_proxy'
    environment = dict.fromkeys(names, 'http://127.0.0.1:9')
    words = ['--num_ps=1', '--', *faults.job(data_dir, tmp_path / 'run', '--max_steps=2')]
    status, stdout, stderr = programs.run('cifar10_launch', *words, **environment)
    assert (status, stderr) == (0, '') and f'Saved {tmp_path}/run/model.ckpt-2\n' in stdout
