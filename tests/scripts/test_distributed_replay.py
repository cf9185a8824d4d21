"""A deterministic cluster is equal to itself, bit for bit, also after kills."""

import pytest

from cifar10.runs import checkpoint
from tests.helpers import clusters, observed

pytestmark = pytest.mark.slow
LAST_STEP = 16
FLAGS = [
    '--deterministic',
    '--seed=1',
    f'--max_steps={LAST_STEP}',
    '--eval_every=0',
    '--save_checkpoint_steps=5',
    '--log_frequency=1',
]


def _end(directory):
    last = checkpoint.read_latest(str(directory))
    assert last.step == LAST_STEP
    return {name: value.tobytes() for name, value in last.values.items()}


@pytest.mark.parametrize(
    'mode, num_ps, num_workers',
    [
        ('sync', 1, 2),
        ('allreduce', 0, 2),
        pytest.param('sync', 2, 3, marks=pytest.mark.long),
        pytest.param('allreduce', 0, 3, marks=pytest.mark.long),
    ],
)
def test_after_kills(tmp_path, data_dir, mode, num_ps, num_workers):
    # TensorFlow 1.15 may not notice a lost peer of an all-reduce; then the watchdog does.
    flags = FLAGS + [f'--mode={mode}'] + ['--stall_timeout_secs=6'] * (not num_ps)
    (tmp_path / 'one').mkdir()
    whole = clusters.factory(tmp_path / 'one', data_dir, flags)(num_ps, num_workers)
    whole.start()
    whole.succeed()
    (tmp_path / 'two').mkdir()
    cluster = clusters.factory(tmp_path / 'two', data_dir, flags, gate=7)(num_ps, num_workers)
    cluster.start()
    cluster.wait_until_blocked(7)
    if num_ps:
        cluster.kill('worker 1')
        cluster.allow(12)
        cluster.start('worker 1')
        assert cluster.joined_step('worker 1') == 7
        cluster.wait_until_blocked(12)
        cluster.kill('worker 0')
        cluster.allow()
        cluster.start('worker 0')
        assert cluster.resumed_step() == 10
    else:
        cluster.kill('worker 1')
        cluster.allow()
        cluster.end_all()
        cluster.start()
        assert cluster.resumed_step() == 5
    cluster.succeed()
    assert _end(tmp_path / 'one' / 'run') == _end(tmp_path / 'two' / 'run')


def test_a_worker_dies_after_it_has_sent_a_gradient(tmp_path, data_dir):
    """The chief may use the gradient after the worker has joined again, and before it replays."""
    flags = FLAGS + ['--mode=sync']
    ends, free = [], str(tmp_path / 'free')
    observed.write(free, 10**9)
    for name, dies in (('one', False), ('two', True)):
        (tmp_path / name).mkdir()
        cluster = clusters.factory(tmp_path / name, data_dir, flags, gate=7)(1, 2)
        cluster.start('ps 0', 'worker 0')
        cluster.tasks['worker 1'] = cluster.start_another('worker 1', gate=free)
        cluster.wait_until_blocked(7, 'worker 0')
        cluster.wait_for('worker 1', 'step 7, loss')  # now it computes or sends the next one
        if dies:
            cluster.kill('worker 1')
            cluster.tasks['worker 1'] = cluster.start_another('worker 1', gate=free)
            assert cluster.joined_step('worker 1') == 7
        cluster.allow()
        cluster.succeed()
        ends.append(_end(tmp_path / name / 'run'))
    assert ends[0] == ends[1]
