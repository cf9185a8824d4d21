"""Restarts by a launcher after tasks die, or find their ports in use."""

import re

import pytest

from cifar10.distributed import launcher
from tests.helpers.fake_tasks import DEADLINE_SECS, KILL, hosts, launch, own_flags


@pytest.mark.parametrize(
    'task, end, told',
    [
        ('ps 0', KILL, 'was ended by SIGKILL'),
        ('worker 0', 'sys.exit(75)', 'ended with status 75'),
        ('worker 0', 'sys.exit(129)', 'ended with status 129'),
    ],
)
def test_one_task_is_started_again(trainer, capsys, task, end, told):
    """The others continue, and all addresses stay the same."""
    one = trainer(
        f"if task == {task!r} and not start: {end}\nif task == {task!r}: touch('again')\nwait_for('again')"
    )
    assert launch(one, 1, 2) == 0
    assert one.tasks() == sorted(['ps 0', 'worker 0', 'worker 1', task])
    first, second = one.words(task)
    assert second == first
    assert capsys.readouterr().err.endswith(f': {task} {told}: it is restarted (2 restarts left)\n')


def test_a_worker_that_is_done_stays_so(trainer):
    one = trainer(
        f"if task == 'worker 1' and start < 2: wait_for_end('worker 0'); {KILL}\nif task == 'ps 0': wait_for('done')\n"
        "if task == 'worker 1': touch('done')"
    )
    assert launch(one, 1, 2) == 0
    assert one.tasks() == ['ps 0', 'worker 0'] + 3 * ['worker 1']


def test_an_all_reduce_starts_again_as_a_whole(trainer, capsys):
    """One worker dies, one exits, one continues: one restart."""
    one = trainer(
        f"if start: sys.exit(0)\nif task == 'worker 1': wait_for_all(); {KILL}\n"
        "if task == 'worker 2': wait_for_end('worker 1'); sys.exit(75)\nwait_for()"
    )
    assert launch(one, 0, 3, max_restarts=1) == 0
    assert one.tasks() == sorted(2 * ['worker 0', 'worker 1', 'worker 2'])
    for task in set(one.tasks()):
        first, second = one.words(task)
        assert second == first
    assert re.fullmatch(
        r'\S+: worker [12] .*: all workers are restarted \(0 restarts left\)\n',
        capsys.readouterr().err,
    )


def test_an_all_reduce_whose_worker_diverges(trainer, monkeypatch):
    """The others lose this worker, and may end first."""
    monkeypatch.setattr(launcher, 'GRACE_SECS', DEADLINE_SECS)
    one = trainer("if task == 'worker 0': sys.exit(75)\nwait_for_end('worker 0'); sys.exit(1)")
    assert launch(one, 0, 2) == 1
    assert one.tasks() == ['worker 0', 'worker 1']


@pytest.mark.parametrize(
    'num_ps, end, status, max_restarts',
    [
        (0, KILL, 137, 1),
        (1, 'sys.exit(75)', 75, 2),
    ],
)
def test_restarts_are_used_up(trainer, capsys, num_ps, end, status, max_restarts):
    one = trainer(f"if task == 'worker 1': {end}\nwait_for()")
    assert launch(one, num_ps, 2, max_restarts) == status
    assert one.tasks().count('worker 1') == max_restarts + 1
    said = capsys.readouterr().err
    assert [int(number) for number in re.findall(r'\((\d) restarts left\)', said)] == list(
        range(max_restarts)
    )[::-1]
    assert said.count('no restarts are left') == 1


def test_a_restart_resumes(trainer):
    """--fresh moves an older run aside, even after an early death of the chief, but never this
    run."""
    given = ['--fresh', '--freshness=2', '-fresh=true', '--max_steps=3', '--nofresh', '--fresh=1']
    one = trainer(
        "if task == 'worker 0' and start == 1: print('2026-01-01 00:00:00: step 1, loss = 1', flush=True)\n"
        f"if task == 'worker 0' and start < 3: {KILL}"
    )
    assert launch(one, 0, 1, flags=given) == 0
    first, second, third, fourth = one.words('worker 0')
    assert own_flags(first, given) == own_flags(
        third, ['--freshness=2', '--max_steps=3', '--nofresh']
    )
    assert first == second and third == fourth


def test_a_port_in_use(trainer, capsys):
    """All tasks get other ports, and keep --fresh."""
    one = trainer(
        "if start: sys.exit(0)\nif task == 'worker 0': wait_for()\nwait_for_all()\n"
        "if task == 'worker 1': sys.exit('error: ps 0 cannot listen: x')"
    )
    assert launch(one, 1, 2, max_restarts=1, flags=['--fresh']) == 0
    assert one.tasks() == 2 * ['ps 0'] + 2 * ['worker 0'] + 2 * ['worker 1']
    first, second = [own_flags(words, ['--fresh']) for words in one.words('worker 1')]
    assert set(hosts(first, 'worker_hosts')).isdisjoint(hosts(second, 'worker_hosts'))
    assert capsys.readouterr().err.endswith(
        'worker 1 ended with status 1: all tasks are restarted on other ports (0 restarts left)\n'
    )


def test_a_port_in_use_after_training(trainer):
    one = trainer(
        "if task == 'worker 0': print('2026-01-01 00:00:00: step 0, loss = 1'); sys.exit(0)\n"
        "wait_for_end('worker 0'); print('a cannot listen: b'); sys.exit(1)"
    )
    assert launch(one, 0, 2) == 1
    assert one.tasks() == ['worker 0', 'worker 1']
