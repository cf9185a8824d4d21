"""A deterministic run that is stopped and resumed is the run that was never stopped."""

import dataclasses
import os
import signal

import pytest

from cifar10 import hooks
from cifar10.cli import training_job
from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.report import event_files
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.system import signals
from cifar10.training import Job
from scripts import cifar10_multi_gpu_train, cifar10_train
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
    job = Job(dataset.read(data_dir), hparams, devices, settings, **placement)
    script = cifar10_train if num_devices == 1 else cifar10_multi_gpu_train
    with open_run(str(train_dir), job.record) as run:
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


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory, data_dir):
    """Return a function that returns the end of the run with the same arguments of _train."""
    known = {}

    def find(*args, **placement):
        key = repr((args, placement))
        if key not in known:
            directory = tmp_path_factory.mktemp('uninterrupted')
            _train(data_dir, directory, SETTINGS, *args, **placement)
            known[key] = _end(directory)
        return known[key]

    return find


DIVIDED = {'devices_per_tower': 2, 'variable_strategy': 'first_device'}
CASES = [
    (CLASSIC, 1, {}),
    (FAST, 2, {'variable_strategy': 'spread'}),
    pytest.param(FAST, 4, DIVIDED, marks=pytest.mark.slow),
]


@pytest.mark.parametrize('hparams, num_devices, placement', CASES)
def test_five_stops(tmp_path, data_dir, capsys, uninterrupted, hparams, num_devices, placement):
    """Variables, moving averages, slots, losses and precisions are equal."""
    values, (losses, precisions) = uninterrupted(hparams, num_devices, **placement)
    capsys.readouterr()
    for max_steps in STOPS + [LAST_STEP]:
        _train(data_dir, tmp_path, _until(max_steps), hparams, num_devices, **placement)
    assert _logged_steps(capsys) == list(range(LAST_STEP + 1))
    stopped_values, (stopped_losses, stopped_precisions) = _end(tmp_path)
    assert stopped_values == values and stopped_losses == losses
    assert len(set(losses.values())) == len(losses) == LAST_STEP
    # The last checkpoint before a stop is evaluated, too.
    assert sorted(stopped_precisions) == sorted({*STOPS, *precisions})
    assert {step: stopped_precisions[step] for step in precisions} == precisions


def test_repeated_steps_are_shown_once(tmp_path, data_dir, capsys, uninterrupted):
    """As after a kill: the last checkpoint is older than the last log line, or missing."""
    for max_steps in (3, 7):  # There is also a checkpoint of step 4.
        _train(data_dir, tmp_path, _until(max_steps))
        for path in [*tmp_path.glob(f'model.ckpt-{max_steps}.*'), tmp_path / 'checkpoint']:
            path.unlink()
    capsys.readouterr()
    _train(data_dir, tmp_path, SETTINGS)
    output = capsys.readouterr().out
    assert messages.log_steps(output) == ['5', '6', '7', '8', '9']
    values, (losses, _) = uninterrupted()
    stopped_values, (stopped_losses, _) = _end(tmp_path)
    assert stopped_values == values and stopped_losses == losses
    for tag, steps in events.shown_steps(tmp_path).items():
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
    with pytest.raises(signals.SignalInterrupt):
        _train(data_dir, tmp_path, SETTINGS)
    assert printed[-1] == 'Replaying the input of 3 steps: 0%'
    assert checkpoint.read_latest(str(tmp_path)).path == before


def test_the_plan_names_the_replay(data_dir, capsys):
    job = Job(dataset.read(data_dir), settings=SETTINGS)
    for first_step, end in [
        (0, 'Seed: 1, deterministic on this machine'),
        (7, 'Seed: 1, deterministic on this machine, the input of the first 7 steps is replayed'),
        (9, 'Seed: 1, deterministic on this machine'),  # nothing to do
    ]:
        assert training_job.print_plan(job, first_step)[-1] == end
