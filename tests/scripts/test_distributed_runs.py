"""Cluster runs in every mode and start order, with an evaluator; mistakes give one line."""

import glob
import json
import re
import shutil

import pytest

from cifar10.distributed import launcher
from cifar10.runs import checkpoint
from tests.helpers import clusters, data_sets, events, programs

pytestmark = pytest.mark.slow
LONG = pytest.mark.long
EX_TEMPFAIL = 75
SCRIPT = 'cifar10_distributed_train.py: '
FLAGS = ['--seed=1', '--log_frequency=2', '--save_summaries_steps=2']


@pytest.fixture
def make_cluster(tmp_path, data_dir):
    """Return clusters.factory."""
    return clusters.factory(tmp_path, data_dir, FLAGS)


def _succeed(cluster):
    cluster.succeed()
    assert [task.stderr_lines for task in cluster.tasks.values()] == [[]] * len(cluster.names)


def _steps(task):
    return [
        int(step) for step in re.findall(r': step (\d+), loss = \d', '\n'.join(task.stdout_lines))
    ]


def _num_ended(num_workers, mode):
    return set(
        range(8, 8 + (num_workers if mode == 'async' else 1))
    )  # other workers were in a step


@pytest.mark.parametrize(
    'mode, num_ps, num_workers',
    [('sync', 2, 2)]
    + [
        pytest.param(*case, marks=LONG)
        for case in [
            ('async', 2, 2),
            ('average', 1, 2),
            ('sync', 1, 1),
            ('allreduce', 0, 3),
        ]
    ],
)
def test_a_run(tmp_path, data_dir, make_cluster, mode, num_ps, num_workers):
    """Check files, output and summaries; another trainer resumes the run."""
    cluster = make_cluster(
        num_ps,
        num_workers,
        '--mode=' + mode,
        '--max_steps=8',
        *['--average_period=2'] * (mode == 'average'),
    )
    for i in range(1, num_workers):  # only the chief may write
        cluster.start(f'worker {i}', flags=[f'--train_dir={tmp_path / "other"}'])
    cluster.start(*[name for name in cluster.names if name.startswith('ps')] + ['worker 0'])
    _succeed(cluster)
    assert not (tmp_path / 'other').exists()
    saved = checkpoint.read_latest(str(tmp_path / 'run'))
    assert saved.step in _num_ended(num_workers, mode)
    assert len(saved.values) == 21  # with the moving averages
    steps = events.shown_steps(tmp_path / 'run')
    assert steps.pop('Precision @ 1') == [saved.step]
    for i in range(num_workers):
        assert cluster.text(f'worker {i}').count('precision @ 1') == (i == 0)
    for tag, found in steps.items():
        assert found == sorted(set(found)) and len(found) == len(steps['total_loss']), tag
    assert len(glob.glob(str(tmp_path / 'run' / 'events.*'))) == 1
    if mode == 'async':
        assert {'staleness/mean', 'staleness/maximum'} <= set(steps)
        counts = re.findall(
            r'Staleness of (\d+) updates',
            ''.join(cluster.text(f'worker {i}') for i in range(num_workers)),
        )
        # others can finish after the last checkpoint
        assert 0 <= sum(map(int, counts)) - saved.step < num_workers
    else:
        expected = [2, 4, 6, 8] if mode == 'average' else [1, 3, 5, 7, 8]
        assert steps == dict.fromkeys(steps, expected)
        logged = [0] * (mode != 'average') + [2, 4, 6, 8]
        assert all(_steps(cluster.tasks[f'worker {i}']) == logged for i in range(num_workers))
    if mode in ('sync', 'async'):
        held = re.search(r'^Variables: (.*)$', cluster.text('worker 0'), re.M).group(1)
        assert sum(map(float, re.findall(r'([\d.]+) MB on ps \d', held))) == pytest.approx(
            8.5, abs=0.11
        )
        assert held.count('MB on ps') == num_ps
    status, stdout, _ = programs.call(
        'cifar10_train',
        '--data_dir=' + data_dir,
        f'--train_dir={tmp_path / "run"}',
        f'--max_steps={saved.step + 1}',
        *clusters.FLAGS,
    )
    # async: another worker can make a step while the chief saves, so the name can have a lower one.
    assert status == 0 and f'Resuming from {saved.path}, step {saved.step}\n' in stdout


@LONG
def test_a_resumed_run_keeps_its_warm_up(tmp_path, make_cluster):
    """The chief's run counts, not that in another worker's --train_dir.

    At first the parameter server is late: each worker waits, and names it.
    """
    flags = ['--recipe=fast', '--epochs=1', '--eval_every=0', '--num_gpus=2']
    cluster = make_cluster(1, 2, '--max_steps=2', *flags)
    cluster.start('worker 0', 'worker 1')
    cluster.wait_for(
        'worker 1',
        rf'^Connecting: waiting for ps 0 \({cluster.addresses["ps 0"]}: Connection refused\)$',
    )
    cluster.start('ps 0')
    _succeed(cluster)
    assert 'Batch: 8 examples per tower' in cluster.text('worker 1')
    assert ', 32 examples per step' in cluster.text('worker 1')
    shutil.copytree(str(tmp_path / 'run'), str(tmp_path / 'other'))
    for directory, warmup_epochs in [('run', 0.5), ('other', 0.25)]:
        record = json.loads((tmp_path / directory / 'run.json').read_text())
        assert record['warmup_epochs'] == 2 / 25
        (tmp_path / directory / 'run.json').write_text(
            json.dumps(dict(record, warmup_epochs=warmup_epochs))
        )
    cluster = make_cluster(1, 2, '--max_steps=4', *flags)
    cluster.start('worker 1', flags=[f'--train_dir={tmp_path / "other"}'])
    cluster.start('ps 0', 'worker 0')
    _succeed(cluster)
    for name in ('worker 0', 'worker 1'):
        assert 'rises to 0.05 in 0.5 epochs, then falls to 0' in cluster.text(name)


def test_mistakes_that_others_notice(tmp_path, make_cluster):
    """Other hyperparameters, other data of the same size and other addresses end a worker.

    So does a second task with the same name, on this host or another. The run continues with a
    worker that agrees.
    """
    cluster = make_cluster(1, 3, '--replicas_to_aggregate=1', '--mode=sync')
    cluster.start('ps 0', 'worker 0')
    cluster.wait_for('worker 0', ': step 2, loss')
    data_sets.write(tmp_path / 'data')
    (path,) = (tmp_path / 'data').glob('**/data_batch_3.bin')
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(bytes(content))
    address = cluster.addresses
    others = f'--worker_hosts={address["worker 0"]},localhost:1,{address["worker 2"]}'
    mistakes = [
        (
            cluster.start_another(name, *flags, **elsewhere),
            f'{SCRIPT}error: ' + complaint.format(name=f'{name} ({address[name]})'),
        )
        for name, flags, elsewhere, complaint in [
            (
                'worker 1',
                ['--initial_learning_rate=0.5'],
                {},
                'The run has initial_learning_rate 0.1, but {name} has 0.5: ',
            ),
            ('worker 2', [others], {}, f'ps 0 ({address["ps 0"]}) was started with '),
            ('ps 0', [], {}, '{name} cannot listen: Address already in use: '),
            (
                'ps 0',
                [],
                {'listens_at': launcher.free_ports(1)[0]},
                'Another process answers at the address of {name}, as ps 0: ',
            ),
        ]
    ]
    _assert_one_line(mistakes)
    cluster.start('worker 2')
    different = cluster.start_another('worker 1', f'--data_dir={tmp_path / "data"}')
    _assert_one_line([(different, SCRIPT + "error: The run has data_checksum '")])
    cluster.wait_for('worker 2', ': step [0-9]+, loss')


def _assert_one_line(mistakes):
    for task, complaint in mistakes:
        assert task.end() == 1 and len(task.stderr_lines) == 1
        assert task.stderr_lines[0].startswith(complaint)


def test_tf_config_with_a_chief_and_an_evaluator(tmp_path, runs, make_cluster):
    """As in tf.estimator: the chief is worker 0, the worker is worker 1, the evaluator has no
    address.

    The evaluator waits for the chief, which resumes an ended run.
    """
    shutil.copytree(str(runs / 'fast'), str(tmp_path / 'run'))
    cluster = make_cluster(1, 2, '--recipe=fast', '--max_steps=5', '--eval_every=0')
    hosts = {
        'chief': [cluster.addresses['worker 0']],
        'worker': [cluster.addresses['worker 1']],
        'ps': [cluster.addresses['ps 0']],
    }
    flags = [flag for flag in cluster.flags if '_hosts=' not in flag]
    tasks = {}
    for job in ('evaluator', 'ps', 'chief', 'worker'):
        config = {'cluster': hosts, 'task': {'type': job, 'index': 0}}
        tasks[job] = clusters.Task(flags, {'TF_CONFIG': json.dumps(config)})
        if job == 'evaluator':
            tasks[job].wait_for(r'^Waiting for worker 0 \(.*\) to train$')
    assert {job: task.end() for job, task in reversed(list(tasks.items()))} == dict.fromkeys(
        tasks, 0
    )
    assert [task.stderr_lines for task in tasks.values()] == [[]] * 4
    for job, index in [('chief', 0), ('worker', 1)]:
        assert f'this is worker {index} ({cluster.addresses[f"worker {index}"]})' in '\n'.join(
            tasks[job].stdout_lines
        )
    assert 'of 50, step 5)' in '\n'.join(tasks['evaluator'].stdout_lines)
    assert events.shown_steps(tmp_path / 'run' / 'eval')['Precision @ 1'][-1] == 5


@pytest.mark.long
@pytest.mark.parametrize('num_ps', [0, 1])
def test_a_diverging_run(make_cluster, num_ps):
    """The run ends with one line, and saves no other weights than the initial ones."""
    cluster = make_cluster(num_ps, 2, '--initial_learning_rate=1e8', '--stall_timeout_secs=4')
    cluster.start()
    assert cluster.tasks['worker 0'].end() == 1
    (complaint,) = cluster.tasks['worker 0'].stderr_lines
    assert re.match(
        rf'{SCRIPT}error: Training diverged .* The last good checkpoint is \S+/model.ckpt-0: lower .*$',
        complaint,
    )
    assert set(cluster.end_all().values()) <= {1, EX_TEMPFAIL}
    assert all(len(task.stderr_lines) == 1 for task in cluster.tasks.values())
