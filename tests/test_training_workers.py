"""Hooks of the workers of a cluster: others make steps, or save."""

import glob
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.config import RunLength
from cifar10.runs.run import open_run
from cifar10.scripts.cifar10_multi_gpu_train import session_hooks
from cifar10.system import signals
from tests.helpers import messages
from tests.helpers.small_run import fake_job, job


def _step(jump, *losses):
    """Return a step whose train op counts `jump` steps: others make steps, too."""
    train_op = tf.assign_add(tf.train.get_or_create_global_step(), jump)
    losses = [tf.constant(loss) for loss in losses]
    training.add_step_tensors(train_op, losses, [(tf.constant(0.0), None)])
    return training.Step(None, train_op, tf.summary.scalar('loss', 1.0))


def _run_steps(step, job, run=None):
    """Train with the hooks of a worker; return the number of session runs."""
    runs, saver = 0, tf.train.Saver(max_to_keep=0)
    writer = run and tf.summary.FileWriterCache.get(run.directory)
    hooks = session_hooks(job, run, step, saver, writer, signals.StopRequest())
    with tf.train.SingularMonitoredSession(hooks) as session:
        while not session.should_stop():
            session.run(step.train_op)
            runs += 1
    return runs


def _train(tmp_path, data_dir, jump, last_step, **settings):
    run_length = RunLength(10, 100, last_step)
    with open_run(str(tmp_path), training.record(job(data_dir))) as run:
        run.plan = []
        _run_steps(_step(jump, 1.0), fake_job(run_length, **settings), run)


def _first_past(steps, every):
    """Return the first of these steps at or after each multiple of the interval."""
    multiples = range(every, steps[-1] + 1, every)
    return sorted({min(step for step in steps if step >= multiple) for multiple in multiples})


@pytest.mark.parametrize('jump, last, log, checkpoint', [(7, 50, 10, 20), (25, 51, 10, 30)])
def test_lines_and_checkpoints_when_the_step_jumps(
    tmp_path, data_dir, capsys, jump, last, log, checkpoint
):
    """A checkpoint can be one session run late, because TensorFlow reads the step before it."""
    steps = list(range(jump, last + jump, jump))
    _train(tmp_path, data_dir, jump, last, log_frequency=log, save_checkpoint_steps=checkpoint)
    expected = _first_past(steps, log)
    expected += [steps[-1]] * (expected[-1] != steps[-1])
    assert [int(step) for step in messages.log_steps(capsys.readouterr().out)] == expected
    saved = sorted(
        int(path[: -len('.index')].rpartition('-')[2])
        for path in glob.glob(str(tmp_path / 'model.*.index'))
    )
    assert set(saved) <= {0, *steps} and (saved[0], saved[-1]) == (0, steps[-1])
    intervals = np.diff(saved)
    assert all(intervals[:-1] >= checkpoint) and all(intervals < checkpoint + 2 * jump)


WORKER_JOB = fake_job(RunLength(10, 100, 6), log_frequency=2)


def test_a_worker_without_a_run_writes_nothing(tmp_path, monkeypatch, capsys):
    """It logs the mean loss of the towers."""
    monkeypatch.chdir(tmp_path)
    _run_steps(_step(1, 1.0, 4.0), WORKER_JOB)
    assert os.listdir(str(tmp_path)) == []
    lines = messages.log_lines(capsys.readouterr().out)
    assert [line[:2] for line in lines] == [(step, '2.50') for step in '0246']


def test_a_worker_without_a_run_diverges():
    """Only the chief knows the checkpoints."""
    complaint = '^Training diverged because the loss .* checkpoint is that of the chief: lower '
    with messages.raises(complaint):
        _run_steps(_step(1, 1.0, float('nan')), WORKER_JOB)


@pytest.mark.parametrize(
    'first_step, jump, last_step, runs', [(0, 1, 5, 5), (0, 7, 21, 3), (0, 7, 22, 4), (5, 1, 6, 1)]
)
def test_the_end_of_a_worker(first_step, jump, last_step, runs):
    """It stops after the last step, even if others make that step: then at most one run later."""
    collections = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP]
    tf.get_variable('global_step', initializer=np.int64(first_step), collections=collections)
    found = _run_steps(_step(jump, 1.0), fake_job(RunLength(10, 100, last_step)))
    assert found in (runs, runs + (jump > 1))
