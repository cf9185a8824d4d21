"""Where in a run a step is, and when it will end."""

import math
import re

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import progress
from cifar10.hparams import Pace


@pytest.mark.parametrize(
    'seconds, text',
    [
        (0, '0 s'),
        (59.4, '59 s'),
        (59.5, '1 min'),
        (89, '1 min'),
        (91, '2 min'),
        (3569, '59 min'),
        (3571, '1 h 0 min'),
        (5400, '1 h 30 min'),
        (47.99 * 3600, '47 h 59 min'),
        (48 * 3600, '2 days 0 h'),
        (1e6, '11 days 14 h'),
    ],
)
def test_duration(seconds, text):
    assert progress.duration(seconds) == text


def _positions(monkeypatch, capsys, pace, every, seconds_per_step, steps, first_step=0):
    """What the lines say after the speed, by a clock that steps alone move."""
    now = [0.0]
    monkeypatch.setattr(progress.time, 'monotonic', lambda: now[0])
    global_step = tf.train.get_or_create_global_step()
    hook = progress.LogHook(global_step, tf.constant(1.0), pace, every)
    with tf.Session() as session:
        global_step.load(first_step, session)
        hook.after_create_session(session, None)
        for step in range(first_step + 1, first_step + steps + 1):
            now[0] += seconds_per_step(step)
            hook.after_run(None, tf.train.SessionRunValues({'step': step, 'loss': 1.0}, None, None))
        hook.end(session)
    return re.findall(r' sec/batch\)(.*)$', capsys.readouterr().out, re.M)


def test_the_epoch_and_the_time_that_is_left(monkeypatch, capsys):
    """The first step takes a minute, which only the first line counts; the others take 2 seconds
    each."""
    found = _positions(
        monkeypatch,
        capsys,
        Pace(100, 1000, last_step=320),
        10,
        lambda step: 60 if step == 1 else 2,
        31,
    )
    assert found == [
        ', epoch 1.0 of 32, 40 min left',  # 310 steps of 7.8 s
        ', epoch 2.0 of 32, 10 min left',
        ', epoch 3.0 of 32, 10 min left',
        ', epoch 3.1 of 32, 10 min left',
    ]


def test_a_resumed_run_counts_all_epochs(monkeypatch, capsys):
    found = _positions(
        monkeypatch, capsys, Pace(100, 1000, last_step=325), 10, lambda step: 1, 20, first_step=290
    )
    assert found == [', epoch 30.0 of 32.5, 25 s left', ', epoch 31.0 of 32.5, 15 s left']


def test_without_an_end(monkeypatch, capsys):
    assert _positions(
        monkeypatch, capsys, Pace(100, 1000, last_step=math.inf), 10, lambda step: 1, 10
    ) == [', epoch 1.0']


def test_a_speed_that_changes_is_followed(monkeypatch, capsys):
    """It is that of the latest 100 lines: in the middle, 49 steps of one second and 51 of three."""
    found = _positions(
        monkeypatch,
        capsys,
        Pace(1, 1000, last_step=10000),
        1,
        lambda step: 1 if step < 500 else 3,
        800,
    )
    assert [found[step - 1] for step in (400, 550, 800)] == [
        ', epoch 0.40 of 10, 2 h 40 min left',
        ', epoch 0.55 of 10, 5 h 18 min left',
        ', epoch 0.80 of 10, 7 h 40 min left',
    ]


def test_less_than_an_epoch(monkeypatch, capsys):
    found = _positions(monkeypatch, capsys, Pace(10, 50000, last_step=200), 60, lambda step: 1, 120)
    assert found == [', epoch 0.01 of 0.04, 2 min left', ', epoch 0.02 of 0.04, 1 min left']


def test_others_have_come_further_than_the_end(monkeypatch, capsys):
    assert _positions(monkeypatch, capsys, Pace(1, 10, last_step=3), 5, lambda step: 1, 5) == [
        ', epoch 0.50 of 0.30, 0 s left'
    ]
