"""Directories that are made, locked, and stay in their place."""

import os
import subprocess
import sys

import pytest

from cifar10 import directories
from cifar10.errors import UserError
from tests.helpers import programs

needs_locks = pytest.mark.skipif(directories.fcntl is None, reason='this system has no locks')


@pytest.mark.parametrize('name', ['gs://bucket/run', 'a\udcff', 'a\nb'])
def test_a_directory_whose_name_cannot_be_used(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        directories.make(name)
    assert os.listdir(str(tmp_path)) == []


def test_a_directory_with_its_parents(tmp_path):
    for _ in range(2):
        directories.make(str(tmp_path / 'a' / 'b'))
    assert (tmp_path / 'a' / 'b').is_dir()


def test_a_file_in_the_way(tmp_path):
    (tmp_path / 'file').write_text('')
    (tmp_path / 'link').symlink_to('file')
    (tmp_path / 'dangling').symlink_to('nowhere')
    for path, complaint in [
        ('file', 'file is a file'),
        ('file/below/deep', 'file is a file'),
        ('link', 'link is a file'),
        ('dangling/below', 'dangling is a link to nothing'),
    ]:
        for check in (
            directories.make,
            directories.check_no_file,
            lambda name: directories.check_exists(name, 'remedy'),
        ):
            with pytest.raises(
                UserError,
                match='^%s/%s, not a directory: give another one$' % (tmp_path, complaint),
            ):
                check(str(tmp_path / path))
    assert sorted(os.listdir(str(tmp_path))) == ['dangling', 'file', 'link']


def test_a_directory_that_must_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path), '.'):
        directories.check_exists(path, 'make it')
    with pytest.raises(UserError, match='^a/b does not exist: make it$'):
        directories.check_exists('a/b', 'make it')
    assert (
        directories.missing('a/b') == [str(tmp_path / 'a' / 'b'), str(tmp_path / 'a')]
        and directories.missing('.') == []
    )


def _move(path):
    path.rename(path.parent / 'aside')


def _replace(path):
    _move(path)
    path.mkdir()


def _replace_by_file(path):
    path.rmdir()
    path.write_text('')


def _replace_by_link(path):
    _move(path)
    (path.parent / 'other').mkdir()
    path.symlink_to('other')


@pytest.fixture
def held(tmp_path):
    """A directory and its Place."""
    path = tmp_path / 'run'
    path.mkdir()
    with directories.Place(str(path)) as place:
        yield path, place


@needs_locks
@pytest.mark.parametrize(
    'change', [_move, lambda path: path.rmdir(), _replace, _replace_by_file, _replace_by_link]
)
def test_a_place_that_has_changed(held, change):
    path, place = held
    place.check()
    change(path)
    for _ in range(2):
        with pytest.raises(UserError, match='^%s has been moved or removed: ' % path):
            place.check()


@needs_locks
def test_a_place_that_is_removed_and_made_again(held):
    """Many file systems give the next directory the same number, unless the first one is still
    open."""
    path, place = held
    path.rmdir()
    for _ in range(100):
        path.mkdir()
        with pytest.raises(UserError, match='has been moved or removed'):
            place.check()
        path.rmdir()


@needs_locks
def test_a_place_that_is_put_back(held):
    path, place = held
    _move(path)
    (path.parent / 'aside').rename(path)
    (path / 'file').write_text('')
    path.chmod(0o700)
    place.check()
    _move(path)
    path.symlink_to('aside')  # the same directory, by another way
    place.check()


@needs_locks
def test_a_place_is_closed_at_the_end(tmp_path):
    before = os.listdir('/dev/fd')
    with directories.Place(str(tmp_path)):
        assert len(os.listdir('/dev/fd')) == len(before) + 1
    assert len(os.listdir('/dev/fd')) == len(before)


def test_a_place_where_directories_cannot_be_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(directories, 'fcntl', None)
    with directories.Place(str(tmp_path / 'missing')) as place:
        place.check()


@needs_locks
def test_one_holds_the_lock(tmp_path):
    with directories.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked is True
        with pytest.raises(UserError, match='^in use$'):
            with directories.locked(str(tmp_path), 'in use'):
                pass
    with directories.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked is True


@needs_locks
def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with directories.locked(str(tmp_path)):
            1 / 0  # noqa: B018
    with directories.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked


@needs_locks
def test_a_second_process_waits(tmp_path):
    script = (
        "from cifar10 import directories\nwith directories.locked(%r): print('locked', flush=True)"
        % str(tmp_path)
    )
    with directories.locked(str(tmp_path)):
        process = subprocess.Popen(
            [sys.executable, '-c', script],
            env=dict(os.environ, PYTHONPATH=programs.ROOT),
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        assert (
            process.stdout.readline() == 'Waiting for another process that works in %s\n' % tmp_path
        )
    assert process.communicate(timeout=60) == ('locked\n', None) and process.returncode == 0


@needs_locks
@pytest.mark.parametrize('busy, is_made_again', [(None, True), ('in use', True), (None, False)])
def test_a_directory_that_is_moved_meanwhile(tmp_path, monkeypatch, busy, is_made_again):
    (tmp_path / 'run').mkdir()
    flock = directories.fcntl.flock

    def move_and_lock(handle, operation):
        (tmp_path / 'run').rename(tmp_path / 'aside')
        if is_made_again:
            (tmp_path / 'run').mkdir()
        return flock(handle, operation)

    monkeypatch.setattr(directories.fcntl, 'flock', move_and_lock)
    with pytest.raises(
        UserError,
        match='^%s/run has just been moved or removed by another process: start again$' % tmp_path,
    ):
        with directories.locked(str(tmp_path / 'run'), busy):
            pass


def test_a_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(directories, 'fcntl', None)
    for _ in range(2):
        with directories.locked(str(tmp_path), 'in use') as is_locked:
            assert is_locked is False


@needs_locks
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def fail(handle, operation):
        raise OSError(95, 'Operation not supported')

    monkeypatch.setattr(directories.fcntl, 'flock', fail)
    with directories.locked(str(tmp_path), 'in use') as is_locked:
        assert is_locked is False


def test_too_many_directories_one_in_the_other(tmp_path):
    path = str(tmp_path) + 1500 * '/a'
    with pytest.raises(
        UserError, match=r'^Cannot make the directory %s \(.+\): give another one$' % path
    ):
        directories.make(path)
