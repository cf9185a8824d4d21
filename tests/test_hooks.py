"""Hooks of the training session: stop, filling of queues, log lines, end of the run."""

import re
import signal

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import hooks, input as input_lib
from cifar10.config import RunLength
from cifar10.system import signals


def _positions(monkeypatch, capsys, run_length, every, seconds_per_step, last, first_step=0):
    """Return the end of each log line; only steps move the clock."""
    now = [0.0]
    monkeypatch.setattr(hooks.time, 'monotonic', lambda: now[0])
    global_step = tf.train.get_or_create_global_step()
    hook = hooks.LoggingHook(run_length, every)
    with tf.Session() as session:
        global_step.load(first_step, session)
        hook.after_create_session(session, None)
        for step in range(first_step + 1, last + 1):
            now[0] += seconds_per_step(step)
            hook.before_run(None)
            values = {'step': step, 'loss': 1.0}
            hook.after_run(None, tf.train.SessionRunValues(values, None, None))
        hook.end(session)
    return re.findall(r' loss = 1.00 (.*)$', capsys.readouterr().out, re.M)


def test_the_speed_the_epoch_and_the_time_that_is_left(monkeypatch, capsys):
    """The first step takes a minute, which only its line counts; other steps take 2 seconds."""
    run_length = RunLength(100, 1000, last_step=325)
    assert _positions(
        monkeypatch, capsys, run_length, 10, lambda step: 60 if step == 1 else 2, 31
    ) == [
        # step 0: 324 steps of 60 s
        '(1.7 examples/sec; 60.000 sec/batch), epoch 0.00 of 32.5, 5:24:00 left',
        # 315 steps of 2 s
        '(50.0 examples/sec; 2.000 sec/batch), epoch 1.00 of 32.5, 0:10:30 left',
        '(50.0 examples/sec; 2.000 sec/batch), epoch 2.00 of 32.5, 0:10:10 left',
        '(50.0 examples/sec; 2.000 sec/batch), epoch 3.00 of 32.5, 0:09:50 left',
        '(50.0 examples/sec; 2.000 sec/batch), epoch 3.10 of 32.5, 0:09:48 left',
    ]


def test_a_resumed_run_counts_all_epochs(monkeypatch, capsys):
    run_length = RunLength(100, 1000, last_step=320)
    found = _positions(monkeypatch, capsys, run_length, 10, lambda step: 1, 310, first_step=290)
    assert [line.partition('), ')[2] for line in found] == [
        'epoch 30.00 of 32, 0:00:20 left',
        'epoch 31.00 of 32, 0:00:10 left',
    ]


class _Coordinator:
    """Coordinator that requests a stop after a number of waits, which take no time."""

    def __init__(self, waits):
        self.waits = waits

    def should_stop(self):
        return self.waits < 0

    def wait_for_stop(self, timeout):
        self.waits -= 1


def _fill(sizes, minima, waits=9, stop_request=signals.StopRequest()):
    """Run the QueueFillHook against queue sizes, one list per look; return the unread ones."""
    looks = iter(sizes)
    tensors = tf.py_func(lambda: np.array(next(looks), np.int32), [], tf.int32)
    for i, minimum in enumerate(minima):
        tf.add_to_collection(input_lib.SHUFFLE_QUEUE_SIZE, tensors[i])
        tf.add_to_collection(input_lib.SHUFFLE_QUEUE_MIN, minimum)
    hook = hooks.QueueFillHook(stop_request)
    with tf.Session() as session:
        hook.after_create_session(session, _Coordinator(waits))
    return list(looks)


def test_training_waits_for_full_queues(capsys):
    """A queue above its minimum does not compensate for another one."""
    assert _fill([[0, 0], [9, 0], [10, 1], [50, 11], [50, 20], [50, 30]], [10, 20]) == [[50, 30]]
    line = 'Filling the shuffle queue with 30 images before training starts: %d%%\n'
    assert capsys.readouterr().out == ''.join(line % percent for percent in (0, 30, 70, 100))


def test_filling_ends_with_a_request_to_stop():

    class StopRequest:
        answers = iter([None, None, signal.SIGTERM])
        received_signal = property(lambda self: next(self.answers))

    assert len(_fill([[0]] * 5, [10], stop_request=StopRequest())) == 3
    with tf.Graph().as_default():
        assert len(_fill([[0]] * 5, [10], waits=1)) == 3  # of the Coordinator
