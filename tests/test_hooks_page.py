"""docs/hooks.md: its hooks do what the page says, with one and two towers."""

import dataclasses
import re

import numpy as np
import pytest

from cifar10 import training
from cifar10.config import FAST
from cifar10.runs import checkpoint
from tests.helpers import pages

pytestmark = pytest.mark.slow
PRINT, KEEP_BEST, PATIENCE, STOP = [item.text for item in pages.items('hooks.md') if item.is_python]
(CLASS,) = re.findall(r'(?s)\n(class .*?\n)\n\n(?=machine)', KEEP_BEST)


@pytest.fixture
def run_program(tmp_path, data_dir, monkeypatch, capsys):
    """Return a function that runs a program with small batches; it returns the lines."""
    create_job = training.create_job

    def create_small(data, hparams, *args):
        return create_job(data, dataclasses.replace(hparams, batch_size=8), *args)

    monkeypatch.setattr(training, 'create_job', create_small)

    def run(program, *changes):
        for old, new in [
            ("'/tmp/cifar10_synthetic'", repr(data_dir)),
            ("'/tmp/held_out'", repr(data_dir)),
            ("'/tmp/my_run'", repr(str(tmp_path / 'my_run'))),
            ("'/tmp/best_run'", repr(str(tmp_path / 'best_run'))),
            *changes,
        ]:
            program = program.replace(old, new)
        exec(program, {})
        return capsys.readouterr().out.splitlines()

    return run


@pytest.mark.parametrize('num_towers', [1, 2])
def test_print_every_ten_steps(run_program, num_towers):
    """The loss is that of the log line, and the rate that of the schedule."""
    lines = run_program(PRINT, ('tower_devices(1)', f'tower_devices({num_towers})'))
    printed = [re.fullmatch(r'step (\d+): loss (\S+), learning rate (\S+)', line) for line in lines]
    printed = [match.groups() for match in printed if match]
    logged = dict(re.findall(r'step (\d+), loss = (\S+) ', '\n'.join(lines)))
    assert [int(step) for step, _, _ in printed] == [10, 20]
    for step, loss, rate in printed:
        assert abs(float(loss) - float(logged[step])) < 0.0051
        epoch = (int(step) - 0.5) * 8 * num_towers / 300  # in the middle of the step's examples
        expected = FAST.initial_learning_rate * epoch / FAST.warmup_epochs
        assert abs(float(rate) - expected) < 0.000051


def _precisions(lines):
    return [
        (int(step), float(precision))
        for precision, step in re.findall(
            r'precision @ 1 = (\S+) .* step (\d+)\)', '\n'.join(lines)
        )
    ]


def test_keep_best(run_program, tmp_path):
    """The checkpoint has the weights of the step with the highest precision."""
    lines = run_program(KEEP_BEST, ('every_n_steps=10', 'every_n_steps=4'))
    precisions = _precisions(lines)
    assert [step for step, _ in precisions] == [4, 8, 12, 16, 20]
    assert [saved.step for saved in checkpoint.find(str(tmp_path / 'best_run'))] == [20, 0]
    best = max(precisions, key=lambda pair: (pair[1], -pair[0]))[0]
    (saved,) = (tmp_path / 'best_run').glob('best.ckpt-*.index')
    assert saved.name == f'best.ckpt-{best}.index'
    values = checkpoint.read(str(saved.with_suffix(''))).values
    assert values['global_step'] == best and np.isfinite(values['conv1/weights']).all()


def test_patience(run_program):
    """With a tiny learning rate and a high first precision, the run stops after the patience."""
    program = KEEP_BEST.replace("latest_filename='best')\n", "latest_filename='best')\n" + PATIENCE)
    assert program != KEEP_BEST
    lines = run_program(
        program,
        ('best = best_step = 0', 'best, best_step = 1.0, 0'),
        ('1000', '8'),
        ('every_n_steps=10', 'every_n_steps=4'),
    )
    assert [step for step, _ in _precisions(lines)] == [4, 8]


@pytest.mark.parametrize('num_towers', [1, 2])
def test_stop_at_a_precision(run_program, tmp_path, num_towers):
    """The step is saved."""
    program = KEEP_BEST.replace(CLASS, STOP).replace('KeepBest(', 'StopAtPrecision(')
    assert CLASS in KEEP_BEST
    lines = run_program(
        program,
        ('>= 0.8', '>= 0.0'),
        ('every_n_steps=10', 'every_n_steps=4'),
        ('tower_devices(1)', f'tower_devices({num_towers})'),
    )
    assert [step for step, _ in _precisions(lines)] == [4]
    assert re.search(r'(?m)^Precision \S+: stopping at step 4$', '\n'.join(lines))
    assert checkpoint.newest_step(str(tmp_path / 'best_run')) == 4
