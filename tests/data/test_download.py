"""Downloads from one server on localhost that breaks off or sends errors."""

import contextlib
import hashlib
import os
import re
import tarfile
import time
import types

import pytest

import cifar10
from cifar10.cli import data_flags
from cifar10.data import dataset, published, transport
from tests.helpers import data_sets, download_server, messages, programs
from tests.helpers.download_server import assert_complete

NAME = published.CIFAR10.archives[0].name
PART = f'{NAME}.part'


def test_whole_archive(fetch, tmp_path, capsys):
    server = fetch('none')
    assert_complete(tmp_path)
    assert server.ranges == [None]
    line = r'^Downloading from 127.0.0.1:\d+ 100%: (\d+) of \1 kB, \d+ kB/s, 0:00:00 left$'
    assert re.search(line, capsys.readouterr().out, re.M)
    os.remove(str(tmp_path / NAME))
    assert fetch('none').ranges == []  # the files exist


def test_a_transfer_cut_short_is_resumed(fetch, tmp_path, archive):
    server = fetch('cut short', 'cut short', 'none')
    assert_complete(tmp_path)
    half = len(archive) // 2
    ends = half, half + (len(archive) - half) // 2
    assert server.ranges == [None] + [f'bytes={end}-' for end in ends]


def test_a_passing_error_is_retried(fetch, tmp_path):
    assert len(fetch(429, 408, 'none').ranges) == 3
    assert_complete(tmp_path)


@pytest.mark.parametrize('status, tries', [(503, 3), (404, 1)])
def test_a_server_that_stays_broken(archive, tmp_path, monkeypatch, status, tries):
    slept = []
    # Threads of other tests may call time.sleep.
    clock = types.SimpleNamespace(sleep=slept.append, monotonic=time.monotonic)
    monkeypatch.setattr(transport, 'time', clock)
    server = download_server.Server(archive, [status])
    with contextlib.closing(server), messages.raises(
        rf'^Cannot download {server.url} \(HTTP Error {status}: .*, or leave out `data_url`'
    ):
        cifar10.maybe_download_and_extract(str(tmp_path), server.url)
    assert len(server.ranges) == tries and slept == [1, 2][: tries - 1]
    assert os.listdir(str(tmp_path)) == []


def test_a_corrupt_archive_is_not_kept(fetch, tmp_path):
    with messages.raises('not the published archive .its MD5 is [0-9a-f]{32}, not'):
        fetch('corrupt')
    assert os.listdir(str(tmp_path)) == []


@pytest.mark.parametrize('size', [1000, 10000000])
def test_a_leftover_of_another_file_is_deleted(fetch, tmp_path, size):
    (tmp_path / PART).write_bytes(b'x' * size)
    server = fetch('none')
    assert_complete(tmp_path)
    assert server.ranges == [f'bytes={size}-', None]


def test_an_unreachable_server_or_malformed_url(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, '_RETRY_SECS', 0)
    for url in ('http://127.0.0.1:1/archive', 'archive', 'http://[bad/archive'):
        with messages.raises('^Cannot download ' + re.escape(url)):
            cifar10.maybe_download_and_extract(str(tmp_path / 'a' / 'b'), url)
    assert os.listdir(str(tmp_path)) == []  # the new parents are removed too


@pytest.mark.parametrize('headers', [{'Content_Length': '7'}, {}])
def test_a_response_shorter_than_the_partial_file(fetch, tmp_path, archive, headers):
    """For example a login page of a hotel."""

    def answer(handler, content):
        download_server.answer(handler, 200, b'log in!', **headers)

    (tmp_path / PART).write_bytes(archive[:1000])
    complaint = (
        rf'the file on the server is shorter than ({tmp_path}/.*\.part.*): delete the partial '
    )
    with messages.raises(complaint) as raised:
        fetch(answer)
    (part,) = tmp_path.iterdir()
    assert raised.match(re.escape(str(part))) and part.read_bytes() == archive[:1000]
    assert fetch('none').ranges == ['bytes=1000-']
    assert_complete(tmp_path)


@pytest.mark.parametrize('has_length', [True, False])
def test_a_whole_file_in_place_of_the_rest(fetch, tmp_path, archive, has_length):
    """The bytes of the partial file are kept."""

    def answer(handler, content):
        headers = {'Content_Length': str(len(content))} if has_length else {}
        download_server.answer(handler, 200, content, **headers)

    (tmp_path / PART).write_bytes(archive[:70000])
    assert fetch(answer).ranges == ['bytes=70000-']
    assert_complete(tmp_path)


def test_a_new_directory_for_a_trainer_and_for_the_command(
    tmp_path, archive, small, prepare, monkeypatch, capsys
):
    """A trainer makes no parents, because they may be mistyped. Its first line names a new
    directory."""
    (tmp_path / 'copy').write_bytes(archive)
    small = small._replace(urls=[(tmp_path / 'copy').as_uri()])
    monkeypatch.setitem(data_flags._PUBLISHED, 'cifar10', small)

    with messages.raises(f'^{tmp_path}/new does not exist: make it, or '):
        prepare(f'--data_dir={tmp_path}/new/data')
    assert os.listdir(str(tmp_path)) == ['copy'] and capsys.readouterr().out == ''
    prepare(f'--data_dir={tmp_path}/new')
    assert_complete(tmp_path / 'new')
    line = f'Creating the directory {tmp_path / "new"} for the data set'
    assert capsys.readouterr().out.splitlines()[0] == line
    prepare(f'--data_dir={tmp_path}/new/{dataset.CIFAR10_DIRECTORY}')
    assert capsys.readouterr().out == ''
    data_dir = tmp_path / 'a' / 'b'
    status, _, stderr = programs.call('cifar10_dataset', 'download', f'--data_dir={data_dir}')
    assert (status, stderr) == (0, '')
    assert_complete(data_dir)


def test_a_local_copy_is_used_or_named_and_kept(tmp_path, archive):
    path = tmp_path / NAME
    path.write_bytes(archive)
    with messages.raises(f'^{path} is not the published archive '):
        cifar10.maybe_download_and_extract(str(tmp_path))
    assert os.listdir(str(tmp_path)) == [path.name]
    url, md5 = 'http://127.0.0.1:1/', hashlib.md5(archive).hexdigest()
    cifar10.maybe_download_and_extract(str(tmp_path), url, md5)
    assert_complete(tmp_path)


@pytest.mark.parametrize('fault', ['a file is missing', 'it is cut', 'it is no archive'])
def test_an_archive_that_cannot_be_extracted(tmp_path, archive, fault):
    content = archive[: len(archive) // 2] if fault == 'it is cut' else b'text'
    path = tmp_path / NAME
    path.write_bytes(content)
    if fault == 'a file is missing':
        with tarfile.open(str(path), 'w:gz'):
            pass
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    with messages.raises(rf'^{path} is damaged \(.*: delete it '):
        cifar10.maybe_download_and_extract(str(tmp_path), md5=md5)
    assert os.listdir(str(tmp_path)) == [path.name]
    copy = tmp_path / 'new' / NAME  # the same after a download
    with messages.raises(rf'^{copy} is damaged \(.*: delete it '):
        cifar10.maybe_download_and_extract(str(copy.parent), path.as_uri(), md5)
    assert os.listdir(str(copy.parent)) == [copy.name]


def test_a_partial_download_is_resumed(fetch, tmp_path, archive):
    """As after kill -9."""
    (tmp_path / PART).write_bytes(archive[:3000])
    assert fetch('none').ranges == ['bytes=3000-']
    assert_complete(tmp_path)


def test_a_partial_file_that_cannot_be_written(tmp_path):
    (tmp_path / PART).mkdir()
    with messages.raises(rf'^Cannot write {tmp_path}/{PART} \(Is a directory\): make room'):
        cifar10.maybe_download_and_extract(str(tmp_path), 'http://127.0.0.1:1/')


def test_a_disk_that_is_full_during_a_download(fetch, tmp_path):
    """The limit of the size of a file has the same effect."""
    resource = pytest.importorskip('resource')
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50000, limits[1]))
    try:
        with messages.raises(rf'^Cannot write {tmp_path}/.*\.part.*: make room there; the next'):
            fetch('none')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert fetch('none').ranges == ['bytes=50000-']
    assert_complete(tmp_path)


def test_cifar100(tmp_path, monkeypatch):
    data_sets.write_cifar100(tmp_path / 'made')
    with tarfile.open(str(tmp_path / 'copy'), 'w:gz') as tar:
        tar.add(str(tmp_path / 'made'), 'cifar-100-binary')
    content = (tmp_path / 'copy').read_bytes()
    out = tmp_path / 'out'
    args = ['--dataset=cifar100', f'--data_dir={out}']
    small = published.CIFAR100._replace(urls=[(tmp_path / 'copy').as_uri()], sha1={})
    monkeypatch.setitem(data_flags._PUBLISHED, 'cifar100', small)
    status, _, stderr = programs.call('cifar10_dataset', 'download', *args)
    assert status == 1 and 'not the published archive' in stderr and not out.exists()
    archives = [published.CIFAR100.archives[0]._replace(md5=hashlib.md5(content).hexdigest())]
    monkeypatch.setitem(data_flags._PUBLISHED, 'cifar100', small._replace(archives=archives))
    status, stdout, stderr = programs.call('cifar10_dataset', 'download', *args)
    assert (status, stderr) == (0, '')
    line = '400 training and 200 test examples of %s in %s\n'
    directory = out / 'cifar-100-binary'
    assert stdout.endswith(line % ('100 classes (fine_0, fine_1, fine_2 ... fine_99)', directory))
    assert sorted(os.listdir(str(directory))) == sorted(os.listdir(str(tmp_path / 'made')))
