"""The watchdog by a clock that the tests turn, and its end of a process."""

import os
import queue
import subprocess
import sys
import threading

import pytest

from cifar10.distributed import cluster, statuses, watchdog
from tests.helpers import programs


class Clock:
    """In the place of the module time: sleep() lasts until the test has turned the clock on."""

    def __init__(self):
        self._now = 1000.0
        self._turns, self._looks = queue.Queue(), queue.Queue()

    def monotonic(self):
        return self._now

    def sleep(self, secs):
        """Called by the watchdog only."""
        assert 0 < secs <= 1
        self._looks.put(None)
        self._now = self._turns.get()

    def turn_to(self, now):
        """Lets the watchdog look once at this time, and waits until it has looked, or ended the
        process."""
        self._looks.get(timeout=60)
        self._turns.put(1000.0 + now)
        self._looks.put(self._looks.get(timeout=60))

    def end(self, message, status=statuses.STALLED):
        """In the place of watchdog.end: the thread of the watchdog does nothing any more."""
        print('END %s%s' % (message, '' if status == statuses.STALLED else ' [%d]' % status))
        self._looks.put(None)
        threading.Event().wait()


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(watchdog, 'time', clock)
    monkeypatch.setattr(watchdog, 'end', clock.end)
    return clock


def _waiting_for(who, phase=cluster.TRAINING, doubt=''):
    """What a watchdog asks for."""
    return lambda: (phase, who, doubt)


def _told(clock, capsys, *times):
    """A dict from these times to what is printed when the watchdog looks then."""
    told = {}
    for now in times:
        clock.turn_to(now)
        told[now] = capsys.readouterr().out
    return {now: text for now, text in told.items() if text}


WAITING = 'Training: waiting for worker 1\n'


def test_who_is_waited_for_is_told_after_5_seconds_and_then_every_30(clock, capsys):
    watchdog.Watchdog().watch(_waiting_for('worker 1'), 100, 'stall_timeout_secs')
    assert _told(clock, capsys, 0.2, 4.9, 5, 5.2, 34.9, 35, 35.2, 64.9, 65, 95, 99.9, 100) == {
        5: WAITING,
        35: WAITING,
        65: WAITING,
        95: WAITING,
        100: 'END Training: waited 100 seconds (--stall_timeout_secs) for worker 1: start this task again when the others are there\n',
    }


def test_a_limit_below_5_seconds(clock, capsys):
    watchdog.Watchdog().watch(_waiting_for('worker 1'), 2, 'connect_timeout_secs')
    assert _told(clock, capsys, 1.9, 2) == {
        2: 'END Training: waited 2 seconds (--connect_timeout_secs) for worker 1: start this task again when the others are there\n'
    }


def test_progress_begins_the_time_anew(clock, capsys):
    dog = watchdog.Watchdog()
    dog.watch(_waiting_for('worker 1'), 50, 'stall_timeout_secs')
    for start in range(0, 400, 40):
        assert _told(clock, capsys, start + 4.9, start + 5, start + 34, start + 40) == {
            start + 5: WAITING,
            start + 40: WAITING,
        }
        dog.progress()
    assert list(_told(clock, capsys, 404.9, 405, 435, 449.9, 450)) == [405, 435, 450]


def test_progress_while_the_others_are_asked(clock, capsys):
    """To ask them takes seconds."""

    def waits_for():
        dog.progress()
        return cluster.TRAINING, 'worker 1', ''

    dog = watchdog.Watchdog()
    dog.watch(waits_for, 50, 'stall_timeout_secs')
    assert _told(clock, capsys, 6, 12, 70) == {}


def test_rest_while_the_others_are_asked(clock, capsys):
    def waits_for():
        dog.rest()
        return cluster.TRAINING, 'worker 1', ''

    dog = watchdog.Watchdog()
    dog.watch(waits_for, 50, 'stall_timeout_secs')
    assert _told(clock, capsys, 60, 100) == {}


def test_without_a_watch_nothing_is_told(clock, capsys):
    dog = watchdog.Watchdog()
    assert _told(clock, capsys, 1000) == {}
    dog.watch(_waiting_for('worker 1'), 50, 'stall_timeout_secs')
    assert _told(clock, capsys, 1005) == {1005: WAITING}
    dog.rest()
    assert _told(clock, capsys, 2000) == {}
    dog.watch(_waiting_for('ps 0'), 50, 'stall_timeout_secs')
    assert _told(clock, capsys, 2004, 2005) == {2005: 'Training: waiting for ps 0\n'}


def test_the_others_answer(clock, capsys):
    """Only the end says so: a step can take long."""
    watchdog.Watchdog().watch(_waiting_for(''), 50, 'stall_timeout_secs')
    assert _told(clock, capsys, 5, 35, 50) == {
        50: 'END Training: waited 50 seconds (--stall_timeout_secs) for the others, although all of them answer: start this task '
        'again when the others are there\n'
    }


def test_another_watch(clock, capsys):
    """From the start of the task to the first update there is more time than later."""
    dog = watchdog.Watchdog()
    dog.watch(_waiting_for('ps 0'), 300, 'connect_timeout_secs')
    assert list(_told(clock, capsys, 5, 35, 200)) == [5, 35, 200]
    dog.watch(_waiting_for('worker 1'), 20, 'stall_timeout_secs')
    assert list(_told(clock, capsys, 204, 205, 219, 220)) == [205, 220]


def test_a_queue_that_does_not_fill(clock, capsys):
    """No other task is the reason."""
    watchdog.Watchdog().watch(_waiting_for('', cluster.FILLING), 20, 'connect_timeout_secs')
    assert _told(clock, capsys, 5, 19.9, 20) == {
        20: 'END Filling the queue: waited 20 seconds (--connect_timeout_secs): start this task again, with a longer time if the '
        'disk is slow\n'
    }


def test_nobody_has_ever_answered(clock, capsys):
    """After three times the limit nobody will come: a status by which the task is not started
    again."""
    watchdog.Watchdog().watch(
        _waiting_for('ps 0', cluster.CONNECTING, 'nobody answers'), 50, 'connect_timeout_secs'
    )
    waiting = 'Connecting: waiting for ps 0\n'
    assert _told(clock, capsys, 4.9, 5, 35, 50, 60, 65, 95, 100, 125, 149.9, 150) == {
        5: waiting,
        35: waiting,
        65: waiting,
        95: waiting,
        125: waiting,
        150: 'END Connecting: waited 150 seconds (3 times --connect_timeout_secs) for ps 0: nobody answers [1]\n',
    }


def test_somebody_answers_after_the_limit(clock, capsys):
    """It ends at the end of the next attempt, with the status by which it is started again."""
    doubt = 'nobody answers'
    watchdog.Watchdog().watch(
        lambda: (cluster.CONNECTING, 'ps 0', doubt), 50, 'connect_timeout_secs'
    )
    assert list(_told(clock, capsys, 5, 50)) == [5, 50]
    doubt = ''
    told = _told(clock, capsys, 99.9, 100)
    assert list(told) == [99.9, 100] and told[100].startswith(
        'END Connecting: waited 100 seconds (2 times --connect_timeout_secs)'
    )


_STUCK = """
import sys
from cifar10.distributed import watchdog

print('not flushed', end='')
watchdog.Watchdog().watch(lambda: ('training', 'worker 1 (b:2: it does not answer)', ''), 0.05, 'stall_timeout_secs')
sys.stdin.read()
"""


def test_the_end_of_a_process():
    """Though the main thread never returns from what it does."""
    process = subprocess.Popen(
        [sys.executable, '-c', _STUCK],
        cwd=programs.ROOT,
        env=dict(os.environ, PYTHONUNBUFFERED=''),
        universal_newlines=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.wait(timeout=programs.DEADLINE_SECS) == statuses.STALLED == 75
        assert process.stdout.read() == 'not flushed'
        assert process.stderr.read() == (
            '-c: Training: waited 0 seconds (--stall_timeout_secs) for worker 1 (b:2: it does not answer): start this task again when '
            'the others are there\n'
        )
    finally:
        process.kill()
        process.communicate()
