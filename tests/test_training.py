"""Session loop and its hooks."""

import dataclasses
import glob
import os
import signal

import numpy as np
import pytest
from tensorboard.plugins.hparams import metadata
import tensorflow.compat.v1 as tf

from cifar10 import hooks, training
from cifar10.config import CLASSIC, RECIPES, RunLength, RunSettings
from cifar10.data import dataset, dataset_writer
from cifar10.errors import UserError
from cifar10.runs import checkpoint, run_record
from cifar10.training import create_job
from tests.helpers import data_sets, events, messages
from tests.helpers.small_run import HPARAMS, assert_saved, numpy_run, train


def test_steps_are_numbers_of_updates(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 5, log_frequency=2, save_summaries_steps=2, save_checkpoint_steps=3)
    output = capsys.readouterr().out
    # The logged loss belongs to the gradient of the update: its weights have one update less.
    # Step 0 has the loss of the initial weights.
    losses = [f'{(numpy_run(step)[0] ** 2).sum():.2f}' for step in (0, 1, 3, 4)]
    assert [line[:2] for line in messages.log_lines(output)] == list(zip('0245', losses))
    assert sorted(os.path.basename(path) for path in glob.glob(str(tmp_path / '*.index'))) == [
        'model.ckpt-0.index',
        'model.ckpt-3.index',
        'model.ckpt-5.index',
    ]
    assert_saved(tmp_path, 0)
    assert_saved(tmp_path, 3)
    assert_saved(tmp_path, 5)
    assert output.endswith(f'Saved {tmp_path / "model.ckpt-5"}\n')
    written = events.scalars(tmp_path)
    assert [(step, value) for step, tag, value in written if tag == 'loss'] == [
        (step, pytest.approx((numpy_run(step - 1)[0] ** 2).sum(), rel=1e-5)) for step in (1, 3, 5)
    ]
    rates = {
        tag: [value for _, other, value in written if other == tag]
        for tag in ('examples_per_sec', 'sec_per_step')
    }
    np.testing.assert_allclose(np.multiply(*rates.values()), [10] * 3, rtol=1e-5)
    assert min(rates['sec_per_step']) > 0
    assert [(step, value) for step, tag, value in written if tag == 'epoch'] == [
        (step, np.float32(step / 10)) for step in (1, 3, 5)
    ]


@pytest.mark.parametrize('recipe', sorted(RECIPES))
def test_resume_in_the_middle(tmp_path, data_dir, recipe):
    """40 steps equal 17 and 23 steps, also for a matrix that Muon makes orthogonal."""
    hparams = dataclasses.replace(
        RECIPES[recipe], epochs=4.0, warmup_epochs=1.0, num_epochs_per_decay=3.0
    )
    # 0.02 of 40 steps is less than a step: the averages would equal the weights
    if hparams.moving_average_fraction:
        hparams = dataclasses.replace(hparams, moving_average_fraction=0.2)
    initial = {
        'local3/weights': np.random.RandomState(0).randn(100, 64),
        'local3/biases': np.ones(64),
        'softmax_linear/weights': np.random.RandomState(1).randn(64, 10),
    }
    train(tmp_path / 'once', data_dir, None, hparams=hparams, initial=initial)
    for max_steps in (17, None):
        train(tmp_path / 'twice', data_dir, max_steps, hparams=hparams, initial=initial)
    once, twice = [
        checkpoint.read(str(tmp_path / name / 'model.ckpt-40')).values for name in ('once', 'twice')
    ]
    assert once.keys() == twice.keys() and len(once) == (7 if recipe == 'classic' else 10)
    assert all(np.abs(once[name] - value).max() > 1e-3 for name, value in initial.items())
    for name, value in once.items():
        np.testing.assert_array_equal(twice[name], value, err_msg=name)


def test_only_the_initial_weights_are_saved_without_a_step(tmp_path, data_dir, capsys, monkeypatch):
    monkeypatch.setattr(
        hooks.QueueFillHook,
        'after_create_session',
        lambda *unused: os.kill(os.getpid(), signal.SIGINT),
    )
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, data_dir, 3)
    assert capsys.readouterr().out == ''
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-0')


def test_a_signal_just_before_the_first_step(tmp_path, data_dir, monkeypatch, capsys):
    """The exit status promises a checkpoint, so the step is made and saved."""
    before_run = hooks.StopOnSignalHook.before_run

    def then_signal(hook, run_context):
        before_run(hook, run_context)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(hooks.StopOnSignalHook, 'before_run', then_signal)
    train(tmp_path, data_dir, 3)
    assert 'SIGINT: stopping' in capsys.readouterr().out
    assert_saved(tmp_path, 1)


@pytest.mark.parametrize('finite_part', [None, 'loss', 'gradient'])
@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_a_loss_or_gradient_that_is_not_finite(tmp_path, data_dir, capsys, finite_part, value):
    with pytest.raises(UserError) as error:
        train(
            tmp_path,
            data_dir,
            50,
            bad_step=35,
            bad_value=value,
            finite_part=finite_part,
            log_frequency=1,
            save_checkpoint_steps=20,
            save_summaries_steps=5,
        )
    assert str(error.value) == (
        'Training diverged because the loss or a gradient is not finite. '
        f'The last good checkpoint is {tmp_path / "model.ckpt-20"}: '
        'lower --initial_learning_rate (with Muon, also --matrix_learning_rate); if it diverges again, set --fresh'
    )
    assert messages.log_steps(capsys.readouterr().out)[-1] == '34'
    assert_saved(tmp_path, 20)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-20')


def test_variables_that_are_not_finite(tmp_path, data_dir):
    """The first update overflows; the loss shows it only in the second step."""
    complaint = (
        'Training diverged at step 1: not finite are weights, weights/ExponentialMovingAverage. '
        f'The last good checkpoint is {tmp_path}/model.ckpt-0: lower '
    )
    with messages.raises(complaint):
        train(
            tmp_path,
            data_dir,
            50,
            hparams=dataclasses.replace(HPARAMS, initial_learning_rate=1e38),
            save_checkpoint_steps=1,
        )
    assert_saved(tmp_path, 0)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-0')


def test_a_directory_with_the_initial_weights_only_is_a_new_run(tmp_path, data_dir, capsys):
    """As after a kill before the first checkpoint: other flags are accepted."""
    train(tmp_path, data_dir, 2)
    for path in glob.glob(str(tmp_path / 'model.ckpt-2.*')):
        os.remove(path)
    hparams = dataclasses.replace(HPARAMS, optimizer='momentum')
    train(tmp_path, data_dir, 2, hparams=hparams)
    assert 'esuming' not in capsys.readouterr().out
    assert checkpoint.read_latest(str(tmp_path)).step == 2
    assert run_record.read(str(tmp_path)).hparams == hparams


def test_the_average_of_the_loss(tmp_path, data_dir):
    """It is in TensorBoard, and in no checkpoint."""
    train(tmp_path, data_dir, 4, save_summaries_steps=1)
    losses = [(numpy_run(step)[0] ** 2).sum() for step in range(4)]
    expected = [np.average(losses[:n], weights=0.9 ** np.arange(n)[::-1]) for n in range(1, 5)]
    found = [v for _, tag, v in events.scalars(tmp_path) if tag == 'total_loss/average']
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert set(checkpoint.read_latest(str(tmp_path)).values) == {
        'weights',
        'weights/ExponentialMovingAverage',
        'global_step',
    }


def test_a_signal_saves_and_ends_the_run(tmp_path, data_dir, capsys):
    """For TensorBoard, only a complete run has ended: see test_trainers.py."""
    before = signal.getsignal(signal.SIGTERM)
    train(
        tmp_path,
        data_dir,
        1000000,
        after_step=lambda step: os.kill(os.getpid(), signal.SIGTERM) if step == 7 else None,
    )
    step = checkpoint.read_latest(str(tmp_path)).step
    assert 7 <= step <= 8
    assert_saved(tmp_path, step)
    assert 'SIGTERM: stopping' in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == before
    tags = [value.tag for event in events.read(tmp_path) for value in event.summary.value]
    assert 'loss' in tags and metadata.SESSION_END_INFO_TAG not in tags


@pytest.mark.parametrize(
    'max_steps, epochs, last_step',
    [(1000, np.inf, 1000), (1000, 256.0, 1000), (200000, 256.0, 50000), (7, 1e-9, 1)],
)
def test_the_run_length_of_a_job(max_steps, epochs, last_step):
    job = create_job(
        dataset.WITHOUT_FILES,
        dataclasses.replace(CLASSIC, epochs=epochs),
        ['/cpu:0', '/cpu:1'],
        RunSettings(max_steps=max_steps),
    )
    assert job.run_length == RunLength(256, 50000, last_step, batches_per_step=2)
    assert create_job(job.dataset).run_length == RunLength(128, 50000, 1000000)
    assert create_job(job.dataset).settings == RunSettings()


def test_the_number_of_examples(tmp_path, own_data_dir):
    assert create_job(dataset.read(own_data_dir)).num_examples == 300
    whole = dataset.read(data_sets.write(tmp_path / 'whole'))
    dataset_writer.hold_out(whole, str(tmp_path / 'rest'), 50, 0)
    assert (
        create_job(dataset.read(str(tmp_path / 'rest'))).num_examples == 250
    )  # in its dataset.json


def _random_numbers(seed, first_step, worker=0, deterministic=False):
    with tf.Graph().as_default(), tf.Session() as session:
        training.set_seed(RunSettings(seed=seed, deterministic=deterministic), first_step, worker)
        return session.run(tf.random_uniform([3])).tolist()


def test_the_seed():
    """A seed repeats the random numbers; without one they differ.

    Two workers that start at different steps do not draw the same numbers. TensorFlow takes seeds
    modulo 2^31 - 1. A deterministic run keeps its seed.
    """
    assert _random_numbers(3, 10, 2) == _random_numbers(3, 10, 2)
    assert _random_numbers(3, 0, 0, True) == _random_numbers(3, 7, 0, True)
    steps = (0, 1, 2, 4, 254)
    given = [(3, first_step, worker) for worker in (0, 1, 2, 127) for first_step in steps]
    given += [(1000, 0), (None, 0), (None, 0), (2000, 7, 0, True), (2000, 7, 1, True)]
    assert len({tuple(_random_numbers(*each)) for each in given}) == len(given)
