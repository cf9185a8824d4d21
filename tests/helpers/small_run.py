"""Training run on a graph of one variable with known values."""

import contextlib
import dataclasses
import os
from types import SimpleNamespace

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu, optimizer, training
from cifar10.config import CLASSIC, RunLength, RunSettings
from cifar10.data import dataset
from cifar10.data.dataset import Split
from cifar10.hooks import checkpoint_hooks, profiler_hook, session_hooks
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.system import signals

HPARAMS = dataclasses.replace(
    CLASSIC, initial_learning_rate=0.25, moving_average_decay=0.3, num_epochs_per_decay=3.0
)
RUN_LENGTH = RunLength(
    examples_per_step=10, examples_per_epoch=100
)  # the learning rate decays every 30 steps


def job(data_dir, hparams=HPARAMS, num_towers=2):
    """Return the Job of a run directory."""
    return training.Job(dataset.read(data_dir), hparams, [f'/cpu:{i}' for i in range(num_towers)])


def fake_job(run_length, **settings):
    """Return a stand-in for the Job of `run_steps`.

    It has no data, and no evaluation, because the variables are not those of the network.
    """
    return SimpleNamespace(
        dataset=dataset.Dataset('', Split(()), Split(())),
        run_length=run_length,
        session_config=tf.ConfigProto(),
        settings=RunSettings(**dict(settings, eval_every=0)),
    )


def run_steps(step, job, run, settings=None):
    """Train as cifar10_distributed_train.py does, with the training.Step of the default graph.

    Args:
      step: a training.Step.
      job: a `fake_job`.
      run: a Run; None for a worker that is not the chief.
      settings: a training.SessionSettings, or None.

    Returns:
      The signal that has stopped the run, or None.
    """
    saver = tf.train.Saver(max_to_keep=job.settings.max_to_keep, save_relative_paths=True)
    stop_request = signals.StopRequest()
    nan_hook = checkpoint_hooks.NanHook(step, run)
    hooks = [
        session_hooks.WorkerStopAtStepHook(step, job.run_length.last_step),
        session_hooks.QueueFillHook(stop_request),
        nan_hook,
        session_hooks.LoggingHook(
            step, run.record_log_line if run else bool, job.run_length, job.settings.log_frequency
        ),
    ]
    if run:
        hooks += [
            checkpoint_hooks.DirectoryHook(run),
            session_hooks.SummaryHook(step, run, job.run_length, job.settings.save_summaries_steps),
            checkpoint_hooks.CheckpointSaverHook(
                step, run, saver, job.settings.save_checkpoint_steps, nan_hook
            ),
            profiler_hook.ProfilerHook(step, run, job.run_length, job.settings.profile_step),
            session_hooks.OutputErrorsHook(run),
        ]
    hooks.append(session_hooks.StopOnSignalHook(stop_request))
    with stop_request if run else contextlib.nullcontext(), training.session(
        job, run, saver, hooks, settings
    ) as session:
        while not session.should_stop():
            session.run(step.train_op)
    if run:
        training.end_run(run, job.run_length.last_step, stop_request.received_signal)
    return stop_request.received_signal


def train(
    train_dir,
    data_dir,
    max_steps,
    fresh=False,
    nan_step=None,
    finite_part=None,
    after_step=None,
    hparams=HPARAMS,
    initial=None,
    **settings,
):
    """Train a run in which each step halves each variable.

    Args:
      max_steps: the last step, or None for the end of `hparams`.
      nan_step: the step in which loss and gradient of the second tower become NaN.
      finite_part: 'loss' or 'gradient' if only the other becomes NaN.
      after_step: called with the step after each update.
      initial: initial values by name; None sets `weights` to (8, -4).
      settings: fields of RunSettings.
    """
    run_length = RUN_LENGTH._replace(
        last_step=max_steps or optimizer.num_steps(RUN_LENGTH, hparams)
    )
    record = dict(job(data_dir, hparams).record, last_step=run_length.last_step)
    fake = fake_job(run_length, **settings)
    with open_run(str(train_dir), record, fresh) as run, tf.Graph().as_default():
        if training.is_complete(fake, run.saved_step, run):
            return
        step = _build(
            run_length,
            hparams,
            initial or {'weights': (8, -4)},
            -1 if nan_step is None else nan_step - 1,
            finite_part,
            after_step,
        )
        run_steps(step, fake, run)


def _build(run_length, hparams, initial, nan_global_step, finite_part, after_step):
    variables = [
        tf.get_variable(name, initializer=np.array(value, np.float32))
        for name, value in initial.items()
    ]
    global_step = tf.train.get_or_create_global_step()
    rate = optimizer.learning_rate(global_step, run_length, hparams)
    loss = tf.add_n([tf.reduce_sum(tf.square(variable)) for variable in variables])
    nan_loss = loss * tf.where(tf.equal(global_step, nan_global_step), np.nan, 1.0)
    opt = optimizer.create(rate, hparams)
    losses, tower_grads = (
        [loss, nan_loss],
        [opt.compute_gradients(loss), opt.compute_gradients(nan_loss)],
    )
    if finite_part == 'loss':
        losses = [loss, loss]
    if finite_part == 'gradient':
        tower_grads = tower_grads[:1]
    # also compute a loss without a gradient before the update
    with tf.control_dependencies(losses):
        train_op = optimizer.train_op(
            opt, multi_gpu.average_gradients(tower_grads), global_step, run_length, hparams
        )
    summary_op = tf.summary.merge(
        [tf.summary.scalar('loss', loss), tf.summary.scalar('rate', rate)]
    )
    if after_step:
        with tf.control_dependencies([train_op]):
            train_op = tf.py_func(after_step, [tf.identity(global_step)], [])
    return training.Step(train_op, losses, tower_grads, rate, summary_op)


def numpy_run(steps):
    """Return weights and averages after `steps` steps, and the next learning rate."""
    weights = average = np.array([8.0, -4.0])
    for step in range(1, steps + 1):
        weights = weights - 0.25 * 0.1 ** ((step - 1) * 10 // 300) * 2 * weights
        decay = min(0.3, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * weights
    return weights, average, 0.25 * 0.1 ** (steps * 10 // 300)


def assert_saved(train_dir, step):
    """Assert that the checkpoint of this step holds the values of `numpy_run`."""
    saved = checkpoint.read(os.path.join(str(train_dir), f'model.ckpt-{step}'))
    weights, average, _ = numpy_run(step)
    assert saved.step == saved.values['global_step'] == step
    np.testing.assert_allclose(saved.values['weights'], weights, rtol=1e-5)
    np.testing.assert_allclose(saved.values['weights/ExponentialMovingAverage'], average, rtol=1e-5)
