"""Creation and locks of directories."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from cifar10.errors import UserError
from cifar10.system import directories
from tests.helpers import messages, programs

needs_locks = pytest.mark.skipif(directories.fcntl is None, reason='this system has no locks')


@contextlib.contextmanager
def _process(code, *args):
    """Yield a Python process that runs `code`, with pipes; kill it at the end."""
    started = subprocess.Popen(
        [sys.executable, '-u', '-c', code, *args],
        env=dict(os.environ, PYTHONPATH=programs.ROOT),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    timer = threading.Timer(programs.DEADLINE_SECS, started.kill)
    timer.start()
    try:
        yield started
    finally:
        timer.cancel()
        started.kill()
        started.communicate()


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


@needs_locks
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


@needs_locks
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


@needs_locks
def test_one_holds_the_lock(tmp_path):
    path, before = str(tmp_path), len(os.listdir('/dev/fd'))
    with pytest.raises(ZeroDivisionError), directories.Lock(path, UserError('in use')):
        assert directories.is_locked(path)
        with messages.raises('^in use$'), directories.Lock(path, UserError('in use')):
            pass
        1 / 0  # noqa: B018
    assert not directories.is_locked(path) and len(os.listdir('/dev/fd')) == before
    assert os.listdir(path) == []


HOLD = """
import sys
from cifar10.system import directories
with directories.Lock(sys.argv[1], progress=print):
    print('held', flush=True)
    sys.stdin.read()
"""


@needs_locks
def test_the_lock_ends_with_its_process(tmp_path):
    path = str(tmp_path)
    with _process(HOLD, path) as holder:
        assert holder.stdout.readline() == 'held\n'
        with messages.raises('^in use$'), directories.Lock(path, UserError('in use')):
            pass
        assert directories.is_locked(path)
    assert os.listdir(path) == [directories.LOCK_FILE]  # left by the killed process
    assert directories.is_empty(path) and not directories.is_locked(path)
    with directories.Lock(path, UserError('in use')):
        assert directories.is_locked(path)
    assert os.listdir(path) == []


@needs_locks
def test_without_a_message_it_waits(tmp_path):
    lock = directories.Lock(str(tmp_path)).__enter__()
    with _process(HOLD, str(tmp_path)) as waiting:
        assert waiting.stdout.readline() == f'Waiting for another process in {tmp_path}\n'
        lock.__exit__()
        assert waiting.stdout.readline() == 'held\n'


def _fail(handle, operation):
    raise OSError(95, 'Operation not supported')


@pytest.mark.parametrize(
    'fcntl', [None, SimpleNamespace(flock=_fail, LOCK_SH=1, LOCK_EX=2, LOCK_NB=4)]
)
def test_a_system_or_a_file_system_without_locks(tmp_path, monkeypatch, fcntl):
    monkeypatch.setattr(directories, 'fcntl', fcntl)
    for _ in range(2):
        with directories.Lock(str(tmp_path), 'in use') as lock:
            lock.check()
            assert not directories.is_locked(str(tmp_path))


def test_a_directory_appears_complete_or_not_at_all(tmp_path):
    path = str(tmp_path / 'made')
    for _ in range(2):  # The second block finds the leftover of a killed process.
        with pytest.raises(ZeroDivisionError), directories.atomic_directory(path) as new:
            assert os.listdir(new) == [] and not os.path.exists(path)
            (tmp_path / new / 'file').write_text('')
            1 / 0  # noqa: B018
        assert os.listdir(str(tmp_path)) == []
        os.makedirs(os.path.join(new, 'left', 'over'))
    with directories.atomic_directory(path) as new:
        (tmp_path / new / 'file').write_text('')
    assert os.listdir(str(tmp_path)) == ['made'] and os.listdir(path) == ['file']
