"""Training run on a graph of one variable with known values."""

import dataclasses
import os
from types import SimpleNamespace

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu, optimizer, training
from cifar10.config import CLASSIC, RunLength, RunSettings
from cifar10.data import dataset
from cifar10.data.dataset import Split
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.scripts.cifar10_multi_gpu_train import session_hooks
from cifar10.system import signals
from tests.helpers import events

HPARAMS = dataclasses.replace(
    CLASSIC, initial_learning_rate=0.25, moving_average_decay=0.3, num_epochs_per_decay=3.0
)
RUN_LENGTH = RunLength(
    examples_per_step=10, examples_per_epoch=100
)  # the learning rate decays every 30 steps


def job(data_dir, hparams=HPARAMS, num_towers=2):
    """Return the Job of a run directory."""
    return training.create_job(
        dataset.read(data_dir), hparams, [f'/cpu:{i}' for i in range(num_towers)]
    )


def fake_job(run_length, **settings):
    """Return a stand-in for the Job of `train`.

    It has no data, because the variables are not those of the network.
    """
    return SimpleNamespace(
        dataset=dataset.Dataset('', Split(()), Split(())),
        run_length=run_length,
        session_config=tf.ConfigProto(),
        settings=RunSettings(**settings),
    )


def run_steps(step, job, run):
    """Train as the trainers do, with the training.Step of the default graph.

    Args:
      step: a training.Step.
      job: a `fake_job`.
      run: a Run.
    """
    saver, stop_request = tf.train.Saver(save_relative_paths=True), signals.StopRequest()
    creator = training.session_creator(job, run, saver)
    writer = tf.summary.FileWriterCache.get(run.directory)
    hooks = session_hooks(job, run, step, saver, writer, stop_request)
    with stop_request, tf.train.MonitoredSession(creator, hooks) as session:
        while not session.should_stop():
            session.run(step.train_op)


def train(
    train_dir,
    data_dir,
    max_steps,
    fresh=False,
    bad_step=None,
    bad_value=np.nan,
    finite_part=None,
    after_step=None,
    hparams=HPARAMS,
    initial=None,
    **settings,
):
    """Train a run in which each step halves each variable.

    Args:
      max_steps: the last step, or None for the end of `hparams`.
      bad_step: the step in which loss and gradient of the second tower become `bad_value`.
      finite_part: 'loss' or 'gradient' if only the other becomes `bad_value`.
      after_step: called with the step after each update.
      initial: initial values by name; None sets `weights` to (8, -4).
      settings: fields of RunSettings.
    """
    run_length = RUN_LENGTH._replace(last_step=max_steps or RUN_LENGTH.num_steps(hparams))
    record = dataclasses.replace(
        training.record(job(data_dir, hparams)), last_step=run_length.last_step
    )
    fake = fake_job(run_length, **settings)
    with open_run(str(train_dir), record, fresh) as run, tf.Graph().as_default():
        for note in run.notes:
            print(note)
        if run.saved_step >= run_length.last_step:
            return
        step = _build(
            run_length,
            hparams,
            initial or {'weights': (8, -4)},
            -1 if bad_step is None else bad_step - 1,
            bad_value,
            finite_part,
            after_step,
        )
        try:
            run_steps(step, fake, run)
        finally:
            events.number_files(train_dir)


def _build(run_length, hparams, initial, bad_global_step, bad_value, finite_part, after_step):
    variables = [
        tf.get_variable(name, initializer=np.array(value, np.float32))
        for name, value in initial.items()
    ]
    global_step = tf.train.get_or_create_global_step()
    rate = optimizer.learning_rate(global_step, run_length, hparams)
    loss = tf.add_n([tf.reduce_sum(tf.square(variable)) for variable in variables])
    bad_loss = loss * tf.where(tf.equal(global_step, bad_global_step), bad_value, 1.0)
    opt = optimizer.create(rate, hparams)
    losses, tower_grads = (
        [loss, bad_loss],
        [opt.compute_gradients(loss), opt.compute_gradients(bad_loss)],
    )
    if finite_part == 'loss':
        losses = [loss, loss]
    if finite_part == 'gradient':
        tower_grads = tower_grads[:1]
    gradients = multi_gpu.average_gradients(tower_grads)
    # also compute a loss without a gradient before the update
    with tf.control_dependencies(losses):
        train_op = optimizer.train_op(opt, gradients, global_step, run_length, hparams)
    tf.summary.scalar('loss', loss)
    tf.summary.scalar('rate', rate)
    if after_step:
        with tf.control_dependencies([train_op]):
            train_op = tf.py_func(after_step, [tf.identity(global_step)], [])
    training.add_step_tensors(train_op, losses, gradients)
    summary_op = tf.summary.merge_all()
    return training.Step(None, train_op, summary_op)


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
