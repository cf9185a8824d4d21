"""Files that are written whole or not at all, names, kinds and owners, and directories that stay in their place."""
import os
import subprocess
import sys

import pytest

from cifar10 import files
from cifar10.errors import UserError
from tests.helpers import programs, special_files
from tests.helpers.special_files import deadline  # noqa: F401

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


@pytest.mark.parametrize('content', ['new', b'new'])
def test_what_was_there_stays_if_the_disk_is_full(tmp_path, content):
    """A limit on the size of files acts like a full disk."""
    resource = pytest.importorskip('resource')
    (tmp_path / 'file').write_text('old')
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(UserError, match=r'^Cannot write %s/file \(File too large\): make room$' % tmp_path):
            files.write_whole(str(tmp_path / 'file'), content, 'make room')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file').read_text() == 'old'


@pytest.mark.parametrize('target', ['target', 'nowhere'])
def test_a_link_at_the_new_name_is_not_followed(tmp_path, target):
    (tmp_path / 'target').write_text('precious')
    (tmp_path / 'file.new').symlink_to(tmp_path / target)
    files.write_whole(str(tmp_path / 'file'), 'new', 'remedy')
    assert (tmp_path / 'target').read_text() == 'precious' and not (tmp_path / 'file').is_symlink()
    assert (tmp_path / 'file').read_text() == 'new' and sorted(os.listdir(str(tmp_path))) == ['file', 'target']


def test_a_link_that_is_put_at_the_new_name_meanwhile(tmp_path, monkeypatch):
    (tmp_path / 'target').write_text('precious')

    def put(path):
        os.symlink(str(tmp_path / 'target'), path)
        raise FileNotFoundError
    with monkeypatch.context() as patched:
        patched.setattr(files.os, 'remove', put)
        with pytest.raises(UserError, match=r'^Cannot write %s/file \(File exists\): remedy$' % tmp_path):
            files.write_whole(str(tmp_path / 'file'), 'new', 'remedy')
    assert (tmp_path / 'target').read_text() == 'precious'


def test_a_link_is_replaced(tmp_path):
    (tmp_path / 'target').write_text('precious')
    (tmp_path / 'file').symlink_to('target')
    files.write_whole(str(tmp_path / 'file'), 'new', 'remedy')
    assert (tmp_path / 'target').read_text() == 'precious'
    assert (tmp_path / 'file').read_text() == 'new' and not (tmp_path / 'file').is_symlink()


@pytest.mark.parametrize('leftover', ['new of a killed process', 'a FIFO', 'a socket', 'a device'])
def test_what_a_killed_process_left_is_replaced(tmp_path, leftover):
    if leftover in special_files.KINDS:
        special_files.make(tmp_path / 'file.new', leftover)
    else:
        (tmp_path / 'file.new').write_text(leftover)
    files.write_whole(str(tmp_path / 'file'), 'x', 'remedy')
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file').read_text() == 'x'


@pytest.mark.parametrize('name', ['gs://bucket/run', 's3://bucket', 'hdfs://host/x', 'file:///tmp/x', 'http://host/x', 'a/gs://b'])
def test_a_name_of_another_place(name):
    with pytest.raises(UserError, match='^%s is not a place on this machine: give a local path$' % name):
        files.check_name(name)


@pytest.mark.parametrize('name, shown', [(b'a\xff', r'a\\udcff'), (b'gr\xfcn/x', r'gr\\udcfcn/x'), (b'\xed\xa0\x80', r'\\udced.*')])
def test_a_name_that_is_not_utf_8(name, shown):
    with pytest.raises(UserError, match='^%s is not UTF-8, with which TensorFlow spells names: give another name, or' % shown):
        files.check_name(os.fsdecode(name))


@pytest.mark.parametrize('name', ['a\nb', 'a\tb', '\x1b[31m', 'nul\0', 'bell\x07', '\r'])
def test_a_name_with_control_characters(name):
    with pytest.raises(UserError, match='has control characters: give another name$') as raised:
        files.check_name(name)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize('name', ['', '/', '.', 'run', '/tmp/x/', 'gr\u00fcn', '\u6570\u636e/\u732b', '\U0001f408', 'two words', ' ',
                                  '"quoted"', "it's", 'a:b', 'a:/b', 'C:\\x', '[12]', '*', '?', '$HOME', '~', '%s', '{x}', ':/'])
def test_a_name_that_can_be_used(name):
    files.check_name(name)


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_no_regular_file(tmp_path, kind):
    special_files.make(tmp_path / 'it', kind)
    (tmp_path / 'link').symlink_to('it')
    for name in ('it', 'link'):
        with pytest.raises(UserError, match='^%s/%s is %s, not a file: remove it$' % (tmp_path, name, kind)):
            files.check_regular(str(tmp_path / name), 'remove it')


def test_a_regular_file(tmp_path):
    (tmp_path / 'file').write_text('')
    (tmp_path / 'link').symlink_to('file')
    (tmp_path / 'dangling').symlink_to('nowhere')
    for name in ('file', 'link'):
        files.check_regular(str(tmp_path / name), 'remedy')
    for name in ('missing', 'dangling'):
        with pytest.raises(FileNotFoundError):
            files.check_regular(str(tmp_path / name), 'remedy')


needs_root = pytest.mark.skipif(not hasattr(os, 'getuid') or os.getuid() != 0, reason='only root can give a file to another user')


@pytest.fixture
def shared(tmp_path):
    """A directory in which every user can write, like /tmp, with a directory of another user."""
    (tmp_path / 'shared').mkdir()
    (tmp_path / 'shared').chmod(0o1777)
    (tmp_path / 'shared' / 'theirs').mkdir()
    os.chown(str(tmp_path / 'shared' / 'theirs'), 12345, -1)
    return tmp_path / 'shared'


def _assert_not_trusted(path, named):
    for check in (files.check_trusted, files.make_directory):
        with pytest.raises(UserError, match='^%s belongs to another user, and is in a place where every user can write: give another '
                                            'directory$' % named):
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
    monkeypatch.setattr(files.os, 'getuid', lambda: 12345)
    files.check_trusted(str(shared / 'of_root' / 'new'))
    files.check_trusted(str(shared / 'theirs' / 'new'))
    monkeypatch.setattr(files.os, 'getuid', lambda: 54321)
    with pytest.raises(UserError, match='theirs belongs to another user'):
        files.check_trusted(str(shared / 'theirs'))


@needs_root
def test_what_another_user_owns_where_only_its_owner_writes(tmp_path):
    """As a home directory in /home."""
    (tmp_path / 'home').mkdir()
    (tmp_path / 'home' / 'user').mkdir()
    os.chown(str(tmp_path / 'home' / 'user'), 12345, -1)
    files.check_trusted(str(tmp_path / 'home' / 'user' / 'run'))
    files.make_directory(str(tmp_path / 'home' / 'user' / 'run'))
    assert (tmp_path / 'home' / 'user' / 'run').is_dir()


def test_own_directories_in_a_shared_place(tmp_path):
    (tmp_path / 'shared').mkdir()
    (tmp_path / 'shared').chmod(0o1777)
    files.make_directory(str(tmp_path / 'shared' / 'a' / 'b'))
    (tmp_path / 'shared' / 'link').symlink_to('a')
    files.make_directory(str(tmp_path / 'shared' / 'link' / 'c'))
    assert sorted(os.listdir(str(tmp_path / 'shared' / 'a'))) == ['b', 'c']


def test_a_system_without_users(tmp_path, monkeypatch):
    monkeypatch.delattr(files.os, 'getuid')
    files.check_trusted(str(tmp_path))


@pytest.mark.parametrize('name', ['gs://bucket/run', 'a\udcff', 'a\nb'])
def test_a_directory_whose_name_cannot_be_used(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        files.make_directory(name)
    assert os.listdir(str(tmp_path)) == []


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


@needs_locks
@pytest.mark.parametrize('change', [_move, lambda path: path.rmdir(), _replace, _replace_by_file, _replace_by_link])
def test_a_place_that_has_changed(tmp_path, change):
    path = tmp_path / 'run'
    path.mkdir()
    with files.Place(str(path)) as place:
        place.check()
        change(path)
        for _ in range(2):
            with pytest.raises(UserError, match='^%s has been moved or removed: ' % path):
                place.check()


@needs_locks
def test_a_place_that_is_removed_and_made_again(tmp_path):
    """Many file systems give the next directory the same number, unless the first one is still open."""
    path = tmp_path / 'run'
    path.mkdir()
    with files.Place(str(path)) as place:
        path.rmdir()
        for _ in range(100):
            path.mkdir()
            with pytest.raises(UserError, match='has been moved or removed'):
                place.check()
            path.rmdir()


@needs_locks
def test_a_place_that_is_put_back(tmp_path):
    path = tmp_path / 'run'
    path.mkdir()
    with files.Place(str(path)) as place:
        _move(path)
        (tmp_path / 'aside').rename(path)
        (path / 'file').write_text('')
        path.chmod(0o700)
        place.check()
        _move(path)
        path.symlink_to('aside')  # the same directory, by another way
        place.check()


@needs_locks
def test_a_place_is_closed_at_the_end(tmp_path):
    before = os.listdir('/dev/fd')
    with files.Place(str(tmp_path)):
        assert len(os.listdir('/dev/fd')) == len(before) + 1
    assert len(os.listdir('/dev/fd')) == len(before)


def test_a_place_where_directories_cannot_be_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(files, 'fcntl', None)
    with files.Place(str(tmp_path / 'missing')) as place:
        place.check()


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


@pytest.mark.skipif(not hasattr(os, 'getuid') or os.getuid() != 0, reason='only root can give files to another user')
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
            files.check_trusted(str(path))


def test_a_locale_that_is_not_utf_8(monkeypatch):
    """TensorFlow would use another directory than Python does."""
    monkeypatch.setattr(files.os, 'fsencode', lambda path: path.encode('latin-1'))
    with pytest.raises(UserError, match='is not UTF-8'):
        files.check_name('lat\u00e9')
    files.check_name('lat')
