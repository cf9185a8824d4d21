"""Tasks that join a cluster: twice, by a TF_CONFIG, or as an evaluator."""

import json
import re

import pytest

from cifar10.distributed import launcher
from cifar10.runs import checkpoint_files
from tests.helpers import clusters, events

pytestmark = pytest.mark.slow
FLAGS = [
    '--batch_size=8',
    '--eval_every=0',
    '--log_frequency=1',
    '--intra_op_threads=1',
    '--inter_op_threads=1',
    '--num_preprocess_threads=1',
]


@pytest.fixture
def make_cluster(tmp_path, data_dir):
    """Return clusters.factory."""
    return clusters.factory(tmp_path, data_dir, FLAGS)


def test_a_second_task_on_another_host(tmp_path, make_cluster):
    """The second task ends with one line, and does not disturb the run."""
    cluster = make_cluster(1, 2, '--mode=sync', '--max_steps=20', gate=7)
    cluster.start()
    cluster.wait_until_blocked(7)
    second = cluster.start_another('worker 1', listens_at=launcher.free_ports(1)[0])
    assert second.end() == 1
    assert ' answers at the address of worker 1 ' in second.stderr_lines[0]
    cluster.allow()
    cluster.succeed()
    for task in cluster.names:
        assert not re.search('Lost|Joining|Resuming', cluster.text(task))
    assert re.search(r'-2[01]$', checkpoint_files.latest_checkpoint(str(tmp_path / 'run')))


def test_tf_config_with_a_chief_and_an_evaluator(tmp_path, make_cluster):
    """As in tf.estimator: the chief is worker 0, the worker is worker 1, the evaluator has no
    address."""
    cluster = make_cluster(1, 2, '--max_steps=4')
    hosts = {
        'chief': [cluster.addresses['worker 0']],
        'worker': [cluster.addresses['worker 1']],
        'ps': [cluster.addresses['ps 0']],
    }
    flags = [flag for flag in cluster.flags if '_hosts=' not in flag]
    tasks = {
        job: clusters.Task(
            flags, {'TF_CONFIG': json.dumps({'cluster': hosts, 'task': {'type': job, 'index': 0}})}
        )
        for job in ('evaluator', 'ps', 'chief', 'worker')
    }
    assert {job: task.end() for job, task in reversed(list(tasks.items()))} == dict.fromkeys(
        tasks, 0
    )
    assert [task.stderr_lines for task in tasks.values()] == [[]] * 4
    for job, index in [('chief', 0), ('worker', 1)]:
        assert f'this is worker {index} ({cluster.addresses[f"worker {index}"]})' in '\n'.join(
            tasks[job].stdout_lines
        )
    assert 'of 50, step 4)' in '\n'.join(tasks['evaluator'].stdout_lines)
    assert events.shown_steps(tmp_path / 'run' / 'eval')['Precision @ 1'] == [4]


def test_an_evaluator_before_the_chief(tmp_path, make_cluster):
    """It waits for the chief, which resumes an ended run."""
    cluster = make_cluster(0, 1, '--max_steps=4')
    cluster.start()
    assert cluster.tasks['worker 0'].end() == 0
    evaluator = clusters.Task(['--job_name=evaluator'] + cluster.flags + ['--max_steps=6'])
    evaluator.wait_for(rf'^Waiting for worker 0 \({cluster.addresses["worker 0"]}\) to train$')
    cluster.start(flags=['--max_steps=6'])
    assert (cluster.tasks['worker 0'].end(), evaluator.end()) == (0, 0)
    assert 'of 50, step 6)' in '\n'.join(evaluator.stdout_lines)
    assert events.shown_steps(tmp_path / 'run' / 'eval')['Precision @ 1'][-1] == 6
