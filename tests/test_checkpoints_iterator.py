"""Iteration over the checkpoints of a run."""

import contextlib
import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.runs import run_record
from cifar10.system import directories


def _save_number(directory, step):
    """Save a checkpoint of one number; return its path."""
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.get_variable('number', initializer=0.0).initializer)
        return tf.train.Saver().save(session, os.path.join(str(directory), 'model.ckpt'), step)


class _Clock:
    """Fake of the module time: only sleep() moves the clock, and triggers due events."""

    def __init__(self):
        self.now = 0
        self.due = {}  # events by time

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        for time in sorted(time for time in self.due if time <= self.now):
            self.due.pop(time)()


@pytest.fixture
def clock(monkeypatch):
    clock = _Clock()
    monkeypatch.setattr(evaluation, 'time', clock)
    return clock


def _saves(directory, clock, steps):
    """Save checkpoints at their due times; `steps` maps times to steps."""

    def save(step):
        return lambda: os.utime(_save_number(directory, step) + '.index', (clock.now, clock.now))

    clock.due = {time: save(step) for time, step in steps.items()}


def _found(directory, clock, *args):
    return [
        (ckpt.step, clock.now) for ckpt in evaluation.checkpoints_iterator(str(directory), *args)
    ]


def _record(directory, last_step):
    run_record.write(str(directory), run_record.RunRecord(last_step=last_step))


def test_each_checkpoint_is_found_once(tmp_path, clock, capsys):
    """Polls are at even seconds. The last checkpoint has the step of an earlier one, from a new
    run."""
    _saves(tmp_path, clock, {25: 10, 45: 20, 46: 30, 75: 30})
    assert _found(tmp_path, clock, 10, 50) == [(10, 26), (30, 46), (30, 76)]
    assert clock.now == 126  # 50 seconds after the last one
    first, *following, last = capsys.readouterr().out.splitlines()
    assert first == f'Waiting for a checkpoint in {tmp_path}'
    assert following == 3 * ['The next evaluation is in 10 seconds at the earliest']
    assert last == f'No new checkpoint in {tmp_path} for 50 seconds'


def test_at_most_one_per_interval(tmp_path, clock):
    _saves(tmp_path, clock, {time: time for time in range(3, 67, 3)})
    assert _found(tmp_path, clock, 30, 40)[:3] == [(3, 4), (33, 34), (63, 64)]


def test_a_damaged_one(tmp_path, clock, capsys):
    """The one before it is evaluated again, and a line says so."""
    first = _save_number(tmp_path, 10)
    clock.due = {3: lambda: os.truncate(_save_number(tmp_path, 20) + '.index', 5)}
    found = list(evaluation.checkpoints_iterator(str(tmp_path), 1, 10))
    assert [ckpt.path for ckpt in found] == [first, first]
    assert [note.endswith(f'. Using {first}') for ckpt in found for note in ckpt.notes] == [True]


def test_the_steps_after_a_damaged_one_are_saved_again(tmp_path, clock):
    """The resumed trainer has gone back; the damaged file has the highest step."""
    _save_number(tmp_path, 10)
    os.truncate(_save_number(tmp_path, 20) + '.index', 5)
    for step in (10, 20):
        os.utime(str(tmp_path / f'model.ckpt-{step}.index'), (step - 30, step - 30))
    _saves(tmp_path, clock, {9: 12, 19: 15})
    assert _found(tmp_path, clock, 1, 30) == [(10, 0), (12, 10), (15, 20)]


def test_the_initial_weights_are_not_evaluated(tmp_path, clock, capsys):
    """The first trained checkpoint does not wait for the interval."""
    _record(tmp_path, 30)
    _saves(tmp_path, clock, {0: 0, 25: 10, 51: 30})
    clock.sleep(0)
    assert _found(tmp_path, clock, 300) == [(10, 26), (30, 52)]
    assert capsys.readouterr().out.startswith(f'Waiting for a checkpoint in {tmp_path}\n')


@pytest.mark.parametrize('is_there', [False, True])
def test_the_last_one_does_not_wait_and_ends_it(tmp_path, clock, capsys, is_there):
    """The run ends during the wait, or has ended before."""
    _record(tmp_path, 30)
    _saves(tmp_path, clock, {3: 10, 5: 20, 7: 30})
    if is_there:
        clock.sleep(7)
    assert _found(tmp_path, clock, 300) == ([(30, 7)] if is_there else [(10, 4), (30, 8)])
    assert clock.now == (7 if is_there else 8)
    assert capsys.readouterr().out.endswith(
        f'The run in {tmp_path} has ended: its last checkpoint is evaluated\n'
    )


def test_a_run_that_is_being_resumed_has_not_ended(tmp_path, clock):
    """Its trainer holds the lock, and has not yet recorded the new end."""
    _record(tmp_path, 30)
    _save_number(tmp_path, 30)
    held = contextlib.ExitStack()
    held.enter_context(directories.lock(str(tmp_path)))

    def resume():
        _record(tmp_path, 40)
        held.close()

    clock.due = {5: resume, 9: lambda: _save_number(tmp_path, 40)}
    assert _found(tmp_path, clock, 1) == [(30, 0), (40, 10)]


def test_what_waits_for_the_interval_is_not_missed_at_the_timeout(tmp_path, clock):
    _saves(tmp_path, clock, {10: 10, 20: 20})
    assert _found(tmp_path, clock, 300, 50) == [(10, 10), (20, 70)]
    assert clock.now == 70
