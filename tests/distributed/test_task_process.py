"""The process of a task, without a launcher; the tests of launching have the rest."""

import os
import sys

import pytest

from cifar10.distributed.task_process import TaskProcess


@pytest.fixture
def start():
    """Starts Python code as a task."""
    tasks = []

    def start_task(source):
        tasks.append(TaskProcess('ps 1', [sys.executable, '-S', '-c', source]))
        return tasks[-1]

    yield start_task
    for task in tasks:
        task.kill()


def test_nothing_is_lost_at_the_end(start, capsys):
    task = start(
        "import sys; print('x' * 30000 + '\\ny'); print('z', file=sys.stderr); sys.exit(7)"
    )
    # nobody has read, and it still counts as running
    os.waitid(os.P_PID, task._process.pid, os.WEXITED | os.WNOWAIT)
    assert task.stopped_secs() < 1  # although it could not be stopped any more
    assert task.has_ended() and task.status == 7 and task.pipes == []
    assert capsys.readouterr() == ('[ps 1] %s\n[ps 1] y\n' % ('x' * 30000), '[ps 1] z\n')


def test_a_line_comes_whole(start, capsys):
    task = start(
        "import sys; sys.stdout.write('a'); sys.stdout.flush(); sys.stdin.read(); sys.stdout.write('b\\nc')"
    )
    while not task.has_ended():
        for pipe in task.pipes:
            task.show(pipe)
        assert capsys.readouterr().out in ('', '[ps 1] ab\n', '[ps 1] c\n', '[ps 1] ab\n[ps 1] c\n')


@pytest.mark.parametrize(
    'source, has_trained, found_port_in_use',
    [
        ("print('2026-01-01 00:00:00: step 0, loss = 4.68')", True, False),
        ("print('Filling the queue')", False, False),
        (
            "import sys; print('error: localhost:1: the port is in use', file=sys.stderr)",
            False,
            True,
        ),
    ],
)
def test_what_its_lines_mean(start, source, has_trained, found_port_in_use):
    task = start(source)
    os.waitid(os.P_PID, task._process.pid, os.WEXITED | os.WNOWAIT)
    assert task.has_ended() and (task.has_trained, task.found_port_in_use) == (
        has_trained,
        found_port_in_use,
    )


def test_an_end_is_told_once(start):
    """A process that gets the same number later is not killed."""
    task = start('')
    while not task.has_ended():
        pass
    task.terminate()
    task.kill()
    assert task.status == 0 and task.end == 'ps 1 ended with status 0'
