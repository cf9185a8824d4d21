"""A deterministic run that is stopped and resumed is the run that was never stopped."""

import dataclasses
import os
import signal

import pytest

from cifar10 import hooks, training
from cifar10.cli import training_job
from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.report import event_files
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.scripts import cifar10_multi_gpu_train, cifar10_train
from tests.helpers import events, messages

LAST_STEP = 9
STOPS = [1, 3, 4, 7, 8]


SETTINGS = RunSettings(
    LAST_STEP,
    seed=1,
    deterministic=True,
    save_summaries_steps=1,
    log_frequency=1,
    save_checkpoint_steps=4,
    eval_every=3,
)


def _train(data_dir, train_dir, settings, hparams=CLASSIC, num_devices=1, **placement):
    """Train on one device with cifar10_train.py, on several with cifar10_multi_gpu_train.py."""
    hparams = dataclasses.replace(hparams, batch_size=8)
    devices = [f'/cpu:{i}' for i in range(num_devices)]
    job = training.create_job(dataset.read(data_dir), hparams, devices, settings, **placement)
    script = cifar10_train if num_devices == 1 else cifar10_multi_gpu_train
    with open_run(str(train_dir), training.record(job)) as run:
        script.train(job, run)
    events.number_files(train_dir)


def _until(max_steps):
    return dataclasses.replace(SETTINGS, max_steps=max_steps)


def _end(train_dir):
    """Return the bytes of the variables of the last checkpoint; losses and precisions by step."""
    last = checkpoint.read_latest(str(train_dir))
    assert last.step == LAST_STEP
    values = {name: value.tobytes() for name, value in last.values.items()}
    curves = [
        {step: value for step, found, value in events.scalars(train_dir) if found == tag}
        for tag in (event_files.TOTAL_LOSS, event_files.PRECISION)
    ]
    return values, curves


def _logged_steps(capsys):
    return [int(step) for step in messages.log_steps(capsys.readouterr().out)]


CASES = [
    (CLASSIC, 1, {}),
    pytest.param(FAST, 2, {'variable_strategy': 'first_device'}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize('hparams, num_devices, placement', CASES)
def test_five_stops(tmp_path, data_dir, capsys, hparams, num_devices, placement):
    """Variables, moving averages, slots, losses and precisions are equal."""
    _train(data_dir, tmp_path / 'whole', SETTINGS, hparams, num_devices, **placement)
    values, (losses, precisions) = _end(tmp_path / 'whole')
    capsys.readouterr()
    stopped = tmp_path / 'stopped'
    for max_steps in STOPS + [LAST_STEP]:
        _train(data_dir, stopped, _until(max_steps), hparams, num_devices, **placement)
    assert _logged_steps(capsys) == [0, *range(2, LAST_STEP + 1)]
    stopped_values, (stopped_losses, stopped_precisions) = _end(stopped)
    assert stopped_values == values and stopped_losses == losses
    assert len(set(losses.values())) == len(losses) == LAST_STEP
    # The last checkpoint before a stop is evaluated, too.
    assert sorted(stopped_precisions) == sorted({*STOPS, *precisions})
    assert {step: stopped_precisions[step] for step in precisions} == precisions


@pytest.mark.slow
def test_repeated_steps_are_shown_once(tmp_path, data_dir, capsys):
    """As after a kill: the last checkpoint is older than the last log line, or missing."""
    _train(data_dir, tmp_path / 'whole', SETTINGS)
    killed = tmp_path / 'killed'
    for max_steps in (3, 7):  # There is also a checkpoint of step 4.
        _train(data_dir, killed, _until(max_steps))
        for path in [*killed.glob(f'model.ckpt-{max_steps}.*'), killed / 'checkpoint']:
            path.unlink()
    capsys.readouterr()
    _train(data_dir, killed, SETTINGS)
    assert _logged_steps(capsys) == [5, 6, 7, 8, 9]
    values, (losses, _) = _end(tmp_path / 'whole')
    killed_values, (killed_losses, _) = _end(killed)
    assert killed_values == values and killed_losses == losses
    for tag, steps in events.shown_steps(killed).items():
        assert steps == sorted(set(steps)), tag


def test_the_progress_and_a_signal(tmp_path, data_dir, capsys, monkeypatch):
    """The signal ends the replay; nothing is saved."""
    _train(data_dir, tmp_path, _until(3))
    before = checkpoint.read_latest(str(tmp_path)).path
    capsys.readouterr()
    printed = []

    def print_and_stop(line):
        printed.append(line)
        if line == 'Replaying the input of 3 steps: 0%':
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(hooks, 'print', print_and_stop, raising=False)
    monkeypatch.setattr(hooks, '_REPLAY_PRINT_SECS', 0)  # a line per step
    with pytest.raises(KeyboardInterrupt):
        _train(data_dir, tmp_path, SETTINGS)
    assert printed[-1] == 'Replaying the input of 3 steps: 0%'
    assert checkpoint.read_latest(str(tmp_path)).path == before


def test_the_plan_names_the_replay(data_dir, capsys):
    job = training.create_job(dataset.read(data_dir), settings=SETTINGS)
    for first_step, end in [
        (0, 'Seed: 1, deterministic on this machine'),
        (7, 'Seed: 1, deterministic on this machine, the input of the first 7 steps is replayed'),
    ]:
        assert training_job.print_plan(job, first_step)[-1] == end
