"""The watchdog with a fake clock: time limits, and tasks that may be unreachable."""

import os
import queue
import sys
import threading
from types import SimpleNamespace
from unittest import mock

import pytest

from cifar10.distributed import server, task_context
from cifar10.distributed.cluster import (
    CONNECTING,
    EX_TEMPFAIL,
    FILLING,
    JOINING,
    TRAINING,
    Cluster,
    Task,
    Timeouts,
)
from cifar10.distributed.server import TaskInfo
from cifar10.errors import UserError

CLUSTER = Cluster(('a:1',), ('b:1', 'c:1'))


class Clock:
    """Fake of the module time: sleep() lasts until the test advances the clock."""

    def __init__(self):
        self._now = 1000.0
        self._turns, self._looks = queue.Queue(), queue.Queue()

    def monotonic(self):
        return self._now

    def sleep(self, secs):
        """Wait for the test; only the watchdog calls this."""
        assert 0 < secs <= 1
        self._looks.put(None)
        self._now = self._turns.get()

    def turn_to(self, now):
        """Let the watchdog poll once at this time, and wait until it has polled or exited."""
        self._looks.get(timeout=60)
        self._turns.put(1000.0 + now)
        self._looks.put(self._looks.get(timeout=60))

    def end(self, message, status=EX_TEMPFAIL):
        """Fake of exit_process that blocks the watchdog's thread."""
        shown = '' if status == EX_TEMPFAIL else f' [{status}]'
        print(f'END {message}{shown}')
        self._looks.put(None)
        threading.Event().wait()


class _Watch:
    """A watchdog with a fake clock.

    Attributes:
      phase, awaited, unreachable_reason: the result of its `describe`; `awaited` is a function.
    """

    def __init__(self, clock, capsys):
        self.phase, self.awaited, self.unreachable_reason = TRAINING, lambda: 'worker 1', ''
        self.dog = task_context.Watchdog(
            lambda: (self.phase, self.awaited(), self.unreachable_reason)
        )
        self._clock, self._capsys = clock, capsys

    def told(self, *times):
        """Return a dict from these times to the watchdog's output."""
        told = {}
        for now in times:
            self._clock.turn_to(now)
            told[now] = self._capsys.readouterr().out
        return {now: text for now, text in told.items() if text}


@pytest.fixture
def watch(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(task_context, 'time', clock)
    monkeypatch.setattr(task_context, 'exit_process', clock.end)
    return _Watch(clock, capsys)


WAITING = 'Training: waiting for worker 1\n'


def test_who_is_waited_for_is_told_after_5_seconds_and_then_every_30(watch):
    watch.dog.set_limit(100, 'stall_timeout_secs')
    assert watch.told(4.9, 5, 5.2, 34.9, 35, 35.2, 64.9, 65, 99.9, 100) == {
        5: WAITING,
        35: WAITING,
        65: WAITING,
        99.9: WAITING,
        100: 'END Training: waited 100 seconds (stall_timeout_secs) for worker 1: restart this task when the others are running\n',
    }


def test_progress_begins_the_time_anew(watch):
    watch.dog.set_limit(50, 'stall_timeout_secs')
    assert list(watch.told(5, 35, 40)) == [5, 35]
    watch.dog.reset()
    assert list(watch.told(44.9, 45, 75, 89.9, 90)) == [45, 75, 90]


@pytest.mark.parametrize('what', ['reset', 'stop'])
def test_what_happens_while_the_others_are_asked(watch, what):
    """A query of the tasks takes seconds."""
    watch.awaited = lambda: getattr(watch.dog, what)() or 'worker 1'
    watch.dog.set_limit(50, 'stall_timeout_secs')
    assert watch.told(6, 12, 60 if what == 'reset' else 100) == {}


def test_the_others_answer(watch):
    """Only the last message says so, because a step can take long."""
    watch.awaited = str
    watch.dog.set_limit(50, 'stall_timeout_secs')
    told = watch.told(5, 35, 50)
    assert (
        list(told) == [50]
        and ' for an update, although all other tasks answer: restart' in told[50]
    )


def test_a_queue_that_does_not_fill(watch):
    """No other task is the reason."""
    watch.phase, watch.awaited = FILLING, str
    watch.dog.set_limit(20, 'connect_timeout_secs')
    assert 'if the disk is slow' in watch.told(5, 19.9, 20).pop(20)


def test_nobody_has_ever_answered(watch):
    """After three times the limit, the status prevents a restart."""
    watch.phase, watch.unreachable_reason = CONNECTING, 'nobody answers'
    watch.dog.set_limit(50, 'connect_timeout_secs')
    told = watch.told(4.9, 5, 35, 50, 60, 65, 95, 100, 125, 149.9, 150)
    assert list(told) == [5, 35, 65, 95, 125, 150]
    assert told[150].endswith('(3 times connect_timeout_secs) for worker 1: nobody answers [1]\n')


def test_somebody_answers_after_the_limit(watch):
    """It ends at the end of the next attempt, with the status for a restart."""
    watch.unreachable_reason = 'nobody answers'
    watch.dog.set_limit(50, 'connect_timeout_secs')
    assert list(watch.told(5, 50)) == [5, 50]
    watch.unreachable_reason = ''
    told = watch.told(99.9, 100)
    assert list(told) == [99.9, 100] and told[100].startswith(
        'END Training: waited 100 seconds (2 times connect_timeout_secs)'
    )


def test_a_bug_ends_the_process(watch):
    watch.awaited = lambda: 1 / 0
    watch.dog.set_limit(50, 'stall_timeout_secs')
    assert watch.told(5) == {5: 'END The watchdog failed (division by zero): restart this task\n'}


def test_the_end_of_a_process(monkeypatch, capsys):
    """The output is flushed; a closed pipe is ignored."""
    stdout, leave = mock.Mock(flush=mock.Mock(side_effect=BrokenPipeError)), mock.Mock()
    monkeypatch.setattr(os, '_exit', leave)
    monkeypatch.setattr(sys, 'stdout', stdout)
    task_context.exit_process('why')
    task_context.exit_process('why', status=1)
    assert leave.call_args_list == [mock.call(75), mock.call(1)] and stdout.flush.call_count == 2
    assert capsys.readouterr().err.count(': why\n') == 2


@pytest.fixture
def watched(monkeypatch):
    """Replace servers, TaskInfos and watchdogs; return the list of the watchdog's calls.

    Its first item is the function that the watchdog calls.
    """
    told = []
    own = SimpleNamespace(task_info=TaskInfo('', 'worker 1', 7), set_phase=lambda phase: None)
    monkeypatch.setattr(server, 'start_server', lambda *args: 'target')
    monkeypatch.setattr(server, 'OwnTaskInfo', lambda *args: own)
    monkeypatch.setattr(server, 'read_task_info', lambda address: own.task_info)
    monkeypatch.setattr(
        task_context,
        'Watchdog',
        lambda describe: (
            told.append(describe)
            or SimpleNamespace(
                set_limit=lambda secs, name: told.append((secs, name)),
                reset=lambda: told.append('progress'),
            )
        ),
    )
    return told


def test_the_limits_of_a_task_that_joins_again(watched):
    connect, stall = (7, 'connect_timeout_secs'), (8, 'stall_timeout_secs')
    task = task_context.TaskContext(CLUSTER, Task('worker', 1), None, Timeouts(connect=7, stall=8))
    assert watched[1:] == [connect]
    for _ in range(2):
        del watched[:]
        task.join(JOINING)
        task.set_phase(TRAINING)
        assert watched == [connect]
        for _ in range(3):
            task.report_progress()
        assert watched[1:] == [stall] + 3 * ['progress']
    del watched[:]
    task.join(JOINING, restarts_timer=False)
    assert watched == []


@pytest.mark.parametrize(
    'task, answering, unreachable_reason',
    [
        (Task('worker', 1), Task('ps', 0), 'the chief has never answered'),
        (Task('worker', 1), Task('worker', 0), None),
        (Task('worker', 0), None, 'no other task has ever answered'),
        (Task('worker', 0), Task('worker', 1), None),
    ],
)
def test_tasks_that_may_never_come(watched, monkeypatch, task, answering, unreachable_reason):
    """Without an answer of the chief, the run may be over, but not after joining it."""
    answers = {answering: TaskInfo(CLUSTER.addresses, '', 8)}
    monkeypatch.setattr(
        server,
        'query_all',
        lambda query, cluster, tasks: {each: answers.get(each, 'no answer') for each in tasks},
    )
    made = task_context.TaskContext(CLUSTER, task, None, Timeouts())
    describe = watched[0]
    found = describe()[2]
    assert found == (
        f'{unreachable_reason}; the run has ended, or the addresses are wrong'
        if unreachable_reason
        else ''
    )
    answers.clear()
    assert describe()[2] == found
    made.join(TRAINING)
    assert describe()[2] == (found if task.is_chief else '')
    made.report_progress()
    assert describe()[2] == ''


@pytest.mark.parametrize('seconds, is_rejected', [(29, False), (31, True)])
def test_another_process_at_the_address(watched, monkeypatch, seconds, is_rejected):
    """The name of a host may lead to an old address for 30 seconds."""
    own, other = server.read_task_info('c:1'), TaskInfo(CLUSTER.addresses, 'worker 0', 8)
    now, found = [1000], ['no answer', other, other, own]

    def read(unused_address='c:1'):
        return found[(now[0] - 1000) // seconds]

    def sleep(unused_secs):
        now[0] += seconds
        if read() == other:
            _, awaited, unreachable_reason = watched[0]()
            assert awaited == 'worker 1 (c:1: worker 0 answers), the address of this task'
            assert unreachable_reason == 'check task_index and the addresses'

    monkeypatch.setattr(server, 'read_task_info', read)
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(task_context, 'time', clock)
    if is_rejected:
        with pytest.raises(UserError, match=r'^Another process .* worker 1 \(c:1\), as worker 0: '):
            task_context.TaskContext(CLUSTER, Task('worker', 1), None, Timeouts())
    else:
        task_context.TaskContext(CLUSTER, Task('worker', 1), None, Timeouts())


def test_who_cannot_be_reached_need_not_depart(watched, monkeypatch):
    made = task_context.TaskContext(CLUSTER, Task('worker', 0), None, Timeouts())
    state_variables = SimpleNamespace(read=lambda: [SimpleNamespace(left=[1, 0])])
    monkeypatch.setattr(server, 'unreachable_tasks', lambda cluster, tasks: tasks)
    monkeypatch.setattr(task_context, 'time', SimpleNamespace(monotonic=lambda: 0))  # no sleep()
    made.wait_for_workers_to_leave(state_variables)
