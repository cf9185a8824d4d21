"""The download, against a server on localhost that is slow, breaks off, or answers with errors."""

import contextlib
import hashlib
import itertools
import os
import threading
from types import SimpleNamespace

from absl import flags
import pytest

import cifar10
from cifar10.cli import data_flags
from cifar10.data import dataset, download, transfer
from cifar10.errors import UserError
from tests.helpers import download_server, programs
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
    assert server.ranges == [
        None,
        'bytes=%d-' % half,
        'bytes=%d-' % (half + (len(archive) - half) // 2),
    ]


def test_a_server_without_ranges_starts_again(fetch, tmp_path):
    fetch('cut short', 'no ranges')
    assert_complete(tmp_path)


def test_a_stalled_transfer_is_resumed(fetch, tmp_path):
    server = fetch('stall', 'none', timeout_secs=0.3)
    assert_complete(tmp_path)
    assert len(server.ranges) == 2


def test_a_server_that_always_stalls(fetch, tmp_path):
    """Each connection brings half of what is missing, so that more than three may break in a
    row."""
    assert len(fetch(*['stall'] * 4, 'none', timeout_secs=0.3).ranges) == 5
    assert_complete(tmp_path)


@pytest.fixture
def slow():
    """A fault: a server that sends a hundred bytes, and no more for a long time."""
    released = threading.Event()

    def answer(handler, content):
        begin = int((handler.headers.get('Range') or 'bytes=0-')[len('bytes=') : -1])
        download_server.answer(
            handler,
            206 if begin else 200,
            content[begin : begin + 100],
            Content_Length=str(len(content) - begin),
        )
        handler.wfile.flush()
        released.wait()

    yield answer
    released.set()


def _let_pass(monkeypatch, seconds):
    """Lets these seconds pass between two looks at the clock, one after the other."""
    times = itertools.accumulate(seconds)
    monkeypatch.setattr(
        transfer,
        'time',
        SimpleNamespace(monotonic=lambda: next(times), sleep=lambda unused_seconds: None),
    )


def test_a_server_that_stays_too_slow(fetch, tmp_path, archive, slow, monkeypatch):
    """It is given up after three connections; the next start takes what they have brought."""
    part = tmp_path / (download.CIFAR10.name + '.part')
    with monkeypatch.context() as patched, pytest.raises(
        UserError,
        match='^Cannot download http://127.0.0.1:[^ ]* .fewer than 1000 bytes per second came; what came is kept, and '
        'the next start resumes there.: check the network ',
    ):
        _let_pass(patched, itertools.repeat(31))
        fetch(slow)
    came = part.read_bytes()
    assert 3 <= len(came) <= 300 and archive.startswith(came)
    assert fetch('none').ranges == ['bytes=%d-' % len(came)]
    assert_complete(tmp_path)


def test_headers_that_come_too_slowly(fetch, tmp_path):
    """Each byte comes within the timeout, the last one long after it."""

    def drip(handler, content):
        handler.wfile.write(b'HTTP/1.1 200 OK\r\nX-Slow: ')
        with contextlib.suppress(ConnectionError):
            for _ in range(300):
                handler.wfile.write(b'x')
                handler.wfile.flush()
                threading.Event().wait(0.01)
            handler.wfile.write(b'\r\nContent-Length: %d\r\n\r\n' % len(content) + content)

    with pytest.raises(UserError, match='the headers came too slowly'):
        fetch(drip, timeout_secs=1)
    assert os.listdir(str(tmp_path)) == []


def test_a_server_that_is_too_slow_for_a_while(fetch, tmp_path, slow, monkeypatch):
    _let_pass(monkeypatch, itertools.chain([0, 0, 31], itertools.repeat(0)))
    assert len(fetch(slow, 'none').ranges) == 2
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
    with pytest.raises(
        UserError, match='is not the CIFAR-10 binary archive .its MD5 is [0-9a-f]{32}, not'
    ):
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


def test_a_new_directory_for_a_trainer_and_for_the_command(tmp_path, archive, monkeypatch, capsys):
    """A trainer makes no parents: they may be mistyped. Its first line names the place; it needs
    none when the data set is there."""
    (tmp_path / 'copy').write_bytes(archive)
    source = download.CIFAR10.source._replace(md5=hashlib.md5(archive).hexdigest())
    monkeypatch.setitem(data_flags._ARCHIVES, 'cifar10', download.CIFAR10._replace(source=source))

    def prepare(name):
        with programs.own_flags():
            data_flags.define()
            flags.FLAGS(
                [
                    'a script',
                    '--data_dir=%s' % (tmp_path / name),
                    '--data_url=' + (tmp_path / 'copy').as_uri(),
                ]
            )
            return data_flags.prepare()

    with pytest.raises(
        UserError, match='^%s/new does not exist: make it, or give another --data_dir$' % tmp_path
    ):
        prepare('new/data')
    assert os.listdir(str(tmp_path)) == ['copy'] and capsys.readouterr().out == ''
    directory = str(tmp_path / 'new' / dataset.DIRECTORY)
    assert prepare('new').directory == directory
    assert_complete(tmp_path / 'new')
    assert capsys.readouterr().out.splitlines()[
        0
    ] == '%s does not exist yet: making it for the data set' % (tmp_path / 'new')
    for name in ('new', os.path.join('new', dataset.DIRECTORY)):
        assert prepare(name).directory == directory and capsys.readouterr().out == ''
    status, _, stderr = programs.call(
        'cifar10_dataset',
        'download',
        '--data_dir=%s' % (tmp_path / 'a' / 'b'),
        '--data_url=' + (tmp_path / 'copy').as_uri(),
    )
    assert (status, stderr) == (0, '')
    assert_complete(tmp_path / 'a' / 'b')


def test_parents_are_removed_if_nothing_came(tmp_path):
    with pytest.raises(UserError, match='^Cannot download '):
        cifar10.maybe_download_and_extract(
            str(tmp_path / 'a' / 'b'), 'http://127.0.0.1:1/archive', retry_secs=0
        )
    assert_nothing_left(tmp_path)


def test_a_local_copy_is_used(tmp_path, archive):
    (tmp_path / download.CIFAR10.name).write_bytes(archive)
    cifar10.maybe_download_and_extract(
        str(tmp_path), 'http://127.0.0.1:1/', md5=hashlib.md5(archive).hexdigest()
    )
    assert_complete(tmp_path)


def test_a_wrong_local_copy_is_named_and_kept(tmp_path, archive):
    (tmp_path / download.CIFAR10.name).write_bytes(archive)
    with pytest.raises(
        UserError, match='%s is not the published archive' % (tmp_path / download.CIFAR10.name)
    ):
        cifar10.maybe_download_and_extract(str(tmp_path))
    assert os.listdir(str(tmp_path)) == [download.CIFAR10.name]
