"""Long runs: constant memory, threads and open files. The longest have the marker `long`."""

import sys

import pytest
import tensorflow.compat.v1 as tf

from tests.helpers import checkpoints, long_runs, programs, small_run

pytestmark = pytest.mark.skipif(not sys.platform.startswith('linux'), reason='reads /proc')


@pytest.mark.long
def test_a_trainer_does_not_grow(tmp_path, data_dir):
    """Log lines fall between summaries and checkpoints, so that no sample is taken during one."""
    samples = long_runs.sample(
        [
            programs.path('cifar10_train'),
            '--dataset=synthetic',
            '--data_dir=' + data_dir,
            f'--train_dir={tmp_path}',
            '--batch_size=2',
            '--initial_learning_rate=0.001',
            '--max_steps=20000',
            '--log_frequency=50',
            '--eval_every=0',
            '--save_summaries_steps=99',
            '--save_checkpoint_steps=999',
        ],
        r': step \d+, loss = ',
        deadline_secs=1120,
    )
    assert len(samples) == 400
    long_runs.assert_flat(samples, 40)


@pytest.mark.long
def test_an_evaluator_does_not_grow(tmp_path, data_dir):
    checkpoints.save(tmp_path, 5)
    samples = long_runs.sample(
        [
            '-m',
            'tests.helpers.long_runs',
            data_dir,
            str(tmp_path),
            str(tmp_path / 'eval'),
            '500',
        ],
        ': precision @ 1 = ',
        deadline_secs=2400,  # 500 polls take 200 to 400 seconds of CPU time
    )
    assert len(samples) == 499
    long_runs.assert_flat(samples, 100)


def test_the_graph_is_finalized_while_training(tmp_path, data_dir, monkeypatch):
    """A step cannot add operations, which would slow the next one down."""
    finalized, save = [], tf.train.Saver.save

    def saving(saver, session, *args, **kwargs):
        finalized.append(session.graph.finalized)
        return save(saver, session, *args, **kwargs)

    monkeypatch.setattr(tf.train.Saver, 'save', saving)
    small_run.train(tmp_path, data_dir, 3, save_checkpoint_steps=1)
    assert finalized == [True] * 4
