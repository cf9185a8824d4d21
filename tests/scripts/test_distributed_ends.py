"""End of a cluster run: a stopped chief, late workers, workers after the end."""

import shutil
import signal

import pytest

from cifar10.runs import checkpoint
from tests.helpers import clusters, messages

pytestmark = pytest.mark.slow
LONG = pytest.mark.long
SCRIPT = 'cifar10_distributed_train.py: '


@pytest.fixture
def make_cluster(tmp_path, data_dir):
    """Return clusters.factory."""
    return clusters.factory(tmp_path, data_dir, ['--eval_every=0', '--log_frequency=1'])


def _saved(tmp_path):
    return int(checkpoint.latest_checkpoint(str(tmp_path / 'run')).rsplit('-', 1)[1])


@LONG
@pytest.mark.parametrize('mode', ['async', 'sync', 'average'])
def test_a_chief_that_is_asked_to_end(tmp_path, make_cluster, mode):
    """The chief saves and exits with 128 + n. Workers at the last step wait for its return."""
    cluster = make_cluster(
        1,
        2,
        '--mode=' + mode,
        '--max_steps=20',
        *['--average_period=2'] * (mode == 'average'),
        gate=7,
    )
    cluster.start()
    cluster.wait_until_blocked(7)
    chief = cluster.tasks['worker 0']
    chief.signal(signal.SIGTERM)
    cluster.allow(15)
    cluster.wait_for('worker 0', '^SIGTERM: stopping$')
    assert chief.end() == 128 + signal.SIGTERM and chief.stderr_lines == [
        SCRIPT + 'interrupted (SIGTERM)'
    ]
    stopped_at = _saved(tmp_path)
    assert 8 <= stopped_at <= 16
    cluster.allow()
    if mode != 'sync':
        cluster.wait_for('worker 1', ': step 2[01], loss')
    cluster.start('worker 0')
    cluster.succeed()
    assert 20 <= _saved(tmp_path) <= 21
    assert _saved(tmp_path) - stopped_at >= 4


def test_a_job_that_is_started_again_after_its_end(tmp_path, runs, make_cluster):
    """A complete run ends all tasks.

    It also ends a worker that does not see the chief's directory, and a worker without a chief. At
    last the chief is on another machine.
    """
    shutil.copytree(str(runs / 'fast'), str(tmp_path / 'run'))
    cluster = make_cluster(1, 2, '--mode=sync', '--recipe=fast', '--max_steps=3')
    cluster.start('worker 1', flags=[f'--train_dir={tmp_path / "other"}'])
    cluster.wait_for('worker 1', 'listens')
    cluster.start('ps 0', 'worker 0')
    cluster.succeed()
    assert cluster.tasks['worker 1'].stdout_lines[-1] == messages.RUN_HAS_ENDED
    assert messages.nothing_to_do(3).rstrip() in cluster.text('worker 0')
    assert cluster.tasks['ps 0'].stdout_lines[-1] == 'The run has finished at step 3'
    cluster.start('ps 0', 'worker 1')
    assert cluster.tasks['worker 1'].end() == 0
    assert cluster.tasks['worker 1'].stdout_lines[-1] == messages.RUN_HAS_ENDED
    cluster.kill('ps 0')
    hosts = f'--worker_hosts=192.0.2.1:2222,{cluster.addresses["worker 1"]}'
    cluster.start('worker 1', flags=[hosts, '--connect_timeout_secs=4'])
    assert cluster.tasks['worker 1'].end() == 0
    assert cluster.tasks['worker 1'].stdout_lines[-1] == messages.RUN_HAS_ENDED
