"""Tasks that die or stop during the training of a cluster."""

import re
import signal

import pytest

from cifar10.runs import checkpoint
from tests.helpers import clusters, events, messages

pytestmark = pytest.mark.slow
LONG = pytest.mark.long
EX_TEMPFAIL = 75
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


def _steps(lines):
    return [int(step) for step in re.findall(r': step (\d+), loss', '\n'.join(lines))]


def _assert_whole(directory, last_step, every=None):
    """Assert that the last step is saved and no curve goes back.

    With `every`, assert that each curve is complete.
    """
    newest = checkpoint.latest_checkpoint(str(directory))
    # another worker may have been in a step
    assert last_step <= int(newest.rsplit('-', 1)[1]) <= last_step + 1
    for tag, steps in events.shown_steps(directory).items():
        assert steps == sorted(set(steps)), tag
        if every:
            assert (steps[0], steps[-1]) == (1, last_step), tag
            assert all(after - before <= every for before, after in zip(steps, steps[1:])), tag


def test_sync(tmp_path, make_cluster):
    """All tasks wait for the dead one, then continue.

    After the death of a worker they continue with the next step, else from the last checkpoint.
    """
    cluster = make_cluster(1, 2, '--mode=sync', '--max_steps=20')
    cluster.start()
    cluster.wait_until_blocked(7)
    cluster.kill('worker 1')
    cluster.allow(12)
    cluster.start('worker 1')
    assert cluster.joined_step('worker 1') == 7
    cluster.wait_until_blocked(12)
    before = cluster.tasks['worker 0']
    assert _steps(before.stdout_lines) == list(range(13))
    before.kill()
    cluster.allow(17)
    cluster.start('worker 0')
    assert cluster.resumed_step() == 10
    cluster.wait_for('worker 1', '^The chief has restarted the run: joining it$')
    assert cluster.joined_step('worker 1') == 10
    cluster.wait_until_blocked(17)
    cluster.kill('ps 0')
    cluster.allow()
    cluster.start('ps 0')
    for worker in ('worker 0', 'worker 1'):
        cluster.wait_for(worker, r'^Lost (the connection to )?ps 0 \(.*\): joining again$')
    assert cluster.resumed_step() == 15
    cluster.succeed()
    assert _steps(cluster.tasks['worker 0'].stdout_lines) == list(range(11, 18)) + list(
        range(16, 21)
    )
    _assert_whole(tmp_path / 'run', 20, every=5)


@pytest.mark.parametrize('mode, num_ps', [('async', 1), pytest.param('average', 2, marks=LONG)])
def test_async_and_average(tmp_path, make_cluster, mode, num_ps):
    """The others continue without a worker, also without the chief.

    After a restart of a server, all continue from the last checkpoint.
    """
    cluster = make_cluster(
        num_ps, 2, '--mode=' + mode, '--max_steps=40', *['--average_period=2'] * (mode == 'average')
    )
    cluster.start()
    cluster.wait_until_blocked(7)
    for name, other, gate in [('worker 1', 'worker 0', 12), ('worker 0', 'worker 1', 17)]:
        cluster.kill(name)
        cluster.allow(gate)
        cluster.wait_until_blocked(gate, other)
        cluster.start(name)
        assert cluster.joined_step(name) >= gate
        cluster.wait_until_blocked(gate, name)
    cluster.allow(27)
    cluster.wait_until_blocked(27)
    # no step is repeated
    assert all(step > 17 for step in _steps(cluster.tasks['worker 0'].stdout_lines))
    last = f'ps {num_ps - 1}'
    cluster.kill(last)
    cluster.allow()
    cluster.start(last)
    assert 20 <= cluster.resumed_step() <= 28
    cluster.succeed()
    _assert_whole(tmp_path / 'run', 40)


@pytest.mark.parametrize(
    'fallen, number, survivors',
    [
        ('worker 1', signal.SIGKILL, 2),
        pytest.param('worker 0', signal.SIGKILL, 3, marks=LONG),
        pytest.param('worker 1', signal.SIGSTOP, 1, marks=LONG),
    ],
)
def test_allreduce(tmp_path, make_cluster, fallen, number, survivors):
    """All tasks end, and continue from the last checkpoint, also with more or fewer workers.

    A start after the run's end ends at once, also on workers without the chief's directory.
    """
    cluster = make_cluster(0, 2, '--max_steps=20', '--stall_timeout_secs=6')
    cluster.start()
    cluster.wait_until_blocked(7, *cluster.names)
    (other,) = set(cluster.names) - {fallen}
    cluster.tasks[fallen].signal(number)
    cluster.allow()
    assert cluster.tasks[other].end() == EX_TEMPFAIL
    (complaint,) = cluster.tasks[other].stderr_lines
    if number == signal.SIGKILL:
        # TensorFlow 1.15 may not notice a lost peer; then the watchdog does.
        assert re.match(
            rf'cifar10_distributed_train.py: (Lost {fallen} \({cluster.addresses[fallen]}: Connection refused\): restart the '
            rf'job; it resumes from its last checkpoint$|Training: waited 6 seconds .* for {fallen} )',
            complaint,
        )
    else:
        _assert_stalled(cluster, other, fallen)
    cluster.kill(fallen)
    again = make_cluster(0, survivors, '--max_steps=10')
    again.allow()
    again.start()
    assert again.resumed_step() == 5
    again.succeed()
    assert _steps(again.tasks['worker 0'].stdout_lines) == list(range(6, 11))
    _assert_whole(tmp_path / 'run', 10, every=5)
    for name in again.names[1:]:
        again.start(name, flags=[f'--train_dir={tmp_path / "other"}'])
    again.start('worker 0')
    again.succeed()
    for name in again.names[1:]:
        assert again.tasks[name].stdout_lines[-1] == messages.RUN_HAS_ENDED


def _assert_stalled(cluster, name, stopped):
    """Assert that a task ended because another one stopped, and names it."""
    assert cluster.tasks[name].end() == EX_TEMPFAIL
    assert cluster.tasks[name].stderr_lines == [
        f'cifar10_distributed_train.py: Training: waited 6 seconds (stall_timeout_secs) for {stopped} '
        f'({cluster.addresses[stopped]}: it does not answer): restart this task when the others are running'
    ]


@LONG
@pytest.mark.parametrize('mode', ['sync', 'async', 'average'])
@pytest.mark.parametrize('fallen', ['ps 0', 'worker 0', 'worker 1'])
def test_a_task_that_stops(tmp_path, make_cluster, mode, fallen):
    """A task may stop for less than the limit.

    After the limit, tasks that depend on it end with one line.
    """
    flags = ['--mode=' + mode, '--stall_timeout_secs=6'] + ['--average_period=2'] * (
        mode == 'average'
    )
    cluster = make_cluster(1, 2, '--max_steps=100000', *flags)
    cluster.start()
    cluster.wait_until_blocked(7)
    cluster.tasks[fallen].signal(signal.SIGSTOP)
    cluster.allow()
    cluster.tasks[fallen].signal(signal.SIGCONT)
    for worker in ('worker 0', 'worker 1'):
        while _steps([cluster.wait_for(worker, ': step .*, loss').string])[0] < 12:
            pass
    cluster.tasks[fallen].signal(signal.SIGSTOP)
    others = [name for name in cluster.names if name != fallen]
    if mode == 'sync' or fallen.startswith('ps'):
        for name in others:
            _assert_stalled(cluster, name, fallen)
    else:  # the other worker continues
        reached = (
            max(
                _steps(
                    cluster.tasks['worker 0'].stdout_lines + cluster.tasks['worker 1'].stdout_lines
                )
            )
            + 100
        )
        (other_worker,) = [name for name in others if name.startswith('worker')]
        while _steps([cluster.wait_for(other_worker, ': step .*, loss').string])[0] < reached:
            pass
