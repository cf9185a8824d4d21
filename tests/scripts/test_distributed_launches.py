"""cifar10_launch.py: it restarts tasks that die, up to the end of the run."""

import os
import re
import signal
import subprocess

import pytest

from tests.helpers import events, messages, programs

pytestmark = pytest.mark.slow


@pytest.mark.long
@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(
    'mode, num_ps, name',
    [
        ('sync', 1, 'worker 1'),
        ('sync', 2, 'ps 1'),
        ('average', 1, 'worker 0'),
        ('allreduce', 0, 'worker 1'),
        ('allreduce', 0, 'worker 0'),
    ],
)
def test_a_task_that_is_ended(tmp_path, data_dir, mode, num_ps, name, number):
    process = programs.start(
        'cifar10_launch',
        f'--num_ps={num_ps:d}',
        '--num_workers=2',
        '--max_restarts=1',
        '--',
        '--mode=' + mode,
        '--data_dir=' + data_dir,
        f'--train_dir={tmp_path}',
        '--batch_size=8',
        '--max_steps=150',
        '--log_frequency=10',
        '--save_summaries_steps=20',
        '--save_checkpoint_steps=10',
        '--intra_op_threads=1',
        '--inter_op_threads=1',
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.match(r'\[worker 0\] .*: step [2-9]\d,', line):
            break
    words = '--job_name={} --task_index={} '.format(*name.split())
    found = subprocess.check_output(['pgrep', '-P', str(process.pid), '-f', '--', words])
    os.kill(int(found), number)
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stdout + stderr
    (restart,) = [line for line in stderr.splitlines() if line.startswith('cifar10_launch.py: ')]
    meaning = 'it is restarted' if num_ps else 'all workers are restarted'
    # In allreduce mode, another worker may end first.
    assert re.match(
        rf'cifar10_launch.py: ({name} (was ended by SIGKILL|ended with status 143)|worker \d ended with status 75): {meaning} '
        r'\(0 restarts left\)$',
        restart,
    )
    # another worker may make it without the chief
    assert re.search(r'^\[worker \d\] .*: step 15[01],', stdout, re.M)
    assert os.path.exists(str(tmp_path / 'model.ckpt-150.index')) or mode == 'async'
    resumed = [int(step) for step in re.findall(r'^\[worker 0\] ' + messages.RESUMED, stdout, re.M)]
    assert resumed == ([] if name == 'worker 1' and num_ps else resumed[:1])
    for tag, steps in events.shown_steps(tmp_path).items():
        assert steps == sorted(set(steps)), tag
