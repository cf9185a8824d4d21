"""Creation and locks of directories."""

import contextlib
import errno
import os
import shutil
import types

import pytest

from cifar10.errors import UserError
from cifar10.system import directories
from tests.helpers import faults, locks, messages
from tests.helpers.special_files import ABANDONED, ELSEWHERE


def test_a_directory_with_its_parents(tmp_path):
    for _ in range(2):
        directories.make(str(tmp_path / 'a' / 'b'))
    assert (tmp_path / 'a' / 'b').is_dir()


def test_a_file_in_the_way(tmp_path):
    (tmp_path / 'file').write_text('')
    (tmp_path / 'dangling').symlink_to('nowhere')
    for path, place in [('file/below/deep', 'file'), ('dangling/below', 'dangling')]:
        for check in (
            directories.make,
            directories.check_no_file,
            lambda name: directories.check_exists(name, 'remedy'),
        ):
            with messages.raises(
                f'^{tmp_path / place} is not a directory: give another one$',
            ):
                check(str(tmp_path / path))
    assert sorted(os.listdir(str(tmp_path))) == ['dangling', 'file']


def test_a_directory_that_must_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path), '.'):
        directories.check_exists(path, 'make it')
    with messages.raises('^a/b does not exist: make it$'):
        directories.check_exists('a/b', 'make it')
    assert (
        directories.missing_directories('a/b') == [str(tmp_path / 'a' / 'b'), str(tmp_path / 'a')]
        and directories.missing_directories('.') == []
    )


def _move(path):
    path.rename(path.parent / 'aside')


def _replace(path):
    """Replace the directory; without an open descriptor, its inode number may be reused."""
    shutil.rmtree(str(path))
    path.mkdir()


@locks.needed
@pytest.mark.parametrize('change', [_move, _replace])
def test_a_directory_that_leaves_its_place(tmp_path, change):
    path = tmp_path / 'run'
    path.mkdir()
    with directories.Lock(str(path)) as lock:
        lock.check()
        change(path)
        for _ in range(2):
            with messages.raises(f'^{path} {messages.MOVED}: '):
                lock.check()


@locks.needed
def test_a_directory_that_is_put_back(tmp_path):
    path = tmp_path / 'run'
    path.mkdir()
    with directories.Lock(str(path)) as lock:
        _move(path)
        (path.parent / 'aside').rename(path)
        (path / 'file').write_text('')
        path.chmod(0o700)
        lock.check()
        _move(path)
        path.symlink_to('aside')  # the same directory by a link
        lock.check()


@locks.needed
def test_one_holds_the_lock(tmp_path):
    path, before = str(tmp_path), len(os.listdir('/dev/fd'))
    with pytest.raises(ZeroDivisionError), directories.Lock(path, UserError('in use')) as lock:
        assert lock.is_held and directories.is_locked(path)
        with messages.raises('^in use$'), directories.Lock(path, UserError('in use')):
            pass
        1 / 0  # noqa: B018
    assert not directories.is_locked(path) and len(os.listdir('/dev/fd')) == before
    assert os.listdir(path) == []


HOLD = """
import sys
from cifar10.system import directories
with directories.Lock(sys.argv[1]):
    print('held', flush=True)
    sys.stdin.read()
"""


@locks.needed
def test_the_lock_excludes_another_machine(tmp_path, monkeypatch):
    """NFS keeps a lock local to the machine, unless it is on a file open for writing."""
    with locks.process(locks.NFS + HOLD, str(tmp_path)) as holder:
        assert holder.stdout.readline() == 'held\n'
        locks.be_on_nfs(monkeypatch)
        with messages.raises('^in use$'), directories.Lock(str(tmp_path), UserError('in use')):
            pass
        assert directories.is_locked(str(tmp_path))
        holder.kill()
        holder.wait()
    assert os.listdir(str(tmp_path)) == [directories.LOCK_FILE]  # left by the killed process
    assert directories.is_empty(str(tmp_path)) and not directories.is_locked(str(tmp_path))
    with directories.Lock(str(tmp_path), UserError('in use')) as lock:
        assert lock.is_held
    assert os.listdir(str(tmp_path)) == []


ASK = """
import fcntl, sys
from cifar10.system import directories
def flock(file, operation, flock=fcntl.flock):
    flock(file, operation)
    print('asking', flush=True)
    sys.stdin.read()
fcntl.flock = flock
print(directories.is_locked(sys.argv[1]))
"""


@locks.needed
def test_the_question_does_not_refuse_a_trainer(tmp_path, monkeypatch):
    """The trainer starts while another process asks."""
    (tmp_path / '.cifar10.lock').write_text('')
    with locks.process(ASK, str(tmp_path)) as asking:
        assert asking.stdout.readline() == 'asking\n'
        answers = []

        def wait(unused_secs):
            answers.append(asking.communicate(timeout=60)[0])

        clock = types.SimpleNamespace(sleep=wait)
        monkeypatch.setattr(directories, 'time', clock, raising=False)
        with directories.Lock(str(tmp_path), UserError('in use')) as lock:
            assert lock.is_held and answers == ['False\n']


@locks.needed
@faults.needs_mounts
def test_the_question_needs_no_permission_to_write(tmp_path):
    code = 'import sys; from cifar10.system import directories; print(directories.is_locked(sys.argv[1]))'
    for is_locked in (True, False):
        with directories.Lock(str(tmp_path)) if is_locked else contextlib.nullcontext():
            wrapper = faults.read_only(tmp_path)
            with locks.process(code, str(tmp_path), wrapper=wrapper) as asking:
                assert asking.communicate(timeout=60)[0] == f'{is_locked}\n'


@locks.needed
def test_the_file_of_the_former_holder_is_not_used(tmp_path, monkeypatch):
    """It is removed after another process has opened it: a third process would make a new one."""
    path, flock = str(tmp_path), directories.fcntl.flock
    former = directories.Lock(path).__enter__()

    def release_and_lock(file, operation):
        monkeypatch.undo()
        former.__exit__()
        return flock(file, operation)

    monkeypatch.setattr(directories.fcntl, 'flock', release_and_lock)
    with directories.Lock(path, UserError('in use')):
        assert directories.is_locked(path)
    assert os.listdir(path) == []


@locks.needed
def test_the_file_of_a_killed_process_of_another_user(tmp_path, monkeypatch):
    """It cannot be opened for writing; the lock works on this machine."""
    path, lock_file, open_file = str(tmp_path), tmp_path / directories.LOCK_FILE, os.open
    lock_file.write_text('')

    def open_as_another_user(name, flags, *args, **kwargs):
        if name == directories.LOCK_FILE and flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_file(name, flags, *args, **kwargs)

    monkeypatch.setattr(os, 'open', open_as_another_user)
    with directories.Lock(path, UserError('in use')) as lock:
        assert lock.is_held and directories.is_locked(path)
        with messages.raises('^in use$'):
            directories.Lock(path, UserError('in use')).__enter__()


@locks.needed
def test_a_lock_file_that_cannot_be_written(tmp_path):
    """A trainer is refused. A writer of data does not need the lock."""
    (tmp_path / directories.LOCK_FILE).symlink_to('elsewhere')
    with messages.raises(f'^Cannot write {tmp_path}/.cifar10.lock \\(.*: make '):
        directories.Lock(str(tmp_path), UserError('in use')).__enter__()
    with directories.Lock(str(tmp_path)) as lock:
        assert not lock.is_held
    assert os.listdir(str(tmp_path)) == [directories.LOCK_FILE]


@locks.needed
def test_a_directory_that_is_moved_meanwhile(tmp_path, monkeypatch):
    (tmp_path / 'run').mkdir()
    flock = directories.fcntl.flock

    def move_and_lock(handle, operation):
        (tmp_path / 'run').rename(tmp_path / 'aside')
        (tmp_path / 'run').mkdir()
        return flock(handle, operation)

    monkeypatch.setattr(directories.fcntl, 'flock', move_and_lock)
    complaint = f'^{tmp_path}/run has just been moved or removed by another process: start again$'
    with messages.raises(complaint), directories.Lock(str(tmp_path / 'run'), UserError('in use')):
        pass


def test_a_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(directories, 'fcntl', None)
    for _ in range(2):
        with directories.Lock(str(tmp_path), UserError('in use')) as lock:
            lock.check()
            assert not lock.is_held and not directories.is_locked(str(tmp_path))


@locks.needed
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """Directories that may belong to another process are kept."""

    def fail(handle, operation):
        raise OSError(95, 'Operation not supported')

    leftover = f'.cifar10-incomplete-{ABANDONED}x'
    (tmp_path / leftover).mkdir()
    monkeypatch.setattr(directories.fcntl, 'flock', fail)
    with directories.write_lock(str(tmp_path)):
        assert not directories.is_locked(str(tmp_path))
    assert os.listdir(str(tmp_path)) == [leftover]


@locks.needed
def test_leftovers_of_processes_that_surely_have_ended(tmp_path):
    own, parent = directories.process_mark(), f'~{os.uname().nodename}~{os.getppid()}~'
    kept = [f'.cifar10-incomplete-{mark}x' for mark in (ELSEWHERE, parent, '')]
    removed = [f'.cifar10-incomplete-{mark}x' for mark in (ABANDONED, own)]
    for name in kept + removed:
        (tmp_path / name / 'data').mkdir(parents=True)
    with directories.write_lock(str(tmp_path)):
        pass
    assert sorted(os.listdir(str(tmp_path))) == sorted(kept)


WRITE = """
import os, sys
from cifar10.system import directories
with directories.write_lock(os.path.dirname(sys.argv[1])), directories.atomic_directory(sys.argv[1]) as new:
    open(os.path.join(new, 'first'), 'w').close()
    print('writing', flush=True)
    sys.stdin.read()
    open(os.path.join(new, 'second'), 'w').close()
"""


@locks.needed
def test_useless_locks_cost_no_work(tmp_path, monkeypatch):
    """Two processes hold the lock, as on two machines whose file system has only local locks."""
    path = tmp_path / 'theirs'
    with locks.process(locks.USELESS + WRITE, str(path)) as writer:
        assert writer.stdout.readline() == 'writing\n'
        monkeypatch.setattr(directories.fcntl, 'flock', lambda *unused: None)
        with directories.write_lock(str(tmp_path)):
            pass
        monkeypatch.undo()
        assert writer.communicate(timeout=60) == ('', None) and writer.returncode == 0
    assert sorted(os.listdir(str(path))) == ['first', 'second']
    assert os.listdir(str(tmp_path)) == ['theirs']
