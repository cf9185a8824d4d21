"""Directories in places where every user can write: what another user has put there is refused."""

import os

import pytest

from cifar10 import directories
from cifar10.errors import UserError
from tests.helpers.special_files import needs_root


@pytest.fixture
def shared(tmp_path):
    """A directory in which every user can write, like /tmp, with a directory of another user."""
    (tmp_path / 'shared').mkdir()
    (tmp_path / 'shared').chmod(0o1777)
    (tmp_path / 'shared' / 'theirs').mkdir()
    os.chown(str(tmp_path / 'shared' / 'theirs'), 12345, -1)
    return tmp_path / 'shared'


def _assert_not_trusted(path, named):
    for check in (directories.check_trusted, directories.make):
        with pytest.raises(
            UserError,
            match='^%s belongs to another user, and is in a place where every user can write: give another '
            'directory$' % named,
        ):
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
def test_a_file_of_another_user_in_a_shared_place(shared):
    (shared / 'file').write_text('')
    os.chown(str(shared / 'file'), 12345, -1)
    _assert_not_trusted(shared / 'file', shared / 'file')


@needs_root
def test_root_is_trusted(shared, monkeypatch):
    """By another user, who owns nothing but `theirs`."""
    (shared / 'of_root').mkdir()
    monkeypatch.setattr(directories.os, 'getuid', lambda: 12345)
    directories.check_trusted(str(shared / 'of_root' / 'new'))
    directories.check_trusted(str(shared / 'theirs' / 'new'))
    monkeypatch.setattr(directories.os, 'getuid', lambda: 54321)
    with pytest.raises(UserError, match='theirs belongs to another user'):
        directories.check_trusted(str(shared / 'theirs'))


@needs_root
def test_what_another_user_owns_where_only_its_owner_writes(tmp_path):
    """As a home directory in /home."""
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
def test_a_foreign_link_in_the_middle_of_a_chain(tmp_path):
    public = tmp_path / 'public'
    public.mkdir()
    public.chmod(0o1777)
    (tmp_path / 'mine').mkdir()
    (public / 'foreign').symlink_to(tmp_path / 'mine')
    os.lchown(str(public / 'foreign'), 12345, 12345)
    (tmp_path / 'link').symlink_to(public / 'foreign')
    for path in (tmp_path / 'link', tmp_path / 'link' / 'run'):
        with pytest.raises(UserError, match='^%s/foreign belongs to another user' % public):
            directories.check_trusted(str(path))
