"""Launcher with fake tasks that print, fail, are killed, or ignore signals."""

import os
import re
import socket
import sys

import pytest

from cifar10.distributed import launcher
from tests.helpers.fake_tasks import DEADLINE_SECS, hosts, launch, own_flags


def test_every_task_is_started_once(trainer, capsys, monkeypatch):
    """It has the given flags, its own flags and addresses, and no TF_CONFIG."""
    monkeypatch.setenv('TF_CONFIG', '{}')
    monkeypatch.setenv('KEPT', 'yes')
    one = trainer("print(os.environ['KEPT'], os.environ.get('TF_CONFIG'))")
    assert launch(one, 2, 3, flags=['--max_steps=5', 'x y']) == 0
    assert one.tasks() == ['ps 0', 'ps 1', 'worker 0', 'worker 1', 'worker 2']
    addresses = set()
    for task in one.tasks():
        own = own_flags(one.words(task)[0], ['--max_steps=5', 'x y'])
        job_name, index = task.split()
        assert len(own) == 4 and {'--job_name=' + job_name, '--task_index=' + index} < set(own)
        addresses.add((tuple(hosts(own, 'ps_hosts')), tuple(hosts(own, 'worker_hosts'))))
    ((servers, workers),) = addresses
    assert (len(servers), len(workers)) == (2, 3) and len(set(servers + workers)) == 5
    for host in servers + workers:  # below the ephemeral ports
        assert 10000 < int(re.fullmatch(r'localhost:(\d+)', host).group(1)) < 2**15
    assert sorted(capsys.readouterr().out.splitlines()) == [
        f'[{task}] yes None' for task in one.tasks()
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
    assert err == '[worker 0] err\n'
    assert '--ps_hosts' not in ' '.join(one.words('worker 0')[0])


def test_lines_come_at_once(trainer, tmp_path, monkeypatch):
    """They are printed while the task runs, although it does not flush."""
    monkeypatch.delenv('PYTHONUNBUFFERED', raising=False)
    write = sys.stdout.write

    def shown(text):
        if 'hello' in text:
            (tmp_path / 'shown').write_text('')
        return write(text)

    monkeypatch.setattr(sys.stdout, 'write', shown)
    assert launch(trainer("print('hello'); wait_for('shown')"), 0, 1) == 0


def test_another_status_ends_all(trainer, capsys):
    one = trainer("if task == 'worker 1': wait_for_all(); sys.exit(76)\nwait_for()")
    assert launch(one, 1, 2) == 76
    assert one.tasks() == ['ps 0', 'worker 0', 'worker 1']
    assert re.fullmatch(
        r'\S+: worker 1 ended with status 76: it is not restarted\n', capsys.readouterr().err
    )


def test_servers_end_by_themselves(trainer, capsys, monkeypatch):
    monkeypatch.setattr(launcher, 'PS_GRACE_SECS', DEADLINE_SECS)
    one = trainer("if task == 'ps 0': wait_for_end('worker 0'); sys.exit(1)")
    assert launch(one, 1, 1) == 0 and capsys.readouterr().err == ''


def test_servers_that_stay(trainer, capsys, tmp_path):
    one = trainer(
        "signal.signal(signal.SIGTERM, lambda *_: touch('asked'))\nif task == 'ps 1': touch('ready'); wait_for()\n"
        "wait_for('ready')"
    )
    assert launch(one, 2, 2) == 0
    assert (tmp_path / 'asked').exists()
    assert re.fullmatch(
        r'\S+: ps 1 still runs \S+ s after the end of the workers: it is terminated\n',
        capsys.readouterr().err,
    )


def test_a_port_that_is_taken(monkeypatch):
    with socket.socket() as server:
        server.bind(('localhost', 0))
        taken = server.getsockname()[1]
        server.listen(1)
        (free,) = launcher.free_ports(1)
        monkeypatch.setattr(
            launcher.random.SystemRandom, 'sample', lambda *unused: [taken, free, taken]
        )
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


def test_a_system_that_does_not_tell_the_cores(monkeypatch):
    monkeypatch.delattr(os, 'sched_getaffinity', raising=False)
    assert launcher._worker_cores(0, 1) == []


@pytest.mark.skipif(
    not hasattr(os, 'sched_getaffinity'), reason='a system that does not tell the cores'
)
def test_workers_share_the_cores(trainer, capsys):
    """Each worker gets one core, the parameter server all."""
    cores = os.sched_getaffinity(0)
    one = trainer(
        f"""
num_cores = {len(cores)} if task == 'ps 0' else 1
while len(os.sched_getaffinity(0)) != num_cores:  # not set """
        """yet
    time.sleep(0.01)
print(*os.sched_getaffinity(0))"""
    )
    assert launch(one, 1, len(cores)) == 0
    found = dict(re.findall(r'\[(.*)\] (.*)', capsys.readouterr().out))
    assert set(map(int, found.pop('ps 0').split())) == cores
    assert sorted(map(int, found.values())) == sorted(cores)
