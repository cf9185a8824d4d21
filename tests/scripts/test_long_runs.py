"""Long runs: memory, threads and open files stay as they are. The longest ones are behind the
marker `long`."""

import sys

import pytest
import tensorflow.compat.v1 as tf

from tests.helpers import checkpoints, long_runs, programs, small_run

pytestmark = pytest.mark.skipif(not sys.platform.startswith('linux'), reason='reads /proc')


@pytest.mark.parametrize(
    'steps, warm_up, summary_steps, checkpoint_steps',
    [
        pytest.param(2500, 1000, 21, 99, marks=pytest.mark.long),
        pytest.param(20000, 2000, 99, 999, marks=pytest.mark.long),
    ],
)
def test_a_trainer_does_not_grow(
    tmp_path, data_dir, steps, warm_up, summary_steps, checkpoint_steps
):
    """Lines are logged at other steps than those of summaries and checkpoints, so that no sample is
    taken in between."""
    samples = long_runs.sample(
        [
            programs.path('cifar10_train'),
            '--dataset=synthetic',
            '--data_dir=' + data_dir,
            '--train_dir=%s' % tmp_path,
            '--batch_size=2',
            '--initial_learning_rate=0.001',
            '--max_steps=%d' % steps,
            '--log_frequency=50',
            '--eval_steps=0',
            '--summary_steps=%d' % summary_steps,
            '--checkpoint_steps=%d' % checkpoint_steps,
        ],
        r': step \d+, loss = ',
        deadline_secs=120 + steps / 20,
    )
    assert len(samples) == steps / 50 - 1
    long_runs.assert_flat(samples, warm_up // 50)


@pytest.mark.long
@pytest.mark.parametrize('polls, warm_up', [(100, 25), (500, 100)])
def test_an_evaluator_does_not_grow(tmp_path, data_dir, polls, warm_up):
    checkpoints.save(tmp_path, 5)
    samples = long_runs.sample(
        [
            '-m',
            'tests.helpers.long_runs',
            data_dir,
            str(tmp_path),
            str(tmp_path / 'eval'),
            str(polls),
        ],
        ': precision @ 1 = ',
        deadline_secs=120 + polls,
    )
    assert len(samples) == polls - 1
    long_runs.assert_flat(samples, warm_up)


def test_the_graph_is_finalized_while_training(tmp_path, data_dir, monkeypatch):
    """So that no step can add to it, and make the next one slower."""
    finalized, save = [], tf.train.Saver.save

    def saving(saver, session, *args, **kwargs):
        finalized.append(session.graph.finalized)
        return save(saver, session, *args, **kwargs)

    monkeypatch.setattr(tf.train.Saver, 'save', saving)
    small_run.train(tmp_path, data_dir, 3, checkpoint_steps=1)
    assert finalized == [True] * 3
