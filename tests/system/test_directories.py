"""Creation and locks of directories."""

import contextlib
import os
import subprocess
import sys
import threading

import pytest

from cifar10.system import directories
from tests.helpers import messages, programs


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
            with messages.raises(f'^{tmp_path / place} is not a directory: give another one$'):
                check(str(tmp_path / path))
    assert sorted(os.listdir(str(tmp_path))) == ['dangling', 'file']


def test_one_holds_the_lock(tmp_path):
    path, before = str(tmp_path), len(os.listdir('/dev/fd'))
    with pytest.raises(ZeroDivisionError), directories.lock(path, 'in use'):
        assert directories.is_locked(path)
        with messages.raises('^in use$'), directories.lock(path, 'in use'):
            pass
        1 / 0  # noqa: B018
    assert not directories.is_locked(path) and len(os.listdir('/dev/fd')) == before
    assert os.listdir(path) == [directories.LOCK_FILE] and directories.is_empty(path)


HOLD = """
import sys
from cifar10.system import directories
with directories.lock(sys.argv[1], progress=print):
    print('held', flush=True)
    sys.stdin.read()
"""


def test_the_lock_ends_with_its_process(tmp_path):
    path = str(tmp_path)
    with _process(HOLD, path) as holder:
        assert holder.stdout.readline() == 'held\n'
        with messages.raises('^in use$'), directories.lock(path, 'in use'):
            pass
        assert directories.is_locked(path)
    assert os.listdir(path) == [directories.LOCK_FILE]  # left by the killed process
    assert directories.is_empty(path) and not directories.is_locked(path)
    with directories.lock(path, 'in use'):
        assert directories.is_locked(path)
    assert os.listdir(path) == [directories.LOCK_FILE] and directories.is_empty(path)


def test_without_a_message_it_waits(tmp_path):
    held = contextlib.ExitStack()
    held.enter_context(directories.lock(str(tmp_path)))
    with _process(HOLD, str(tmp_path)) as waiting:
        assert waiting.stdout.readline() == f'Waiting for another process in {tmp_path}\n'
        held.close()
        assert waiting.stdout.readline() == 'held\n'


def _fail(handle, operation):
    raise OSError(95, 'Operation not supported')


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(directories.fcntl, 'flock', _fail)
    with directories.lock(str(tmp_path), 'in use'), directories.lock(str(tmp_path), 'in use'):
        assert not directories.is_locked(str(tmp_path))


def test_the_lock_of_another_user(tmp_path, monkeypatch):
    """In /tmp, nobody else may open the file for writing; root can, so that is imitated."""
    with directories.lock(str(tmp_path)):
        pass

    def refuse(path, mode='r'):
        if mode != 'r':
            raise PermissionError(13, 'Permission denied', path)
        return open(path, mode)

    monkeypatch.setattr(directories, 'open', refuse, raising=False)
    with directories.lock(str(tmp_path)):
        assert directories.is_locked(str(tmp_path))
    with messages.raises('lock .Permission denied.: make'), directories.lock(str(tmp_path), 'busy'):
        pass


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
