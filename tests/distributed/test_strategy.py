"""The numbers of the modes."""

import pytest

from cifar10.data import dataset
from cifar10.distributed.strategy import MODES, Strategy
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC
from cifar10.training import Job


@pytest.mark.parametrize(
    'strategy, examples, steps_per_run',
    [
        (Strategy('sync', 4), 4 * 2 * 128, 1),
        (Strategy('sync', 4, replicas_to_aggregate=3), 3 * 2 * 128, 1),
        (Strategy('allreduce', 4), 4 * 2 * 128, 1),
        (Strategy('allreduce', 1), 2 * 128, 1),
        (Strategy('async', 4), 2 * 128, 1),
        (Strategy('async', 4, fetch_steps=5), 2 * 128, 1),
        (Strategy('async', 4, fetch_steps=5, push_steps=3), 3 * 2 * 128, 1),
        (Strategy('average', 4), 4 * 2 * 128, 10),
        (Strategy('average', 4, average_period=1), 4 * 2 * 128, 1),
    ],
)
def test_a_step_of_the_run(strategy, examples, steps_per_run):
    """With two towers in each worker: what is seen between two values of the global step, and how
    far a session run takes it."""
    strategy.check()
    job = Job(
        dataset.read('data'),
        50000,
        CLASSIC._replace(epochs=2.0),
        ['/cpu:0', '/cpu:1'],
        batches_per_step=strategy.batches_per_step,
        steps_per_run=strategy.steps_per_run,
    )
    assert job.pace == (examples, 50000, -(-100000 // examples), steps_per_run)


@pytest.mark.parametrize('mode', MODES)
def test_servers(mode):
    assert Strategy(mode, 2).has_servers == (mode != 'allreduce')


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize(
    'name, its_mode',
    [
        ('replicas_to_aggregate', 'sync'),
        ('fetch_steps', 'async'),
        ('push_steps', 'async'),
        ('average_period', 'average'),
    ],
)
def test_numbers_without_effect(mode, name, its_mode):
    strategy = Strategy(mode, 2, **{name: 2})
    if mode == its_mode:
        strategy.check()
        assert getattr(strategy, name) == 2
    else:
        with pytest.raises(
            UserError,
            match='^--%s has no effect with --mode=%s: leave it out, or give --mode=%s$'
            % (name, mode, its_mode),
        ):
            strategy.check()


@pytest.mark.parametrize('given, wanted', [(0, 3), (1, 1), (2, 2), (3, 3)])
def test_backup_workers(given, wanted):
    strategy = Strategy('sync', 3, replicas_to_aggregate=given)
    strategy.check()
    assert strategy.num_aggregated == wanted


def test_more_than_all_workers():
    with pytest.raises(
        UserError,
        match='^--replicas_to_aggregate=4 is more than the 3 workers: give at most their number$',
    ):
        Strategy('sync', 3, replicas_to_aggregate=4).check()
