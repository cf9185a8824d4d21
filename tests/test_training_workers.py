"""Session loop of a worker in a cluster: others make steps, or save."""

import glob
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.config import RunLength
from cifar10.runs.run import open_run
from tests.helpers import events, messages
from tests.helpers.small_run import fake_job, job, run_steps


def _step(jump, *losses):
    """Return a step whose train op counts `jump` steps."""
    train_op = tf.assign_add(tf.train.get_or_create_global_step(), jump)
    return training.Step(
        train_op,
        [tf.constant(loss) for loss in losses],
        [[(tf.constant(0.0), None)]],
        tf.constant(0.1),
        tf.summary.scalar('loss', 1.0),
    )


def _train(tmp_path, data_dir, jump, last_step, steps_per_execution=1, **settings):
    run_length = RunLength(10, 100, last_step, steps_per_execution)
    with open_run(str(tmp_path), job(data_dir).record) as run:
        return run_steps(_step(jump, 1.0), fake_job(run_length, **settings), run)


def _first_past(steps, every):
    """Return the first of these steps at or after each multiple of the interval."""
    return sorted(
        {
            min(step for step in steps if step >= multiple)
            for multiple in range(every, steps[-1] + 1, every)
        }
    )


@pytest.mark.parametrize('jump, log, checkpoint', [(7, 10, 20), (25, 10, 30)])
def test_lines_and_checkpoints_when_the_step_jumps(
    tmp_path, data_dir, capsys, jump, log, checkpoint
):
    steps = list(range(jump, 50 + jump, jump))
    settings = dict(log_frequency=log, save_checkpoint_steps=checkpoint, max_to_keep=0)
    assert _train(tmp_path, data_dir, jump, 50, **settings) is None
    expected = _first_past(steps, log)
    assert [int(step) for step in messages.log_steps(capsys.readouterr().out)] == expected + [
        steps[-1]
    ] * (expected[-1] != steps[-1])
    saved = {
        int(path[: -len('.index')].rpartition('-')[2])
        for path in glob.glob(str(tmp_path / '*.index'))
    }
    assert saved == set(_first_past(steps, checkpoint)) | {steps[-1]}


@pytest.mark.parametrize('jump, every', [(7, 10), (10, 15)])
def test_summaries_of_runs_of_several_steps(tmp_path, data_dir, jump, every):
    """As in average mode: the last step of a session run is known before it.

    The first and the last session run have summaries too.
    """
    steps = list(range(jump, 200 + jump, jump))
    _train(tmp_path, data_dir, jump, 200, steps_per_execution=jump, save_summaries_steps=every)
    written = [(step, value) for step, tag, value in events.scalars(tmp_path) if tag == 'epoch']
    assert [step for step, _ in written] == sorted(
        {steps[0], *_first_past(steps, every), steps[-1]}
    )
    assert [value for _, value in written] == pytest.approx([step / 10 for step, _ in written])


def test_summaries_when_others_make_steps(tmp_path, data_dir):
    """The steps of others are unknown before a session run: a summary can be one run late."""
    _train(tmp_path, data_dir, 7, 100, save_summaries_steps=10)
    assert [step for step, tag, _ in events.scalars(tmp_path) if tag == 'loss'] == [
        7,
        21,
        42,
        56,
        70,
        91,
        105,
    ]


def test_others_have_diverged(tmp_path, data_dir):
    """The chief joins after their last step: it only saves, and its first values are not finite."""
    tf.get_variable('weights', initializer=float('nan'))
    collections = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP]
    tf.get_variable('global_step', initializer=np.int64(100), collections=collections)
    with open_run(str(tmp_path), job(data_dir).record) as run, messages.raises(
        '^Training diverged. Not finite: variables: weights. Lower .* checkpoint: none yet$'
    ):
        run_steps(_step(1, 1.0), fake_job(RunLength(10, 100, 100)), run)
    assert glob.glob(str(tmp_path / '*.index')) == []


WORKER_JOB = fake_job(RunLength(10, 100, 6), log_frequency=2)


def test_a_worker_without_a_run_writes_nothing(tmp_path, monkeypatch, capsys):
    """It logs the mean loss of the towers."""
    monkeypatch.chdir(tmp_path)
    run_steps(_step(1, 1.0, 4.0), WORKER_JOB, None)
    assert os.listdir(str(tmp_path)) == []
    output = capsys.readouterr().out
    assert [line[:2] for line in messages.log_lines(output)] == [(step, '2.50') for step in '246']
    assert len(output.splitlines()) == 4


def test_a_worker_without_a_run_comes_too_late(capsys):
    assert not training.is_complete(WORKER_JOB, 5, None)
    assert capsys.readouterr().out == ''
    assert training.is_complete(WORKER_JOB, 6, None)
    assert capsys.readouterr().out == messages.nothing_to_do(6)


def test_a_worker_without_a_run_diverges():
    """Only the chief knows the checkpoints."""
    complaint = 'at step 1 .*losses of towers: 1; .* checkpoint: the one of the chief$'
    with messages.raises(complaint):
        run_steps(_step(1, 1.0, float('nan')), WORKER_JOB, None)
