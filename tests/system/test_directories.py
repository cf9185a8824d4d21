"""Creation, trust and locks of directories."""

import os

import pytest

from cifar10.errors import UserError
from cifar10.system import directories
from tests.helpers import messages
from tests.helpers.special_files import needs_root

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
    for path, place in [
        ('file', 'file'),
        ('file/below/deep', 'file'),
        ('link', 'link'),
        ('dangling/below', 'dangling'),
    ]:
        for check in (
            directories.make,
            directories.check_no_file,
            lambda name: directories.check_exists(name, 'remedy'),
        ):
            with messages.raises(
                f'^{tmp_path / place} is not a directory: give another one$',
            ):
                check(str(tmp_path / path))
    assert sorted(os.listdir(str(tmp_path))) == ['dangling', 'file', 'link']


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
    path.rmdir()
    path.mkdir()


def _replace_by_link(path):
    _move(path)
    (path.parent / 'other').mkdir()
    path.symlink_to('other')


@needs_locks
@pytest.mark.parametrize('change', [_move, lambda path: path.rmdir(), _replace, _replace_by_link])
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
    with pytest.raises(ZeroDivisionError), directories.Lock(path, 'in use') as lock:
        assert lock.is_held and directories.is_locked(path)
        with messages.raises('^in use$'), directories.Lock(path, 'in use'):
            pass
        1 / 0  # noqa: B018
    assert not directories.is_locked(path) and len(os.listdir('/dev/fd')) == before


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
    complaint = f'^{tmp_path}/run has just been moved or removed by another process: start again$'
    with messages.raises(complaint), directories.Lock(str(tmp_path / 'run'), busy):
        pass


def test_a_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(directories, 'fcntl', None)
    for _ in range(2):
        with directories.Lock(str(tmp_path), 'in use') as lock:
            lock.check()
            assert not lock.is_held and not directories.is_locked(str(tmp_path))


@needs_locks
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """Directories that may belong to another process are kept."""

    def fail(handle, operation):
        raise OSError(95, 'Operation not supported')

    (tmp_path / '.cifar10-incomplete-x').mkdir()
    monkeypatch.setattr(directories.fcntl, 'flock', fail)
    with directories.write_lock(str(tmp_path)):
        assert os.listdir(str(tmp_path)) == ['.cifar10-incomplete-x']
    assert os.listdir(str(tmp_path)) == ['.cifar10-incomplete-x']


@pytest.fixture
def shared(tmp_path):
    """A world-writable directory, like /tmp, with a directory of another user."""
    (tmp_path / 'shared').mkdir()
    (tmp_path / 'shared').chmod(0o1777)
    (tmp_path / 'shared' / 'theirs').mkdir()
    os.chown(str(tmp_path / 'shared' / 'theirs'), 12345, -1)
    return tmp_path / 'shared'


def _assert_not_trusted(path, named):
    for check in (directories.check_trusted, directories.make):
        with messages.raises(f'^{named} belongs to another user, in a '):
            check(str(path))


@needs_root
def test_what_another_user_owns_in_a_shared_place(shared, monkeypatch):
    theirs = shared / 'theirs'
    for path in (theirs, theirs / 'new', theirs / 'a' / 'b', shared / 'x' / '..' / 'theirs'):
        _assert_not_trusted(path, theirs)
    monkeypatch.chdir(shared)
    _assert_not_trusted('theirs', theirs)
    (theirs / 'mine').mkdir()
    _assert_not_trusted(theirs / 'mine', theirs)
    assert os.listdir(str(theirs)) == ['mine']


@needs_root
@pytest.mark.parametrize('target', ['mine', 'nowhere'])
def test_a_link_of_another_user_in_a_shared_place(shared, tmp_path, target):
    (tmp_path / 'mine').mkdir()
    link = shared / 'link'
    link.symlink_to(tmp_path / target)
    os.chown(str(link), 12345, -1, follow_symlinks=False)
    for path in (link, link / 'below'):
        _assert_not_trusted(path, link)
    assert os.listdir(str(tmp_path / 'mine')) == []


@needs_root
def test_an_own_link_to_what_another_user_owns(shared, tmp_path):
    (tmp_path / 'link').symlink_to(shared / 'theirs')
    for path in (tmp_path / 'link', tmp_path / 'link' / 'below'):
        _assert_not_trusted(path, shared / 'theirs')


@needs_root
def test_root_is_trusted(shared, monkeypatch):
    """Root is trusted by another user, the owner of `theirs` only."""
    (shared / 'of_root').mkdir()
    monkeypatch.setattr(directories.os, 'getuid', lambda: 12345)
    directories.check_trusted(str(shared / 'of_root' / 'new'))
    directories.check_trusted(str(shared / 'theirs' / 'new'))
    monkeypatch.setattr(directories.os, 'getuid', lambda: 54321)
    with messages.raises('theirs belongs to another user'):
        directories.check_trusted(str(shared / 'theirs'))


@needs_root
def test_what_another_user_owns_where_only_its_owner_writes(tmp_path):
    """A home directory in /home."""
    (tmp_path / 'home').mkdir()
    (tmp_path / 'home' / 'user').mkdir()
    os.chown(str(tmp_path / 'home' / 'user'), 12345, -1)
    directories.check_trusted(str(tmp_path / 'home' / 'user' / 'run'))
    directories.make(str(tmp_path / 'home' / 'user' / 'run'))
    assert (tmp_path / 'home' / 'user' / 'run').is_dir()


def test_own_directories_in_a_shared_place(tmp_path):
    (tmp_path / 'shared').mkdir()
    (tmp_path / 'shared').chmod(0o1777)
    directories.make(str(tmp_path / 'shared' / 'a' / 'b'))
    (tmp_path / 'shared' / 'link').symlink_to('a')
    directories.make(str(tmp_path / 'shared' / 'link' / 'c'))
    assert sorted(os.listdir(str(tmp_path / 'shared' / 'a'))) == ['b', 'c']


def test_a_system_without_users(tmp_path, monkeypatch):
    monkeypatch.delattr(directories.os, 'getuid')
    directories.check_trusted(str(tmp_path))


@needs_root
def test_a_foreign_link_in_the_middle_of_a_chain(shared, tmp_path):
    (tmp_path / 'mine').mkdir()
    (shared / 'foreign').symlink_to(tmp_path / 'mine')
    os.lchown(str(shared / 'foreign'), 12345, 12345)
    (tmp_path / 'link').symlink_to(shared / 'foreign')
    for path in (tmp_path / 'link', tmp_path / 'link' / 'run'):
        _assert_not_trusted(path, shared / 'foreign')
