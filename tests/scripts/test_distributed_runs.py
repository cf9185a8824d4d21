"""Cluster runs in every mode and start order, with an evaluator; mistakes give one line."""

import glob
import json
import re
import shutil

import pytest

from cifar10.runs import checkpoint
from tests.helpers import changed_networks, clusters, events, messages, programs

pytestmark = pytest.mark.slow
LONG = pytest.mark.long
SCRIPT = 'cifar10_distributed_train.py: '
FLAGS = ['--seed=1', '--log_frequency=2', '--save_summaries_steps=2']


@pytest.fixture
def make_cluster(tmp_path, data_dir):
    """Return clusters.factory."""
    return clusters.factory(tmp_path, data_dir, FLAGS)


def _succeed(cluster):
    cluster.succeed()
    assert [task.stderr_lines for task in cluster.tasks.values()] == [[]] * len(cluster.names)


@pytest.mark.parametrize(
    'mode, num_ps, num_workers',
    [('sync', 2, 2)]
    + [
        pytest.param(*case, marks=LONG)
        for case in [('async', 2, 2), ('average', 2, 3), ('sync', 1, 1), ('allreduce', 0, 3)]
    ],
)
def test_a_run(tmp_path, data_dir, make_cluster, mode, num_ps, num_workers):
    """Check files, output and summaries; another trainer resumes the run."""
    flags = ['--average_period=2'] * (mode == 'average')
    cluster = make_cluster(num_ps, num_workers, '--mode=' + mode, '--max_steps=8', *flags)
    cluster.start()
    _succeed(cluster)
    saved = checkpoint.read_latest(str(tmp_path / 'run'))
    # async: other workers were in a step, and tf.train.StopAtStepHook reads an earlier step
    last_steps = range(8, 10 + num_workers) if mode == 'async' else [8]
    assert saved.step in last_steps
    assert len(saved.values) == 21  # with the moving averages
    steps = events.shown_steps(tmp_path / 'run')
    assert steps.pop('Precision @ 1') == [saved.step]
    assert ('staleness' in steps) == (mode == 'async')
    for i in range(num_workers):
        assert cluster.text(f'worker {i}').count('precision @ 1') == (i == 0)
    for tag, found in steps.items():
        assert found == sorted(set(found)) and len(found) == len(steps['total_loss']), tag
    assert len(glob.glob(str(tmp_path / 'run' / 'events.*'))) == 1
    if mode != 'async':
        assert steps == dict.fromkeys(steps, [1, 3, 5, 7, 8])
        for i in range(num_workers):
            text = cluster.text(f'worker {i}')
            assert messages.log_steps(text) == ['0', '2', '4', '6', '8']
    status, stdout, _ = programs.call(
        'cifar10_train',
        '--data_dir=' + data_dir,
        f'--train_dir={tmp_path / "run"}',
        f'--max_steps={saved.step + 1}',
        *clusters.FLAGS,
    )
    # async: another worker can make a step while the chief saves, so the name can have a lower one.
    assert status == 0 and f'Resuming from {saved.path}, step {saved.step}\n' in stdout


def test_a_port_in_use(make_cluster):
    """TensorFlow 1.15 would print another line."""
    cluster = make_cluster(1, 2)
    cluster.start('ps 0')
    cluster.wait_for('ps 0', 'listens on all network interfaces')
    second, address = cluster.start_another('ps 0'), cluster.addresses['ps 0']
    assert second.end() == 1
    (line,) = second.stderr_lines
    assert line.startswith(
        f'{SCRIPT}error: ps 0 ({address}) cannot listen (Address already in use): '
    )
    cluster.kill('ps 0')


def test_tf_config_with_a_chief(tmp_path, runs, make_cluster):
    """As in tf.estimator; the chief is worker 0, and resumes an ended run."""
    shutil.copytree(str(runs / 'fast'), str(tmp_path / 'run'))
    cluster = make_cluster(1, 2, '--recipe=fast', '--max_steps=5')
    hosts = {
        'master': [cluster.addresses['worker 0']],
        'worker': [cluster.addresses['worker 1']],
        'ps': [cluster.addresses['ps 0']],
    }
    flags = [flag for flag in cluster.flags if '_hosts=' not in flag]
    tasks = {}
    for job in hosts:
        config = {'cluster': hosts, 'task': {'type': job, 'index': 0}}
        tasks[job] = clusters.Task(flags, {'TF_CONFIG': json.dumps(config)})
    assert {job: tasks[job].end() for job in ('worker', 'master', 'ps')} == dict.fromkeys(tasks, 0)
    assert [task.stderr_lines for task in tasks.values()] == [[]] * 3
    for index, job in enumerate(('master', 'worker')):
        assert f'this is worker {index} ({hosts[job][0]})' in '\n'.join(tasks[job].stdout_lines)
    assert 'of 50, step 5)' in '\n'.join(tasks['master'].stdout_lines)


@pytest.mark.parametrize(
    'num_ps, flags',
    [
        (1, '--mode=sync'),
        (0, '--mode=allreduce'),
        (1, '--mode=average --average_period=2'),
        (1, '--mode=async'),
        (1, '--mode=async --push_steps=2 --fetch_steps=2'),
    ],
)
def test_statistics_of_batch_normalization(tmp_path, data_dir, num_ps, flags):
    """The checkpoint has those of the chief; it evaluates them."""
    residual = changed_networks.write(tmp_path, 'residual')
    given = ['--network=' + residual, '--max_steps=4', *flags.split()]
    cluster = clusters.factory(tmp_path, data_dir, given)(num_ps, 2)
    cluster.start()
    cluster.succeed()
    saved = checkpoint.read_latest(str(tmp_path / 'run'))
    changed_networks.assert_moved(saved.path)
    assert len(re.findall(messages.precision(50), cluster.text('worker 0'))) == 1


def test_workers_with_different_sources(tmp_path, data_dir):
    cluster = clusters.factory(tmp_path, data_dir, ['--mode=sync'])(1, 2)
    one, other = [changed_networks.write(tmp_path, name) for name in ('residual', 'renamed')]
    cluster.start('ps 0', 'worker 0', flags=['--network=' + one])
    cluster.start('worker 1', flags=['--network=' + other])
    assert cluster.tasks['worker 1'].end() == 1
    (line,) = cluster.tasks['worker 1'].stderr_lines
    assert 'worker 1 has another network than the chief: give all workers the same' in line


_WITH_A_SHORT_LIMIT = """
import runpy
from cifar10.distributed import server

server.CONNECT_TIMEOUT_SECS = 2
runpy.run_path({!r}, run_name='__main__')
"""


def test_a_job_that_is_started_again_after_its_end(tmp_path, runs, make_cluster, monkeypatch):
    """The workers end at once, the server after its time limit, all with status 0."""
    shutil.copytree(str(runs / 'fast'), str(tmp_path / 'run'))
    flags = ['--recipe=fast', '--max_steps=3']
    wrapper = tmp_path / 'cifar10_distributed_train.py'
    wrapper.write_text(_WITH_A_SHORT_LIMIT.format(programs.path('cifar10_distributed_train')))
    monkeypatch.setattr(programs, 'path', lambda script: str(wrapper))
    cluster = make_cluster(1, 2, '--mode=sync', *flags)
    cluster.start()
    cluster.succeed()
    for name in ('worker 0', 'worker 1'):
        assert cluster.text(name).endswith(messages.nothing_to_do(tmp_path / 'run', 3, 3).rstrip())
