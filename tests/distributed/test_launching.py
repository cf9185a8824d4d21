"""A launcher with tasks that are tiny programs: they print, fail, are killed, or ignore signals."""
import os
import re
import signal
import sys

import pytest

from cifar10.distributed import launching
from cifar10.errors import UserError
from tests.helpers.fake_tasks import DEADLINE_SECS, KILL, launch


def _hosts(words, name):
    found, = [word.split('=')[1].split(',') for word in words if word.startswith('--%s=' % name)]
    return found


def _own(words, flags):
    """A task's own flags, before `flags`."""
    assert words[len(words) - len(flags):] == flags
    return words[:len(words) - len(flags)]


def test_every_task_is_started_once(trainer):
    one = trainer('')
    assert launch(one, 2, 3, flags=['--max_steps=5', 'x y']) == 0
    assert one.tasks() == ['ps 0', 'ps 1', 'worker 0', 'worker 1', 'worker 2']
    addresses = set()
    for task in one.tasks():
        own = _own(one.words(task)[0], ['--max_steps=5', 'x y'])
        job_name, index = task.split()
        assert len(own) == 4 and {'--job_name=' + job_name, '--task_index=' + index} < set(own)
        addresses.add((tuple(_hosts(own, 'ps_hosts')), tuple(_hosts(own, 'worker_hosts'))))
    (servers, workers), = addresses
    assert (len(servers), len(workers)) == (2, 3) and len(set(servers + workers)) == 5
    assert all(re.fullmatch(r'localhost:\d{5}', host) for host in servers + workers)


def test_no_parameter_servers(trainer):
    one = trainer('')
    assert launch(one, 0, 2) == 0
    assert one.tasks() == ['worker 0', 'worker 1']
    assert 'ps_hosts' not in ' '.join(one.words('worker 0')[0])


def test_the_environment(trainer, capsys, monkeypatch):
    monkeypatch.setenv('TF_CONFIG', '{}')
    monkeypatch.setenv('KEPT', 'yes')
    assert launch(trainer("print(os.environ['KEPT'], os.environ.get('TF_CONFIG'))"), 0, 1) == 0
    assert capsys.readouterr().out == '[worker 0] yes None\n'


def test_lines_have_the_task_in_front(trainer, capsys):
    """Also the last one without an end, lines that come in pieces, bytes that are no text, and what is more than a pipe holds."""
    one = trainer('''
for i in range(100):
    sys.stdout.write('out %d of ' % i)
    sys.stdout.write(task + '\\n')
    print('err', i, file=sys.stderr)
os.write(1, b'x' * 200000 + b'\\n\\xff\\n\\nlast')
''')
    assert launch(one, 1, 2) == 0
    found = capsys.readouterr()
    assert found.out.endswith('\n')
    for task in ('ps 0', 'worker 0', 'worker 1'):
        front = '[%s] ' % task
        out, err = [[line[len(front):] for line in text.splitlines() if line.startswith(front)] for text in found]
        assert out == ['out %d of %s' % (i, task) for i in range(100)] + ['x' * 200000, '\\xff', '', 'last']
        assert err == ['err %d' % i for i in range(100)]
    assert len(found.out.splitlines()) == 3 * 104 and len(found.err.splitlines()) == 3 * 100


def test_lines_come_at_once(trainer, tmp_path, monkeypatch):
    """While the task runs, although it does not flush."""
    monkeypatch.delenv('PYTHONUNBUFFERED', raising=False)
    write = sys.stdout.write

    def shown(text):
        if 'hello' in text:
            (tmp_path / 'shown').write_text('')
        return write(text)
    monkeypatch.setattr(sys.stdout, 'write', shown)
    assert launch(trainer("print('hello'); wait_for('shown')"), 0, 1) == 0


def test_a_pipe_that_outlives_the_task(trainer, capsys, tmp_path):
    """A process that the task has started holds its output open: nobody waits for that."""
    one = trainer("""
os.write(1, b'begun')
number = os.fork()
if number:
    with open('child', 'w') as child: child.write(str(number))
    os._exit(0)
signal.alarm(60)
wait_for()
""")
    try:
        assert launch(one, 0, 1) == 0
        os.kill(int((tmp_path / 'child').read_text()), 0)
    finally:
        os.kill(int((tmp_path / 'child').read_text()), signal.SIGKILL)
    assert capsys.readouterr().out == '[worker 0] begun\n'


@pytest.mark.parametrize('num_ps, status', [(0, 1), (1, 2), (1, 74), (0, 76)])
def test_another_status_ends_all(trainer, capsys, num_ps, status):
    one = trainer("if task == 'worker 1': wait_for_all(); sys.exit(%d)\nwait_for()" % status)
    assert launch(one, num_ps, 2) == status
    assert one.tasks() == ['ps 0'] * num_ps + ['worker 0', 'worker 1']
    assert re.fullmatch(r'\S+: worker 1 ended with status %d: it is not started again\n' % status, capsys.readouterr().err)


def test_tasks_that_ignore_sigterm(trainer):
    one = trainer("""
signal.signal(signal.SIGTERM, signal.SIG_IGN)
touch('deaf ' + task)
if task == 'worker 1':
    wait_for('deaf ps 0')
    wait_for('deaf worker 0')
    sys.exit(3)
wait_for()
""")
    assert launch(one, 1, 2) == 3


@pytest.mark.parametrize('task, end, told', [
    ('ps 0', KILL, 'was ended by SIGKILL'), ('worker 0', 'sys.exit(75)', 'ended with status 75'),
    ('worker 0', 'sys.exit(143)', 'ended with status 143'),
    pytest.param('worker 1', 'os.kill(os.getpid(), 40)', 'was ended by signal 40',
                 marks=pytest.mark.skipif(sys.platform != 'linux', reason='only Linux has that many signals'))])
def test_one_task_is_started_again(trainer, capsys, task, end, told):
    """The others run on meanwhile, at the same addresses."""
    one = trainer("if task == %r and not start: %s\nif task == %r: touch('again')\nwait_for('again')" % (task, end, task))
    assert launch(one, 1, 2) == 0
    assert one.tasks() == sorted(['ps 0', 'worker 0', 'worker 1', task])
    first, second = one.words(task)
    assert second == first
    assert capsys.readouterr().err.endswith(': %s %s: it is started again (2 restarts left)\n' % (task, told))


def test_a_stopped_task_is_started_again(trainer, capsys, monkeypatch):
    monkeypatch.setattr(launching, 'STOPPED_SECS', 0.5)
    one = trainer("if task == 'ps 0' and not start: os.kill(os.getpid(), signal.SIGSTOP)\nif task == 'ps 0': touch('again')\n"
                  "wait_for('again')")
    assert launch(one, 1, 2) == 0
    assert one.tasks() == ['ps 0', 'ps 0', 'worker 0', 'worker 1']
    assert re.fullmatch(r'\S+: ps 0 has been stopped for .* s: it is killed\n'
                        r'\S+: ps 0 was ended by SIGKILL: it is started again \(2 restarts left\)\n', capsys.readouterr().err)


def test_a_task_that_is_stopped_for_a_moment(trainer, capsys):
    one = trainer("""
if task == 'ps 0': os.kill(os.getpid(), signal.SIGSTOP)
if task == 'worker 0':
    wait_for('ps 0')
    stat = '/proc/%d/stat' % starts('ps 0')[0]['process']
    while open(stat).read().rpartition(')')[2].split()[0] != 'T':
        time.sleep(0.01)
    os.kill(starts('ps 0')[0]['process'], signal.SIGCONT)
""")
    assert launch(one, 1, 1) == 0
    assert one.tasks() == ['ps 0', 'worker 0'] and capsys.readouterr().err == ''


def test_a_worker_that_is_done_stays_so(trainer):
    one = trainer("if task == 'worker 1' and start < 2: wait_for_end('worker 0'); %s\nif task == 'ps 0': wait_for('done')\n"
                  "if task == 'worker 1': touch('done')" % KILL)
    assert launch(one, 1, 2) == 0
    assert one.tasks() == ['ps 0', 'worker 0'] + 3 * ['worker 1']


def test_an_all_reduce_starts_again_as_a_whole(trainer, capsys):
    """One dies, one notices, one does not: that is one restart."""
    one = trainer("if start: sys.exit(0)\nif task == 'worker 1': wait_for_all(); %s\n"
                  "if task == 'worker 2': wait_for_end('worker 1'); sys.exit(75)\nwait_for()" % KILL)
    assert launch(one, 0, 3, restarts=1) == 0
    assert one.tasks() == sorted(2 * ['worker 0', 'worker 1', 'worker 2'])
    for task in set(one.tasks()):
        first, second = one.words(task)
        assert second == first
    assert re.fullmatch(r'\S+: worker [12] .*: all workers are started again \(0 restarts left\)\n', capsys.readouterr().err)


def test_an_all_reduce_whose_worker_diverges(trainer, monkeypatch):
    """The others lose it, and may end first."""
    monkeypatch.setattr(launching, 'GRACE_SECS', DEADLINE_SECS)
    one = trainer("if task == 'worker 0': sys.exit(75)\nwait_for_end('worker 0'); sys.exit(1)")
    assert launch(one, 0, 2) == 1
    assert one.tasks() == ['worker 0', 'worker 1']


def test_an_all_reduce_needs_those_that_are_done(trainer):
    one = trainer("if task == 'worker 1' and not start: wait_for_end('worker 0'); %s" % KILL)
    assert launch(one, 0, 2) == 0
    assert one.tasks() == 2 * ['worker 0'] + 2 * ['worker 1']


@pytest.mark.parametrize('num_ps, end, status, restarts', [
    (0, KILL, 137, 1), (1, KILL, 137, 0), (1, 'sys.exit(75)', 75, 2), (1, 'os.kill(os.getpid(), signal.SIGTERM)', 143, 1)])
def test_restarts_are_used_up(trainer, capsys, num_ps, end, status, restarts):
    one = trainer("if task == 'worker 1': %s\nwait_for()" % end)
    assert launch(one, num_ps, 2, restarts) == status
    assert one.tasks().count('worker 1') == restarts + 1
    said = capsys.readouterr().err
    assert [int(number) for number in re.findall(r'\((\d) restarts left\)', said)] == list(range(restarts))[::-1]
    assert said.count('no restarts are left') == 1


@pytest.mark.parametrize('num_ps', [0, 1])
def test_a_restart_resumes(trainer, num_ps):
    """What has been trained is not moved aside; what was there before is, although the chief died before it had done so."""
    given = ['--fresh', '--freshness=2', '-fresh=true', '--max_steps=3', '--nofresh', '--fresh=1']
    one = trainer("if task == 'worker 0' and start == 1: print('2026-01-01 00:00:00: step 1, loss = 1', flush=True)\n"
                  "if task == 'worker 0' and start < 3: %s" % KILL)
    assert launch(one, num_ps, 1, flags=given) == 0
    first, second, third, fourth = one.words('worker 0')
    assert _own(first, given) == _own(third, ['--freshness=2', '--max_steps=3', '--nofresh'])
    assert first == second and third == fourth


def test_servers_end_by_themselves(trainer, capsys, monkeypatch):
    monkeypatch.setattr(launching, 'SERVER_SECS', DEADLINE_SECS)
    assert launch(trainer("if task == 'ps 0': wait_for_end('worker 0')"), 1, 1) == 0
    assert capsys.readouterr().err == ''


@pytest.mark.parametrize('end', [KILL, 'sys.exit(1)'])
def test_servers_that_fail_after_the_end(trainer, end):
    assert launch(trainer("if task == 'ps 0': wait_for_end('worker 0'); %s" % end), 1, 1) == 0


@pytest.mark.parametrize('at_sigterm', ['os._exit(0)', 'None'])
def test_servers_that_stay(trainer, capsys, tmp_path, at_sigterm):
    one = trainer("signal.signal(signal.SIGTERM, lambda *_: (touch('asked'), %s))\nif task == 'ps 1': touch('ready'); wait_for()\n"
                  "wait_for('ready')" % at_sigterm)
    assert launch(one, 2, 2) == 0
    assert (tmp_path / 'asked').exists()
    assert re.fullmatch(r'\S+: ps 1 is still running \S+ s after the workers: it is ended\n', capsys.readouterr().err)


@pytest.mark.parametrize('num_ps, stream', [(0, 'stderr'), (1, 'stdout')])
def test_a_port_in_use(trainer, capsys, num_ps, stream):
    """All tasks get other ports, and nothing has been moved aside."""
    one = trainer("if start: sys.exit(0)\nif task == 'worker 0': wait_for()\nwait_for_all()\n"
                  "print('error: the port is in use: x', file=sys.%s); sys.exit(int(task == 'worker 1'))" % stream)
    assert launch(one, num_ps, 2, restarts=1, flags=['--fresh']) == 0
    assert one.tasks() == 2 * num_ps * ['ps 0'] + 2 * ['worker 0'] + 2 * ['worker 1']
    first, second = [_own(words, ['--fresh']) for words in one.words('worker 1')]
    assert set(_hosts(first, 'worker_hosts')).isdisjoint(_hosts(second, 'worker_hosts'))
    assert capsys.readouterr().err.endswith(
        'worker 1 ended with status 1: all tasks are started again on other ports (0 restarts left)\n')


def test_a_port_in_use_after_training(trainer):
    one = trainer("if task == 'worker 0': print('2026-01-01 00:00:00: step 0, loss = 1'); sys.exit(0)\n"
                  "wait_for_end('worker 0'); print('port is in use'); sys.exit(1)")
    assert launch(one, 0, 2) == 1
    assert one.tasks() == ['worker 0', 'worker 1']


@pytest.mark.parametrize('flag', ['--ps_hosts=a:1', '-worker_hosts', '--job_name', '--task_index=0'])
def test_flags_of_the_launcher(flag):
    with pytest.raises(UserError, match='^%s is set by the launcher, for each task: leave it out$' % flag):
        launching.Launcher([], ['--max_steps=1', flag], 1, 1, 0)


def test_a_program_that_cannot_be_started():
    with pytest.raises(OSError, match='/nowhere/python'):
        launching.Launcher(['/nowhere/python'], [], 1, 1, 0).run()


def test_a_bug_leaves_no_task(trainer, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError
    monkeypatch.setattr(launching.Launcher, '_failed', fail)
    with pytest.raises(ZeroDivisionError):
        launch(trainer('wait_for()'), 1, 2)
