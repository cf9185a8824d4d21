"""Tasks that die or stop during the training of a cluster."""

import os
import re
import signal
import subprocess

import pytest

from cifar10.runs import checkpoint
from tests.helpers import clusters, events, messages, programs

pytestmark = pytest.mark.slow
LONG = pytest.mark.long
EX_TEMPFAIL = 75
SCRIPT = 'cifar10_distributed_train.py: '
FLAGS = [
    '--eval_every=0',
    '--log_frequency=1',
    '--save_summaries_steps=5',
    '--save_checkpoint_steps=5',
]


@pytest.fixture
def make_cluster(tmp_path, data_dir):
    """Return clusters.factory."""
    return clusters.factory(tmp_path, data_dir, FLAGS, gate=7)


def _steps(cluster, name):
    return [int(step) for step in messages.log_steps(cluster.text(name))]


def _wait_for_step(cluster, name, step):
    while int(cluster.wait_for(name, r': step (\d+), loss').group(1)) < step:
        pass


def _saved(tmp_path):
    return checkpoint.newest_step(str(tmp_path / 'run'))


@pytest.mark.parametrize(
    'mode, num_ps, name',
    [('sync', 1, 'worker 0'), ('async', 1, 'worker 1')]
    + [
        pytest.param(*case, marks=LONG)
        for case in [
            ('sync', 2, 'ps 1'),
            ('sync', 1, 'worker 1'),
            ('async', 1, 'ps 0'),
            ('async', 1, 'worker 0'),
            ('average', 2, 'ps 0'),
            ('average', 1, 'worker 0'),
            ('average', 1, 'worker 1'),
            ('allreduce', 0, 'worker 0'),
            ('allreduce', 0, 'worker 1'),
        ]
    ],
)
def test_a_launch_with_a_killed_task(tmp_path, data_dir, mode, num_ps, name):
    """The launcher starts it again, alone in the mode async, and the run arrives at its end."""
    process = programs.start(
        'cifar10_launch',
        f'--num_ps={num_ps}',
        '--num_workers=2',
        '--max_restarts=1',
        '--',
        '--mode=' + mode,
        '--data_dir=' + data_dir,
        f'--train_dir={tmp_path}',
        '--max_steps=120',
        *FLAGS,
        *clusters.FLAGS,
    )
    line = process.stdout.readline()
    while not re.match(r'\[worker 0\] .*: step [2-9]\d,', line):
        line = process.stdout.readline()
        assert line, process.stderr.read()
    words = '--job_name={} --task_index={}$'.format(*name.split())
    found = subprocess.check_output(['pgrep', '-P', str(process.pid), '-f', '--', words])
    os.kill(int(found), signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=clusters.DEADLINE_SECS)
    assert process.returncode == 0, stdout + stderr
    (restart,) = [line for line in stderr.splitlines() if line.startswith('cifar10_launch.py: ')]
    again = 'it is' if mode == 'async' else 'all tasks are'
    assert restart == (
        f'cifar10_launch.py: {name} was ended by SIGKILL: {again} started again (0 restarts left)'
    )
    assert checkpoint.newest_step(str(tmp_path)) in ([120] if mode != 'async' else range(120, 124))
    resumed = re.findall(r'^\[worker 0\] ' + messages.RESUMED, stdout, re.M)
    is_joined = mode == 'async' and name != 'ps 0'  # The servers have newer variables.
    assert len(resumed) == (0 if is_joined else 1)
    for tag, steps in events.shown_steps(tmp_path).items():
        assert steps == sorted(set(steps)), tag


def test_async_without_a_launcher(tmp_path, make_cluster):
    """The others continue without a worker, also without the chief, whose restart loses no step.

    After a restart of the server, MonitoredSession continues from the last checkpoint.
    """
    cluster = make_cluster(1, 2, '--mode=async', '--max_steps=40')
    cluster.start()
    cluster.wait_until_blocked(7)
    for name, other, gate in [('worker 1', 'worker 0', 12), ('worker 0', 'worker 1', 17)]:
        cluster.kill(name)
        cluster.allow(gate)
        cluster.wait_until_blocked(gate, other)
        cluster.start(name)
        cluster.wait_until_blocked(gate, name)
    assert 'Resuming' not in cluster.text('worker 0')
    cluster.allow(27)
    cluster.wait_until_blocked(27)
    # no step is repeated
    assert all(step > 17 for step in _steps(cluster, 'worker 0'))
    cluster.kill('ps 0')
    cluster.allow()
    cluster.start('ps 0')
    cluster.succeed()
    assert 40 <= _saved(tmp_path) <= 43


@pytest.mark.parametrize('number', [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=LONG)])
def test_an_all_reduce(tmp_path, make_cluster, number):
    """After a loss, all tasks end; a start with another number of workers resumes the run."""
    cluster = make_cluster(0, 2, '--max_steps=20', '--stall_timeout_secs=6')
    cluster.start()
    cluster.wait_until_blocked(7)
    cluster.tasks['worker 1'].signal(number)
    cluster.allow()
    assert cluster.tasks['worker 0'].end() == EX_TEMPFAIL
    assert len(cluster.tasks['worker 0'].stderr_lines) == 1
    cluster.kill('worker 1')
    again = make_cluster(0, 3, '--max_steps=10')
    again.allow()
    again.start()
    assert again.resumed_step() == 5
    again.succeed()
    assert _steps(again, 'worker 0') == list(range(6, 11))
    assert _saved(tmp_path) == 10


def test_a_deterministic_all_reduce(tmp_path, data_dir):
    """It is equal to itself, bit for bit, also after a kill."""
    flags = FLAGS + ['--deterministic', '--seed=1', '--max_steps=16', '--stall_timeout_secs=6']
    ends = []
    for name in ('one', 'two'):
        (tmp_path / name).mkdir()
        gate = 7 if name == 'two' else 10**9
        cluster = clusters.factory(tmp_path / name, data_dir, flags, gate=gate)(0, 2)
        cluster.start()
        if name == 'two':
            cluster.wait_until_blocked(7)
            cluster.kill('worker 1')
            cluster.allow()
            cluster.end_all()
            cluster.start()
            assert cluster.resumed_step() == 5
        cluster.succeed()
        last = checkpoint.read_latest(str(tmp_path / name / 'run'))
        assert last.step == 16
        ends.append({name: value.tobytes() for name, value in last.values.items()})
    assert ends[0] == ends[1]


@LONG
@pytest.mark.parametrize('fallen', ['ps 0', 'worker 0', 'worker 1'])
def test_a_task_that_stops(make_cluster, fallen):
    """A task may stop for less than the limit. After the limit, those that need it end."""
    cluster = make_cluster(1, 2, '--mode=sync', '--max_steps=100000', '--stall_timeout_secs=6')
    cluster.start()
    cluster.wait_until_blocked(7)
    cluster.tasks[fallen].signal(signal.SIGSTOP)
    cluster.allow()
    cluster.tasks[fallen].signal(signal.SIGCONT)
    for worker in ('worker 0', 'worker 1'):
        _wait_for_step(cluster, worker, 12)
    cluster.tasks[fallen].signal(signal.SIGSTOP)
    for name in ('worker 0', 'worker 1'):
        if name != fallen:
            assert cluster.tasks[name].end() == EX_TEMPFAIL
            (line,) = cluster.tasks[name].stderr_lines
            assert line.startswith(f'{SCRIPT}no step for 6 seconds')


@pytest.mark.parametrize('mode', ['async', pytest.param('sync', marks=LONG)])
def test_a_chief_that_is_asked_to_end(tmp_path, make_cluster, mode):
    """The chief saves and exits with 128 + n. A worker at the last step waits for its return."""
    cluster = make_cluster(1, 2, '--mode=' + mode, '--max_steps=20')
    cluster.start('ps 0', 'worker 0')
    if mode == 'async':  # Before its own first step, a chief has nothing to save.
        cluster.wait_for('worker 0', ': step 0, loss')
    cluster.start('worker 1')
    cluster.wait_until_blocked(7)
    chief = cluster.tasks['worker 0']
    chief.signal(signal.SIGTERM)
    cluster.allow(15)
    cluster.wait_for('worker 0', '^SIGTERM: stopping$')
    assert chief.end() == 128 + signal.SIGTERM and chief.stderr_lines == []
    stopped_at = _saved(tmp_path)
    assert 8 <= stopped_at <= 17
    cluster.allow()
    cluster.start('worker 0')
    cluster.succeed()
    assert 20 <= _saved(tmp_path) <= 23
