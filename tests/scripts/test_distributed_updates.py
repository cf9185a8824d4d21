"""Updates of a cluster, against one process with as many towers, and against simulations."""

import dataclasses
import re
import shutil

import numpy as np
import pytest

from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.input import Shard
from cifar10.runs import checkpoint, run_record
from cifar10.training import Job
from tests.helpers import clusters, data_sets
from tests.helpers.two_towers import Trainer, batches

pytestmark = pytest.mark.slow
HPARAMS = {
    'classic': ([], CLASSIC),
    'momentum': (
        ['--optimizer=momentum'],
        dataclasses.replace(CLASSIC, optimizer='momentum'),
    ),
    'fast': (
        [
            '--recipe=fast',
            '--moving_average_fraction=0',
            '--moving_average_decay=0.3',
            '--compute_dtype=float32',  # Rounding to bfloat16 is larger than the tolerance.
        ],
        dataclasses.replace(
            FAST, moving_average_fraction=0.0, moving_average_decay=0.3, compute_dtype='float32'
        ),
    ),
}


def _job(data_dir, recipe, num_workers=2, is_deterministic=True):
    return Job(
        dataset.read(data_dir),
        dataclasses.replace(HPARAMS[recipe][1], batch_size=8),
        settings=RunSettings(seed=1, deterministic=is_deterministic),
        batches_per_tower=num_workers,
    )


def _begin(directory, job, num_towers=2):
    """Return a Trainer, and its values after one update; save them in the directory."""
    trainer = Trainer(job.hparams, job.run_length, num_towers)
    rng = np.random.default_rng(5)
    trainer.step(
        [(rng.normal(size=(8, 24, 24, 3)), rng.integers(0, 10, 8)) for _ in range(num_towers)]
    )
    directory.mkdir()
    trainer.save(directory)
    return trainer, trainer.values()


def _run(directory, job, recipe, num_ps, num_workers, max_steps, *flags, **options):
    """Train from the checkpoint to `max_steps`; return the Cluster."""
    if job.settings.deterministic:
        mode = 'sync' if num_ps else 'allreduce'
        record = job._replace(shard=Shard(0, num_workers), mode=mode).record
        run_record.write(str(directory), record)
        flags += ('--deterministic',)
    cluster = clusters.Cluster(
        num_ps,
        num_workers,
        '--data_dir=' + job.dataset.directory,
        f'--train_dir={directory}',
        f'--max_steps={max_steps}',
        '--eval_every=0',
        '--seed=1',
        *clusters.FLAGS + HPARAMS[recipe][0] + list(flags),
        **options,
    )
    cluster.start()
    cluster.succeed()
    assert [task.stderr_lines for task in cluster.tasks.values()] == [[]] * len(cluster.names)
    return cluster


def _saved(directory, step):
    return checkpoint.read(f'{directory}/model.ckpt-{step}').values


def _assert_same(found, wanted, first):
    """Assert equality up to the order of sums, far below the change since the first values."""
    assert sorted(found) == sorted(wanted)
    for name, value in wanted.items():
        change = np.abs(value - first[name]).max()
        assert change > 0, name
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-3 * change, err_msg=name)


LONG = pytest.mark.long
SYNC, AVERAGE, ALLREDUCE = ['--mode=sync'], ['--mode=average', '--average_period=1'], []
DIVIDED = ['--num_gpus=2', '--devices_per_tower=2', '--variable_strategy=spread']


@pytest.fixture(scope='module')
def two_towers(tmp_path_factory, data_dir):
    """Return a function that returns a Job, a checkpoint, its values, those after 3 updates."""
    known = {}

    def find(recipe):
        if recipe not in known:
            top = tmp_path_factory.mktemp(recipe)
            # A deterministic run is not resumed in the mode average.
            if recipe == 'classic':
                job = _job(data_sets.write_same(top / 'data'), recipe, is_deterministic=False)
            else:
                job = _job(data_dir, recipe)
            directory = top / 'run'
            trainer, first = _begin(directory, job)
            later = []
            for pair in zip(*[batches(job, 1, Shard(i, 2), 3) for i in range(2)]):
                trainer.step(pair)
                later.append(trainer.values())
            known[recipe] = job, directory, first, later
        return known[recipe]

    return find


@pytest.mark.parametrize(
    'recipe, num_ps, mode',
    [('fast', 1, SYNC + DIVIDED), ('fast', 0, ALLREDUCE)]
    + [
        pytest.param(*case, marks=LONG)
        for case in [
            ('momentum', 2, SYNC),
            ('fast', 0, ALLREDUCE + DIVIDED),
            ('classic', 1, AVERAGE + DIVIDED),
            ('classic', 2, AVERAGE),
        ]
    ],
)
def test_two_workers_are_two_towers(tmp_path, two_towers, recipe, num_ps, mode):
    """Compare all variables, slots and moving averages of all checkpoints."""
    job, directory, first, later = two_towers(recipe)
    shutil.copytree(str(directory), str(tmp_path / 'run'))
    cluster = _run(
        tmp_path / 'run',
        job,
        recipe,
        num_ps,
        2,
        4,
        '--save_checkpoint_steps=1',
        *mode,
        digests=not num_ps,
    )
    for step, values in enumerate(later, 2):
        _assert_same(_saved(tmp_path / 'run', step), values, first)
    if not num_ps:  # all workers are equal, bit for bit
        digests = [
            [
                line
                for line in cluster.tasks[f'worker {i}'].stdout_lines
                if line.startswith('Digest')
            ]
            for i in range(2)
        ]
        assert digests[0] == digests[1] and len(set(digests[0])) == 3


def test_averages_of_two_copies(tmp_path):
    """Each copy has its own momentum and moving averages; every three steps weights and averages
    are averaged, each half on another server."""
    data_dir = data_sets.write_same(tmp_path / 'data')
    job = _job(data_dir, 'momentum', is_deterministic=False)
    trainer, first = _begin(tmp_path / 'run', job, 1)
    _run(
        tmp_path / 'run',
        job,
        'momentum',
        2,
        2,
        6,
        '--save_checkpoint_steps=1',
        '--mode=average',
        '--average_period=3',
    )
    taken = [batches(job, 1, Shard(i, 2), 5) for i in range(2)]
    copies = [
        first,
        {name: 0 * value if name.endswith('/Momentum') else value for name, value in first.items()},
    ]
    for begin, end in [(0, 3), (3, 5)]:  # the last period is shorter
        for i, values in enumerate(copies):
            trainer.load(values)
            for step in range(begin, end):
                trainer.step([taken[i][step]])
            copies[i] = trainer.values()
        for name in copies[0]:
            if not name.endswith('/Momentum'):
                copies[0][name] = copies[1][name] = (copies[0][name] + copies[1][name]) / 2
        _assert_same(_saved(tmp_path / 'run', end + 1), copies[0], first)


@pytest.mark.parametrize(
    'recipe, fetch_steps, push_steps',
    [('momentum', 3, 2)]
    + [pytest.param(*case, marks=LONG) for case in [('classic', 1, 1), ('fast', 2, 3)]],
)
def test_downpour_of_one_worker(tmp_path, recipe, fetch_steps, push_steps):
    """Sums of gradients are applied; between two updates, a local copy moves by itself."""
    data_dir = data_sets.write_same(tmp_path / 'data')
    job = _job(data_dir, recipe, num_workers=push_steps, is_deterministic=False)
    trainer, first = _begin(tmp_path / 'run', job, 1)
    flags = [f'--fetch_steps={fetch_steps}', f'--push_steps={push_steps}']
    cluster = _run(
        tmp_path / 'run',
        job,
        recipe,
        1,
        1,
        4,
        '--save_checkpoint_steps=1',
        '--log_frequency=3',
        '--mode=async',
        *flags,
    )
    taken = batches(job, 1, Shard(0, 1), 3 * push_steps)
    local = Trainer(job.hparams, job.run_length, 1)
    copy = total = None
    staleness = []
    for step, batch in enumerate(taken):
        if step % fetch_steps == 0:
            copy, updates = trainer.values(), 0
        local.load(copy)
        gradients = local.gradients([batch])
        total = {
            name: (total[name] if total else 0) + gradient for name, gradient in gradients.items()
        }
        rate = job.hparams.initial_learning_rate
        if recipe == 'fast':  # The updates 2 to 4 are in the warm-up.
            epoch = (1 + step // push_steps + 0.5) * 8 * push_steps / 300
            rate *= epoch / job.hparams.warmup_epochs
        copy = dict(
            copy, **{name: copy[name] - rate * gradient for name, gradient in gradients.items()}
        )
        if (step + 1) % push_steps == 0:
            trainer.apply(total)
            total, updates = None, updates + 1
            staleness.append(updates - 1)
            _assert_same(
                _saved(tmp_path / 'run', 1 + (step + 1) // push_steps), trainer.values(), first
            )
    # A line at step 3, and one at the end.
    assert re.findall('Staleness of .*', cluster.text('worker 0')) == [
        f'Staleness of {len(part)} updates by this worker: mean {np.mean(part):.2f}, maximum {max(part)}'
        for part in (staleness[:2], staleness[2:])
    ]
