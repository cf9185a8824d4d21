"""Iteration over the checkpoints of a run."""

import contextlib
import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.runs import checkpoint, run_record
from cifar10.system import directories
from tests.helpers import messages


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
    assert capsys.readouterr().out == (
        f'Waiting for a checkpoint in {tmp_path}\nNo new checkpoint in {tmp_path} for 50 seconds\n'
    )


@pytest.mark.parametrize('has_record', [False, True])
def test_a_wait_without_an_end_is_announced_once(tmp_path, clock, capsys, has_record):
    """A program of a book writes no record; only Ctrl-C ends the wait."""

    def interrupt():
        raise KeyboardInterrupt

    if has_record:
        _record(tmp_path, 30)
    _save_number(tmp_path, 1)
    _saves(tmp_path, clock, {5: 10})
    clock.due[20] = interrupt
    with pytest.raises(KeyboardInterrupt):
        _found(tmp_path, clock, 1)
    assert capsys.readouterr().out == (
        ''
        if has_record
        else f'Waiting for a new checkpoint in {tmp_path} until Ctrl-C, because no run.json names '
        'the last step of the run\n'
    )


def test_at_most_one_per_interval(tmp_path, clock):
    _saves(tmp_path, clock, {time: time for time in range(3, 67, 3)})
    assert _found(tmp_path, clock, 30, 40)[:3] == [(3, 4), (33, 34), (63, 64)]


def test_a_damaged_one_does_not_give_the_one_before_it_again(tmp_path, clock, capsys):
    first = _save_number(tmp_path, 10)
    clock.due = {3: lambda: os.truncate(_save_number(tmp_path, 20) + '.index', 5)}
    assert _found(tmp_path, clock, 1, 10) == [(10, 0)]
    assert f'. Using {first}\n' in capsys.readouterr().out


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


def test_a_checkpoint_that_comes_between_two_looks_is_not_missed(tmp_path, clock, monkeypatch):
    """The last checkpoint is saved during the read of the newest one."""
    _record(tmp_path, 2)
    _save_number(tmp_path, 1)
    fingerprint = checkpoint.fingerprint

    def then_save(directory):
        found = fingerprint(directory)
        if clock.now == 4:
            _save_number(tmp_path, 2)
        return found

    monkeypatch.setattr(checkpoint, 'fingerprint', then_save)
    assert [step for step, _ in _found(tmp_path, clock, 300)] == [1, 2]


@pytest.mark.skipif(directories.fcntl is None, reason='this system has no locks')
def test_a_run_that_is_being_resumed_has_not_ended(tmp_path, clock):
    """Its trainer holds the lock, and has not yet recorded the new end."""
    _record(tmp_path, 30)
    _save_number(tmp_path, 30)
    held = contextlib.ExitStack()
    held.enter_context(directories.Lock(str(tmp_path)))

    def resume():
        _record(tmp_path, 40)
        held.close()

    clock.due = {5: resume, 9: lambda: _save_number(tmp_path, 40)}
    assert _found(tmp_path, clock, 1) == [(30, 0), (40, 10)]


def test_what_waits_for_the_interval_is_not_missed_at_the_timeout(tmp_path, clock):
    _saves(tmp_path, clock, {10: 10, 20: 20})
    assert _found(tmp_path, clock, 300, 50) == [(10, 10), (20, 70)]
    assert clock.now == 70


@pytest.mark.parametrize('comes_back', [False, True])
def test_the_directory_is_gone(tmp_path, clock, comes_back):
    """A fresh trainer recreates it."""
    run = tmp_path / 'run'
    run.mkdir()
    _save_number(run, 1)
    checkpoints = evaluation.checkpoints_iterator(str(run), 10, 50)
    assert next(checkpoints).step == 1
    run.rename(tmp_path / 'aside')
    if comes_back:
        clock.due = {1: run.mkdir}
        assert list(checkpoints) == []
    else:
        with messages.raises(f'^{run} does not exist: it {messages.MOVED}'):
            next(checkpoints)
