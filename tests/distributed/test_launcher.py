"""Launcher with fake tasks that print, fail, are killed, or ignore signals; a fake nvidia-smi."""

import os
import re
import socket

import pytest

from cifar10.distributed import launcher
from tests.distributed.fake_tasks import KILL, launch

TASKS = ['ps 0', 'worker 0', 'worker 1']
_TELLS = "print(os.environ.get('CUDA_VISIBLE_DEVICES'), os.environ.get('CUDA_DEVICE_ORDER'))"


def _own_flags(task):
    return '--job_name={} --task_index={}'.format(*task.split()).split()


def test_every_task_is_started_once(trainer, capsys, monkeypatch):
    """It has the given flags, the addresses, its own flags, no TF_CONFIG and no proxy."""
    monkeypatch.setenv('TF_CONFIG', '{}')
    monkeypatch.setenv('no_proxy', 'a.org')
    monkeypatch.setenv('no_grpc_proxy', '')
    names = 'TF_CONFIG', 'no_proxy', 'no_grpc_proxy'
    one = trainer(f'print(*[os.environ.get(name) for name in {names}])')
    assert launch(one, 2, 3, flags=['--max_steps=5', 'x y']) == 0
    assert one.tasks() == ['ps 0', 'ps 1', 'worker 0', 'worker 1', 'worker 2']
    addresses = set()
    for task in one.tasks():
        (words,) = one.words(task)
        assert words[:2] + words[4:] == ['--max_steps=5', 'x y', *_own_flags(task)]
        addresses.add(tuple(words[2:4]))
    ((ps_hosts, worker_hosts),) = addresses
    hosts = re.findall(r'localhost:(\d+)', ps_hosts + worker_hosts)
    assert (ps_hosts.count(':'), worker_hosts.count(':'), len(set(hosts))) == (2, 3, 5)
    assert all(10000 < int(port) < 2**15 for port in hosts)  # below the ephemeral ports
    assert sorted(capsys.readouterr().out.splitlines()) == [
        f'[{task}] None a.org,localhost localhost' for task in one.tasks()
    ]


def test_lines_have_the_task_in_front(trainer, capsys):
    """Also a last line without a newline, lines in pieces, invalid UTF-8, and a full pipe."""
    one = trainer("""
sys.stdout.write('a piece of ')
sys.stdout.write('a line\\n')
print('err', file=sys.stderr)
sys.stdout.flush()
os.write(1, b'x' * 200000 + b'\\n\\xff\\n\\nlast')
""")
    assert launch(one, 0, 1) == 0
    out, err = capsys.readouterr()
    lines = ['a piece of a line', 'x' * 200000, '\\xff', '', 'last']
    assert out.splitlines() == ['[worker 0] ' + line for line in lines]
    assert err == '[worker 0] err\n' and '--ps_hosts' not in ' '.join(one.words('worker 0')[0])


def test_another_status_ends_all(trainer, capsys):
    one = trainer("if task == 'worker 1': wait_for_all(); sys.exit(76)\nwait_for()")
    assert launch(one, 1, 2) == 76 and one.tasks() == TASKS
    line = r'\S+: worker 1 ended with status 76: it is not started again\n'
    assert re.fullmatch(line, capsys.readouterr().err)


def test_a_server_that_stays(trainer, tmp_path, monkeypatch):
    """It is terminated after the end of the chief."""
    monkeypatch.setattr(launcher, 'GRACE_SECS', 0.2)
    one = trainer(
        "signal.signal(signal.SIGTERM, lambda *_: touch('asked'))\n"
        "if task == 'ps 0': touch('ready'); wait_for()\nwait_for('ready')"
    )
    assert launch(one, 1, 2) == 0 and (tmp_path / 'asked').exists()


@pytest.mark.parametrize(
    'mode, task, end, told, restarted',
    [
        ('sync', 'ps 0', KILL, 'was ended by SIGKILL: all tasks are', TASKS),
        ('average', 'worker 1', 'sys.exit(129)', 'ended with status 129: all tasks are', TASKS),
        ('async', 'ps 0', KILL, 'was ended by SIGKILL: it is', ['ps 0']),
        ('async', 'worker 0', 'sys.exit(137)', 'ended with status 137: it is', ['worker 0']),
        ('async', 'worker 1', 'sys.exit(75)', 'ended with status 75: all tasks are', TASKS),
    ],
)
def test_restarts(trainer, capsys, mode, task, end, told, restarted):
    """All addresses stay the same."""
    one = trainer(
        f'if task == {task!r} and not start: wait_for_all(); {end}\n'
        f"if task == {task!r}: touch('again')\nwait_for('again')"
    )
    assert launch(one, 1, 2, flags=['--mode=' + mode]) == 0
    assert one.tasks() == sorted(TASKS + restarted)
    first, second = one.words(task)
    assert second[:-1] == first and second[-1] == '--nofresh' or second == first
    assert capsys.readouterr().err.endswith(f': {task} {told} started again (2 restarts left)\n')


def test_each_task_has_its_restarts(trainer):
    one = trainer(
        f"if task != 'ps 0' and not start: {KILL}\nif task == 'worker 1': touch('again')\n"
        "if task == 'worker 0': wait_for('again')"
    )
    assert launch(one, 1, 2, max_restarts=1, flags=['--mode=async']) == 0
    assert one.tasks() == ['ps 0', 'worker 0', 'worker 0', 'worker 1', 'worker 1']


@pytest.mark.parametrize(
    'num_ps, end, status, max_restarts', [(0, KILL, 137, 1), (1, 'sys.exit(75)', 75, 2)]
)
def test_restarts_are_used_up(trainer, capsys, num_ps, end, status, max_restarts):
    one = trainer(f"if task == 'worker 1': {end}\nwait_for()")
    assert launch(one, num_ps, 2, max_restarts) == status
    assert one.tasks().count('worker 1') == max_restarts + 1
    said = capsys.readouterr().err
    left = [int(number) for number in re.findall(r'\((\d) restarts left\)', said)]
    assert left == list(range(max_restarts))[::-1] and said.count('no restarts are left') == 1


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
    assert first[:-3] == second[:-3] == given
    assert third[:-3] == fourth[:-3] == ['--freshness=2', '--max_steps=3', '--nofresh']


def test_a_port_that_is_taken(monkeypatch):
    with socket.socket() as server:
        server.bind(('localhost', 0))
        taken = server.getsockname()[1]
        server.listen(1)
        (free,) = launcher.free_ports(1)
        ports = [taken, free, taken]
        monkeypatch.setattr(launcher.random.SystemRandom, 'sample', lambda *unused: ports)
        assert launcher.free_ports(3) == [free]


@pytest.mark.parametrize(
    'cores, num_workers, shares',
    [
        ({4, 7, 5, 6}, 2, [[4, 5], [6, 7]]),
        ({3, 8}, 4, [[3], [3], [8], [8]]),
        ({0, 1, 2}, 2, [[], []]),
    ],
)
def test_shares_of_the_cores(monkeypatch, cores, num_workers, shares):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda process: cores, raising=False)
    assert [launcher._worker_cores(index, num_workers) for index in range(num_workers)] == shares


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """machine(num_gpus, **environment) has an nvidia-smi that lists GPUs; None has none."""

    def make(num_gpus, **environment):
        for name in ('CUDA_VISIBLE_DEVICES', 'CUDA_DEVICE_ORDER'):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        program = tmp_path / 'bin' / 'nvidia-smi'
        program.parent.mkdir()
        if num_gpus is not None:
            indexes = '\n'.join(map(str, range(num_gpus))) or 'No devices were found'
            program.write_text(f'#!/bin/sh\ntest "$1" = --query-gpu=index && echo "{indexes}"')
            program.chmod(0o755)
        monkeypatch.setenv('PATH', str(program.parent))

    return make


SHARED = 'The workers request 3 GPUs, but there are 2: workers share GPUs'


@pytest.mark.parametrize(
    'num_gpus, environment, flags, gpus, order, line',
    [
        (6, {}, ['--num_gpus=2'], ['0,1', '2,3', '4,5'], 'PCI_BUS_ID', None),
        (2, {}, [], ['0', '1', '0'], 'PCI_BUS_ID', SHARED),
        (
            8,
            {'CUDA_VISIBLE_DEVICES': '3, GPU-8f6d,MIG-5a,-1,0'},
            [],
            ['3', 'GPU-8f6d', 'MIG-5a'],
            None,
            None,
        ),
        (0, {}, [], ['None'] * 3, None, None),
        (None, {}, [], ['None'] * 3, None, None),
    ],
)
def test_gpus(machine, trainer, capsys, num_gpus, environment, flags, gpus, order, line):
    """The server sees none."""
    machine(num_gpus, **environment)
    assert launch(trainer(_TELLS), 1, 3, flags=flags) == 0
    told = capsys.readouterr().out
    found = dict(re.findall(r'\[(.*)\] (.*)', told))
    hidden = order if 'None' not in gpus else 'PCI_BUS_ID'
    assert found.pop('ps 0') == f'-1 {hidden}'
    assert found == {f'worker {index}': f'{own} {order}' for index, own in enumerate(gpus)}
    assert (SHARED in told) == (line is not None)
    assert ('GPUs: worker 0 gets ' in told) == ('None' not in gpus)
