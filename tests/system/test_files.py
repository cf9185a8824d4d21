"""Names and types of files, atomic writing."""

import os

import pytest

from cifar10.system import files
from tests.helpers import messages, special_files
from tests.helpers.special_files import deadline  # noqa: F401


@pytest.mark.parametrize(
    'content, written',
    [
        ('gr\u00fcn', 'gr\u00fcn'.encode()),
        (b'\0\xff', b'\0\xff'),
        ('', b''),
    ],
)
def test_text_and_bytes(tmp_path, content, written):
    for _ in range(2):  # a new file, then a replaced one
        files.atomic_write(str(tmp_path / 'file'), content, 'remedy')
        assert (tmp_path / 'file').read_bytes() == written
        assert os.listdir(str(tmp_path)) == ['file']


def test_where_no_file_can_be(tmp_path):
    (tmp_path / 'file').mkdir()
    for path, reason in [('file', 'Is a directory'), ('no/file', 'No such file or directory')]:
        path = str(tmp_path / path)
        with messages.raises(rf'^Cannot write {path} \({reason}\): remedy$'):
            files.atomic_write(path, 'new', 'remedy')
    assert os.listdir(str(tmp_path)) == ['file'] and os.listdir(str(tmp_path / 'file')) == []


def test_what_was_there_stays_if_writing_fails(tmp_path):
    """A lone surrogate fails in the encoding."""
    (tmp_path / 'file').write_text('old')
    with pytest.raises(UnicodeEncodeError):
        files.atomic_write(str(tmp_path / 'file'), '\ud800', 'remedy')
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file').read_text() == 'old'


def test_what_was_there_stays_if_the_disk_is_full(tmp_path):
    """A limit on file sizes simulates a full disk."""
    resource = pytest.importorskip('resource')
    (tmp_path / 'file').write_text('old')
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with messages.raises(rf'^Cannot write {tmp_path}/file \(File too large\): make room$'):
            files.atomic_write(str(tmp_path / 'file'), 'new', 'make room')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file').read_text() == 'old'


@pytest.mark.parametrize('kind', ['a link', 'a FIFO'])
def test_what_others_have_put_beside_it_stays(tmp_path, kind):
    """A file of the user, or a trap of another user."""
    (tmp_path / 'target').write_text('precious')
    others = [tmp_path / name for name in ('file.new', 'file.new.0', 'file.new.1')]
    for other in others:
        if kind == 'a link':
            other.symlink_to('target')
        else:
            special_files.make(other, kind)
    (tmp_path / 'file').symlink_to('target')  # is replaced
    before = [os.lstat(str(other)) for other in others]
    files.atomic_write(str(tmp_path / 'file'), 'new', 'remedy')
    assert (tmp_path / 'target').read_text() == 'precious' and not (tmp_path / 'file').is_symlink()
    assert (tmp_path / 'file').read_text() == 'new'
    assert [os.lstat(str(other)) for other in others] == before
    assert len(os.listdir(str(tmp_path))) == 5


@pytest.mark.parametrize('name', ['gs://bucket/run', 'file:///tmp/x', 'a/gs://b'])
def test_a_name_of_another_place(name):
    with messages.raises(f'^{name} is not a local path: give a local one$'):
        files.check_name(name)


@pytest.mark.parametrize(
    'name, shown',
    [(b'a\xff', r'a\\udcff'), (b'gr\xfcn/x', r'gr\\udcfcn/x'), (b'\xed\xa0\x80', r'\\udced.*')],
)
def test_a_name_that_is_not_utf_8(name, shown):
    with messages.raises(
        f'^{shown} is not UTF-8, which TensorFlow needs: give another name, or',
    ):
        files.check_name(os.fsdecode(name))


@pytest.mark.parametrize('name', ['a\nb', '\x1b[31m', '\x7f', '\x9f'])
def test_a_name_with_control_characters(name):
    with messages.raises('has control characters: give another name$') as raised:
        files.check_name(name)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    'name',
    ['', '/', 'gr\u00fcn', '\U0001f408', 'two words', 'C:\\x', 'a:/b', '[12]*?', '$HOME', '%s {x}'],
)
def test_a_name_that_can_be_used(name):
    files.check_name(name)


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_no_regular_file(tmp_path, kind):
    special_files.make(tmp_path / 'it', kind)
    (tmp_path / 'link').symlink_to('it')
    for name in ('it', 'link'):
        with messages.raises(f'^{tmp_path}/{name} is {kind}, not a file: remove it$'):
            files.check_regular_file(str(tmp_path / name), 'remove it')


def test_a_regular_file(tmp_path):
    (tmp_path / 'file').write_text('')
    (tmp_path / 'link').symlink_to('file')
    (tmp_path / 'dangling').symlink_to('nowhere')
    for name in ('file', 'link'):
        files.check_regular_file(str(tmp_path / name), 'remedy')
    for name in ('missing', 'dangling'):
        with pytest.raises(FileNotFoundError):
            files.check_regular_file(str(tmp_path / name), 'remedy')


def test_a_locale_that_is_not_utf_8(monkeypatch):
    """TensorFlow and Python would use different directories."""
    monkeypatch.setattr(files.os, 'fsencode', lambda path: path.encode('latin-1'))
    with messages.raises('is not UTF-8'):
        files.check_name('lat\u00e9')
    files.check_name('lat')


def test_check_writable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ('new', str(tmp_path / 'new')):
        files.check_writable(path)
    (tmp_path / 'new.new').write_text("the user's own")
    long = str(tmp_path / ('x' * 253))  # too long with the suffix .new
    for path, reason in [
        ('', 'Is a directory'),
        (str(tmp_path), 'Is a directory'),
        (str(tmp_path) + '/', 'Is a directory'),
        (str(tmp_path / 'nowhere' / 'new'), 'No such file or directory'),
        (long, 'File name too long'),
    ]:
        with messages.raises(
            rf'^Cannot write {path} \({reason}\): name a file in an existing, writable directory',
        ):
            files.check_writable(path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the user's own"]
