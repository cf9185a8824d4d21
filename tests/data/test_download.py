"""The download, against a server on localhost that is slow, breaks off, or answers with errors."""
import hashlib
import os

import pytest

import cifar10
from cifar10.data import download
from cifar10.errors import UserError
from tests.helpers.download_server import assert_complete, assert_nothing_left
from tests.helpers.special_files import deadline  # noqa: F401


def test_whole_archive(fetch, tmp_path, capsys):
    server = fetch('none')
    assert_complete(tmp_path)
    assert server.ranges == [None]
    assert 'Downloading cifar-10-binary.tar.gz 100%' in capsys.readouterr().out


def test_nothing_is_done_if_the_files_exist(fetch, tmp_path):
    fetch('none')
    os.remove(str(tmp_path / download.CIFAR10.name))
    assert fetch('none').ranges == []


def test_a_transfer_cut_short_is_resumed(fetch, tmp_path, archive):
    server = fetch('cut short', 'cut short', 'none')
    assert_complete(tmp_path)
    half = len(archive) // 2
    assert server.ranges == [None, 'bytes=%d-' % half, 'bytes=%d-' % (half + (len(archive) - half) // 2)]


def test_a_server_without_ranges_starts_again(fetch, tmp_path):
    fetch('cut short', 'no ranges')
    assert_complete(tmp_path)


def test_a_stalled_transfer_is_resumed(fetch, tmp_path):
    server = fetch('stall', 'none', timeout_secs=0.3)
    assert_complete(tmp_path)
    assert len(server.ranges) == 2


def test_a_server_that_always_stalls(fetch, tmp_path):
    """Each connection brings half of what is missing, so that more than three may break in a row."""
    assert len(fetch(*['stall'] * 4, 'none', timeout_secs=0.3).ranges) == 5
    assert_complete(tmp_path)


def test_no_ranges_and_always_cut_short(fetch, tmp_path):
    with pytest.raises(UserError, match='closed after'):
        fetch('cut short', 'no ranges, cut short')


def test_a_passing_server_error_is_retried(fetch, tmp_path):
    assert len(fetch(503, 503, 'none').ranges) == 3
    assert_complete(tmp_path)


def test_a_server_that_stays_broken(fetch, tmp_path):
    with pytest.raises(UserError, match='Cannot download http://127.0.0.1:.*503.*--data_url'):
        fetch(503)
    assert_nothing_left(tmp_path)


def test_a_missing_archive_is_not_retried(fetch, tmp_path):
    with pytest.raises(UserError, match='Cannot download http://127.0.0.1:.*404'):
        fetch(404, 'none')
    assert_nothing_left(tmp_path)


def test_a_corrupt_archive_is_not_kept(fetch, tmp_path):
    with pytest.raises(UserError, match='is not the CIFAR-10 binary archive .its MD5 is [0-9a-f]{32}, not'):
        fetch('corrupt')
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize('size', [1000, 10000000])
def test_a_leftover_of_another_file_is_deleted(fetch, tmp_path, size):
    (tmp_path / (download.CIFAR10.name + '.part')).write_bytes(b'x' * size)
    server = fetch('none')
    assert_complete(tmp_path)
    assert server.ranges == ['bytes=%d-' % size, None]


def test_an_unreachable_server_or_malformed_url(tmp_path):
    for url in ('http://127.0.0.1:1/archive', 'archive'):
        with pytest.raises(UserError, match='Cannot download %s' % url):
            cifar10.maybe_download_and_extract(str(tmp_path), url, retry_secs=0)


def test_a_local_copy_is_used(tmp_path, archive):
    (tmp_path / download.CIFAR10.name).write_bytes(archive)
    cifar10.maybe_download_and_extract(str(tmp_path), 'http://127.0.0.1:1/', md5=hashlib.md5(archive).hexdigest())
    assert_complete(tmp_path)


def test_a_wrong_local_copy_is_named_and_kept(tmp_path, archive):
    (tmp_path / download.CIFAR10.name).write_bytes(archive)
    with pytest.raises(UserError, match='%s is not the published archive' % (tmp_path / download.CIFAR10.name)):
        cifar10.maybe_download_and_extract(str(tmp_path))
    assert os.listdir(str(tmp_path)) == [download.CIFAR10.name]
