"""The updates of a cluster, against one process with as many towers, and against simulations of the algorithms."""
import numpy as np
import pytest

from cifar10 import hparams as recipes
from cifar10.input import Share
from cifar10.runs import checkpoint
from cifar10.training import Job
from tests.helpers import clusters, data_sets
from tests.helpers.two_towers import Trainer, batches

pytestmark = pytest.mark.slow
FLAGS = ['--batch_size=8', '--seed=1', '--intra_op_threads=1', '--inter_op_threads=1', '--input_threads=1']
RECIPES = {
    'classic': ([], recipes.CLASSIC), 'momentum': (['--optimizer=momentum'], recipes.CLASSIC._replace(optimizer='momentum')),
    'fast': (['--recipe=fast', '--moving_average_fraction=0', '--moving_average_decay=0.3'],
             recipes.FAST._replace(moving_average_fraction=0.0, moving_average_decay=0.3))}


def _job(data_dir, recipe, num_workers=2):
    return Job(data_dir, 300, RECIPES[recipe][1]._replace(batch_size=8), batches_per_step=num_workers, seed=1, deterministic=True)


def _begin(directory, job, num_towers=2):
    """A Trainer, and its values after a first update, which also are a checkpoint in the directory."""
    trainer = Trainer(job.hparams, job.pace, num_towers)
    rng = np.random.default_rng(5)
    trainer.step([(rng.normal(size=(8, 24, 24, 3)), rng.integers(0, 10, 8)) for _ in range(num_towers)])
    directory.mkdir()
    trainer.save(directory)
    return trainer, trainer.values()


def _run(directory, job, recipe, num_ps, num_workers, max_steps, *flags, **options):
    """Trains from the checkpoint in the directory to `max_steps`; returns the Cluster."""
    cluster = clusters.Cluster(num_ps, num_workers, '--data_dir=' + job.data_dir, '--train_dir=%s' % directory,
                               '--max_steps=%d' % max_steps, *FLAGS + RECIPES[recipe][0] + list(flags), **options)
    cluster.start()
    assert set(cluster.end_all().values()) == {0}
    assert [task.complaints for task in cluster.tasks.values()] == [[]] * len(cluster.names)
    return cluster


def _saved(directory, step):
    return checkpoint.read('%s/model.ckpt-%d' % (directory, step)).values


def _assert_same(found, wanted, first):
    """Asserts that values are the same, but for the order of sums, which the change since the first ones must exceed by far."""
    assert sorted(found) == sorted(wanted)
    for name, value in wanted.items():
        change = np.abs(value - first[name]).max()
        assert change > 0, name
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-3 * change, err_msg=name)


LONG = pytest.mark.long
SYNC, AVERAGE, ALLREDUCE = ['--mode=sync'], ['--mode=average', '--average_period=1'], []


@pytest.mark.parametrize('recipe, num_ps, mode', [
    ('fast', 2, SYNC), ('classic', 0, ALLREDUCE), ('classic', 1, AVERAGE),
    pytest.param('classic', 1, SYNC, marks=LONG), pytest.param('momentum', 1, SYNC, marks=LONG),
    pytest.param('fast', 1, SYNC, marks=LONG), pytest.param('momentum', 0, ALLREDUCE, marks=LONG),
    pytest.param('fast', 0, ALLREDUCE, marks=LONG), pytest.param('classic', 2, AVERAGE, marks=LONG)])
def test_two_workers_are_two_towers(tmp_path, data_dir, recipe, num_ps, mode):
    """All variables, slots and moving averages of all checkpoints."""
    job = _job(data_dir, recipe)
    trainer, first = _begin(tmp_path / 'run', job)
    cluster = _run(tmp_path / 'run', job, recipe, num_ps, 2, 4, '--deterministic', '--checkpoint_steps=1', *mode,
                   digests=not num_ps)
    taken = [batches(job, 1, Share(i, 2), 3) for i in range(2)]
    for step in range(3):
        trainer.step([taken[0][step], taken[1][step]])
        _assert_same(_saved(tmp_path / 'run', 2 + step), trainer.values(), first)
    if not num_ps:  # all workers stay the same, bit for bit
        digests = [[line for line in cluster.tasks['worker %d' % i].seen if line.startswith('Digest')] for i in range(2)]
        assert digests[0] == digests[1] and len(set(digests[0])) == 3
