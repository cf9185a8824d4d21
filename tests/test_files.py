"""Files that are written whole or not at all, and locks on directories."""
import os
import subprocess
import sys

import pytest

from cifar10 import files
from cifar10.errors import UserError
from tests.helpers import programs

needs_locks = pytest.mark.skipif(files.fcntl is None, reason='this system has no locks')


@pytest.mark.parametrize('content, written', [
    ('text\nof two lines', b'text\nof two lines'), ('gr\u00fcn', 'gr\u00fcn'.encode()), (b'\0\xff', b'\0\xff'), ('', b'')])
def test_text_and_bytes(tmp_path, content, written):
    for _ in range(2):  # a new file, and one that is replaced
        files.write_whole(str(tmp_path / 'file'), content, 'remedy')
        assert (tmp_path / 'file').read_bytes() == written
        assert os.listdir(str(tmp_path)) == ['file']


@pytest.mark.parametrize('content', ['new', b'new'])
def test_a_directory_in_its_place(tmp_path, content):
    (tmp_path / 'file').mkdir()
    (tmp_path / 'file' / 'kept').write_text('old')
    with pytest.raises(UserError, match=r'^Cannot write %s/file \(Is a directory\): give another$' % tmp_path):
        files.write_whole(str(tmp_path / 'file'), content, 'give another')
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file' / 'kept').read_text() == 'old'


def test_a_missing_directory(tmp_path):
    with pytest.raises(UserError, match=r'^Cannot write %s/no/file \(No such file or directory\): make it$' % tmp_path):
        files.write_whole(str(tmp_path / 'no' / 'file'), 'new', 'make it')
    assert os.listdir(str(tmp_path)) == []


def test_what_was_there_stays_if_writing_fails(tmp_path):
    """A lone surrogate cannot be encoded: the file has been opened by then."""
    (tmp_path / 'file').write_text('old')
    with pytest.raises(UnicodeEncodeError):
        files.write_whole(str(tmp_path / 'file'), '\ud800', 'remedy')
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file').read_text() == 'old'


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='this system has no full device')
@pytest.mark.parametrize('content', ['new', b'new'])
def test_what_was_there_stays_if_the_disk_is_full(tmp_path, content):
    (tmp_path / 'file').write_text('old')
    (tmp_path / 'file.new').symlink_to('/dev/full')
    with pytest.raises(UserError, match=r'^Cannot write %s/file \(No space left on device\): make room$' % tmp_path):
        files.write_whole(str(tmp_path / 'file'), content, 'make room')
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file').read_text() == 'old'


def test_a_directory_with_its_parents(tmp_path):
    for _ in range(2):
        files.make_directory(str(tmp_path / 'a' / 'b'))
    assert (tmp_path / 'a' / 'b').is_dir()


def test_a_file_in_the_way(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(UserError, match=r'^Cannot make the directory %s/file \(File exists\): give another one$' % tmp_path):
        files.make_directory(str(tmp_path / 'file'))
    with pytest.raises(UserError, match=r'^Cannot make the directory %s/file/below \(Not a directory\)' % tmp_path):
        files.make_directory(str(tmp_path / 'file' / 'below'))


@needs_locks
def test_one_holds_the_lock(tmp_path):
    with files.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked is True
        with pytest.raises(UserError, match='^in use$'):
            with files.locked(str(tmp_path), 'in use'):
                pass
    with files.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked is True


@needs_locks
def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with files.locked(str(tmp_path)):
            1 / 0  # noqa: B018
    with files.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked


@needs_locks
def test_a_second_process_waits(tmp_path):
    script = "from cifar10 import files\nwith files.locked(%r): print('locked', flush=True)" % str(tmp_path)
    with files.locked(str(tmp_path)):
        process = subprocess.Popen([sys.executable, '-c', script], env=dict(os.environ, PYTHONPATH=programs.ROOT),
                                   stdout=subprocess.PIPE, universal_newlines=True)
        assert process.stdout.readline() == 'Waiting for another process that works in %s\n' % tmp_path
    assert process.communicate(timeout=60) == ('locked\n', None) and process.returncode == 0


@needs_locks
@pytest.mark.parametrize('busy', [None, 'in use'])
def test_a_directory_that_is_moved_meanwhile(tmp_path, monkeypatch, busy):
    (tmp_path / 'run').mkdir()
    flock = files.fcntl.flock

    def move_and_lock(handle, operation):
        (tmp_path / 'run').rename(tmp_path / 'aside')
        (tmp_path / 'run').mkdir()
        return flock(handle, operation)
    monkeypatch.setattr(files.fcntl, 'flock', move_and_lock)
    with pytest.raises(UserError, match='^%s/run has just been moved by another process: start again$' % tmp_path):
        with files.locked(str(tmp_path / 'run'), busy):
            pass


def test_a_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(files, 'fcntl', None)
    for _ in range(2):
        with files.locked(str(tmp_path), 'in use') as is_locked:
            assert is_locked is False


@needs_locks
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def fail(handle, operation):
        raise OSError(95, 'Operation not supported')
    monkeypatch.setattr(files.fcntl, 'flock', fail)
    with files.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked is False
