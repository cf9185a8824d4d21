"""Session of a worker in a cluster: others make steps, or save."""

import glob
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import hooks, training
from cifar10.config import RunLength
from cifar10.distributed.stop_hook import StopAtStepHook
from cifar10.runs.run import open_run
from tests.helpers import events, messages
from tests.helpers.small_run import fake_job, job


def _step(jump, *losses):
    """Return a step whose train op counts `jump` steps."""
    return training.Step(
        tf.assign_add(tf.train.get_or_create_global_step(), jump),
        [tf.constant(loss) for loss in losses],
        [(tf.constant(0.0), None)],
        tf.summary.scalar('loss', 1.0),
    )


class _LocalSteps(tf.train.SessionRunHook):
    """Hook that makes steps before the train op, as in average mode."""

    def __init__(self, count):
        self._local_op = tf.assign_add(tf.train.get_global_step(), count)

    def before_run(self, run_context):
        run_context.session.run(self._local_op)


def _run_steps(step, job, run=None):
    """Train as Worker.train does; return the number of session runs."""
    saver, runs = tf.train.Saver(max_to_keep=0), 0
    local_steps = _LocalSteps(job.run_length.steps_per_execution - 1)
    stop = StopAtStepHook(step, job.run_length.last_step)
    outputs = (
        training.output_hooks(job, run, step, saver)
        if run
        else [hooks.LoggingHook(step, job.run_length, job.settings)]
    )
    with training.translate_divergence(run), tf.train.SingularMonitoredSession(
        [local_steps, stop, *training.nan_hooks(step), *outputs]
    ) as session:
        while not session.should_stop():
            session.run(step.train_op)
            runs += 1
    return runs


def _train(tmp_path, data_dir, jump, last_step, steps_per_execution=1, **settings):
    run_length = RunLength(10, 100, last_step, steps_per_execution=steps_per_execution)
    with open_run(str(tmp_path), job(data_dir).record) as run:
        _run_steps(
            _step(jump - steps_per_execution + 1, 1.0), fake_job(run_length, **settings), run
        )


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
    """A checkpoint can be one session run late, because TensorFlow reads the step before it."""
    steps = list(range(jump, 50 + jump, jump))
    _train(tmp_path, data_dir, jump, 50, log_frequency=log, save_checkpoint_steps=checkpoint)
    expected = _first_past(steps, log)
    assert [int(step) for step in messages.log_steps(capsys.readouterr().out)] == expected + [
        steps[-1]
    ] * (expected[-1] != steps[-1])
    saved = sorted(
        int(path[: -len('.index')].rpartition('-')[2])
        for path in glob.glob(str(tmp_path / 'model.*.index'))
    )
    assert set(saved) <= {0, *steps} and (saved[0], saved[-1]) == (0, steps[-1])
    intervals = np.diff(saved)
    assert all(intervals[:-1] >= checkpoint) and all(intervals < checkpoint + 2 * jump)


@pytest.mark.parametrize(
    'jump, steps_per_execution, every', [(7, 7, 10), (10, 10, 15), (3, 3, 2), (7, 1, 10)]
)
def test_summaries_when_the_step_jumps(tmp_path, data_dir, jump, steps_per_execution, every):
    """As in average mode, or because others make steps: then a summary can be two runs late.

    Loss and epoch are written at the same steps.
    """
    _train(tmp_path, data_dir, jump, 200, steps_per_execution, save_summaries_steps=every)
    written = events.scalars(tmp_path)
    steps = [step for step, tag, _ in written if tag == 'loss']
    epochs = [(step, value) for step, tag, value in written if tag == 'epoch']
    assert [step for step, _ in epochs] == steps and steps[0] == jump
    assert [value for _, value in epochs] == pytest.approx([step / 10 for step in steps])
    intervals, is_alone = np.diff(steps), steps_per_execution == jump
    # TensorFlow reads the step during the session run, so it may know the step before or after it.
    assert all(intervals[:-1] >= every - 1)
    assert all(intervals < every + (1 if is_alone else 3) * jump)
    assert not is_alone or steps[-1] >= 200


def test_others_have_diverged(tmp_path, data_dir):
    """The chief joins after their last step: it would only save."""
    tf.get_variable('weights', initializer=float('nan'))
    collections = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP]
    tf.get_variable('global_step', initializer=np.int64(100), collections=collections)
    with open_run(str(tmp_path), job(data_dir).record) as run, messages.raises(
        '^Training diverged at step 100: not finite are weights. .* checkpoint is none yet: lower '
    ):
        _run_steps(_step(1, 1.0), fake_job(RunLength(10, 100, 100)), run)
    assert glob.glob(str(tmp_path / '*.index')) == []


WORKER_JOB = fake_job(RunLength(10, 100, 6), log_frequency=2)


def test_a_worker_without_a_run_writes_nothing(tmp_path, monkeypatch, capsys):
    """It logs the mean loss of the towers."""
    monkeypatch.chdir(tmp_path)
    _run_steps(_step(1, 1.0, 4.0), WORKER_JOB)
    assert os.listdir(str(tmp_path)) == []
    output = capsys.readouterr().out
    assert [line[:2] for line in messages.log_lines(output)] == [(step, '2.50') for step in '0246']
    assert len(output.splitlines()) == 5


def test_a_worker_without_a_run_diverges():
    """Only the chief knows the checkpoints."""
    complaint = '^Training diverged because the loss .* checkpoint is the one of the chief: lower '
    with messages.raises(complaint):
        _run_steps(_step(1, 1.0, float('nan')), WORKER_JOB)


@pytest.mark.parametrize(
    'first_step, jump, last_step, runs',
    [(0, 1, 5, 5), (0, 7, 21, 3), (0, 7, 22, 4), (5, 1, 5, 0), (5, 1, 6, 1)],
)
def test_the_end_of_a_worker(first_step, jump, last_step, runs):
    """It stops after the last step, even if others have already made that step."""
    collections = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP]
    tf.get_variable('global_step', initializer=np.int64(first_step), collections=collections)
    assert _run_steps(_step(jump, 1.0), fake_job(RunLength(10, 100, last_step))) == runs
