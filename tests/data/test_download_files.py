"""Archives and parts of a download that are not what they should be."""

import hashlib
import io
import os
import tarfile

import pytest

import cifar10
from cifar10.data import dataset, download
from cifar10.errors import UserError
from tests.helpers import download_server, special_files
from tests.helpers.special_files import deadline, needs_root  # noqa: F401


def _escaping(member):
    member.name = '../../escaped'


def _linked(member):
    member.type, member.linkname, member.size = tarfile.SYMTYPE, '/etc/passwd', 0


def _linked_within(member):
    member.type, member.linkname, member.size = tarfile.SYMTYPE, 'data_batch_1.bin', 0


def _hard_linked(member):
    member.type, member.linkname, member.size = (
        tarfile.LNKTYPE,
        dataset.DIRECTORY + '/data_batch_1.bin',
        0,
    )


def _directory(member):
    member.type, member.size = tarfile.DIRTYPE, 0


def _fifo(member):
    member.type, member.size = tarfile.FIFOTYPE, 0


def _device(member):
    member.type, member.size, member.devmajor, member.devminor = tarfile.CHRTYPE, 0, 1, 5


@pytest.mark.parametrize(
    'disguise', [_escaping, _linked, _linked_within, _hard_linked, _directory, _fifo, _device]
)
def test_a_hostile_archive_writes_nothing(tmp_path, archive, disguise):
    content = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as honest, tarfile.open(
        fileobj=content, mode='w:gz'
    ) as hostile:
        for member in honest:
            data = honest.extractfile(member)
            if member.name.endswith('test_batch.bin'):
                disguise(member)
            hostile.addfile(member, data)
    data_dir = tmp_path / 'parent' / 'data'
    data_dir.mkdir(parents=True)
    (data_dir / download.CIFAR10.name).write_bytes(content.getvalue())
    with pytest.raises(UserError, match='is not the CIFAR-10 binary archive'):
        cifar10.maybe_download_and_extract(
            str(data_dir), md5=hashlib.md5(content.getvalue()).hexdigest()
        )
    assert os.listdir(str(tmp_path)) == ['parent'] and os.listdir(str(tmp_path / 'parent')) == [
        'data'
    ]
    assert os.listdir(str(data_dir)) == [download.CIFAR10.name]


@pytest.mark.parametrize(
    'name, size, most',
    [('test_batch.bin', 10001 * 3073, 30730000), ('batches.meta.txt', 4097, 4096)],
)
def test_a_file_that_is_too_long_is_not_extracted(tmp_path, archive, monkeypatch, name, size, most):
    """It packs well: the archive stays small."""
    content = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as honest, tarfile.open(
        fileobj=content, mode='w:gz'
    ) as bomb:
        for member in honest:
            data = honest.extractfile(member)
            if member.name.endswith(name):
                member.size, data = size, io.BytesIO(bytes(size))
            bomb.addfile(member, data)
    (tmp_path / download.CIFAR10.name).write_bytes(content.getvalue())
    with pytest.raises(
        UserError,
        match='is not the CIFAR-10 binary archive .*/%s is not a file of at most %d bytes'
        % (name, most),
    ):
        cifar10.maybe_download_and_extract(
            str(tmp_path), md5=hashlib.md5(content.getvalue()).hexdigest()
        )
    assert os.listdir(str(tmp_path)) == [download.CIFAR10.name]


_readers = []  # file descriptors


@pytest.fixture(autouse=True)
def no_reader_stays():
    yield
    while _readers:
        os.close(_readers.pop())


def _symlink(path, target):
    path.symlink_to(target)


def _hard_link(path, target):
    os.link(str(target), str(path))


def _special(kind):
    return lambda path, target: special_files.make(path, kind)


def _fifo_with_a_reader(path, target):
    """Which can be opened without waiting."""
    os.mkfifo(str(path))
    _readers.append(os.open(str(path), os.O_RDONLY | os.O_NONBLOCK))


def _of_another_user(path, target):
    path.write_bytes(b'theirs')
    os.chown(str(path), 12345, -1)


@pytest.mark.parametrize(
    'put',
    [_symlink, _hard_link, _fifo_with_a_reader, pytest.param(_of_another_user, marks=needs_root)]
    + [_special(kind) for kind in special_files.KINDS],
)
def test_a_part_that_is_no_part_is_not_written_to(tmp_path, put):
    """It is named before the server is asked."""
    (tmp_path / 'target').write_bytes(b'precious')
    part = tmp_path / (download.CIFAR10.name + '.part')
    put(part, tmp_path / 'target')
    before = os.lstat(str(part))
    with pytest.raises(
        UserError,
        match='^%s is a link, no file, or not yours, and so not the rest of a download: delete it$'
        % part,
    ):
        cifar10.maybe_download_and_extract(str(tmp_path), 'http://127.0.0.1:1/')
    assert (tmp_path / 'target').read_bytes() == b'precious'
    assert (
        os.path.samestat(before, os.lstat(str(part)))
        and before.st_size == os.lstat(str(part)).st_size
    )
    assert not (tmp_path / download.CIFAR10.name).exists()


def test_a_link_that_is_put_there_during_the_download(fetch, tmp_path):
    """Nothing is there at the start."""
    (tmp_path / 'target').write_bytes(b'precious')

    def put(handler, content):
        (tmp_path / (download.CIFAR10.name + '.part')).symlink_to(tmp_path / 'target')
        download_server.answer(handler, 200, content)

    with pytest.raises(UserError, match='.part is a link'):
        fetch(put)
    assert (tmp_path / 'target').read_bytes() == b'precious'


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_an_archive_that_is_no_file(fetch, tmp_path, kind):
    special_files.make(tmp_path / download.CIFAR10.name, kind)
    with pytest.raises(
        UserError,
        match='^%s is %s, not a file: delete it to have it downloaded$'
        % (tmp_path / download.CIFAR10.name, kind),
    ):
        fetch('none')
