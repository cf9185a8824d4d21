"""Evaluation by the trainer."""

import dataclasses
import os
import re
import signal

import pytest

from cifar10 import hooks, training
from cifar10.config import CLASSIC, RunSettings
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.scripts import cifar10_train
from tests.helpers import checkpoints, events, messages

PRECISION = re.compile(messages.precision(50) + r'\nThe evaluation took \d+\.\d s$')


def _train(train_dir, data_dir, max_steps, **settings):
    job = training.create_job(
        dataset.read(data_dir),
        dataclasses.replace(CLASSIC, batch_size=8),
        settings=RunSettings(max_steps, save_checkpoint_steps=1, log_frequency=1, **settings),
    )
    with open_run(str(train_dir), training.record(job)) as run:
        cifar10_train.train(job, run)


def _expected(train_dir, data_dir, step):
    """Return the number of correct classifications of the moving averages, by NumPy."""
    suffix = '/ExponentialMovingAverage'
    values = checkpoint.read(os.path.join(str(train_dir), f'model.ckpt-{step}')).values
    averages = {
        name[: -len(suffix)]: value for name, value in values.items() if name.endswith(suffix)
    }
    return checkpoints.expected_result(data_dir, averages)[0]


def test_what_a_signal_has_ended_is_evaluated(tmp_path, data_dir, capsys, monkeypatch):
    """The last step is evaluated once, also if --eval_every evaluates it."""
    log = hooks.LoggingHook.after_run

    def send(hook, run_context, run_values):
        log(hook, run_context, run_values)
        if run_values.results['step'] == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(hooks.LoggingHook, 'after_run', send)
    _train(tmp_path, data_dir, 1000, eval_every=3)
    step = checkpoint.read_latest(str(tmp_path)).step
    assert step < 6 and [found[1:] for found in PRECISION.findall(capsys.readouterr().out)] == [
        (str(_expected(tmp_path, data_dir, step)), str(step))
    ]


def test_test_images_that_are_damaged_are_told_at_the_start(tmp_path, own_data_dir, capsys):
    (path,) = dataset.read(own_data_dir).test.paths
    os.truncate(path, 100)
    with messages.raises('test_batch.bin has an incomplete record'):
        _train(tmp_path / 'run', own_data_dir, 2)
    assert not messages.log_lines(capsys.readouterr().out)


def test_what_is_evaluated(tmp_path, data_dir, capsys):
    """By NumPy."""
    _train(tmp_path, data_dir, 4, eval_every=1)
    output, steps = capsys.readouterr().out, range(1, 5)
    correct = [_expected(tmp_path, data_dir, step) for step in steps]
    assert PRECISION.findall(output) == [
        (f'{n / 50:.3f}', str(n), str(step)) for n, step in zip(correct, steps)
    ]
    assert [
        (step, value) for step, tag, value in events.scalars(tmp_path) if tag == 'Precision @ 1'
    ] == [(step, pytest.approx(n / 50)) for n, step in zip(correct, steps)]
    assert output.index(f'Saved {tmp_path / "model.ckpt-4"}') < output.rindex('precision @ 1')
