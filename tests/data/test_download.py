"""Downloads from servers on localhost that break off, are slow, or send errors."""

import contextlib
import hashlib
import http.client
import os
import pathlib
import re
from types import SimpleNamespace

import numpy as np
import pytest

from cifar10.data import download
from cifar10.data.catalog import Archive
from tests.helpers import messages
from tests.helpers.download_server import Server, answer

CONTENT = np.random.RandomState(0).bytes(1 << 20)
NAME = 'data.tar.gz'


@pytest.fixture
def start():
    """start(fault, ...) starts a server of CONTENT with these faults; the test ends it."""
    with contextlib.ExitStack() as stack:
        yield lambda *faults, content=CONTENT, name=NAME: stack.enter_context(
            contextlib.closing(Server(content, list(faults), name))
        )


def _archive(*urls, content=CONTENT, name=NAME):
    return Archive(name, hashlib.md5(content).hexdigest(), '', urls)


def _download(directory, *servers):
    """Download CONTENT; return the lines of the progress."""
    lines, urls = [], [server.url for server in servers]
    path = download.download_archive([_archive(*urls)], str(directory), lines.append)
    assert pathlib.Path(path).read_bytes() == CONTENT
    assert os.listdir(str(directory)) == [NAME]
    return lines


def _fails(complaint):
    return pytest.raises(ConnectionError, match=complaint)


def test_the_whole_archive(start, tmp_path):
    server = start('none')
    first, *_, last = _download(tmp_path, server)
    assert server.ranges == [None]
    assert re.match(rf'Downloading {NAME} from 127.0.0.1:\d+$', first)
    assert re.match(r'Downloading 100%: (\d+) of \1 kB, \d+ kB/s, 0:00:00 left$', last)


def _stall_after_half(handler):
    answer(handler, CONTENT[:300000], Content_Length=str(len(CONTENT)))
    handler.connection.recv(1)  # until the client closes


@pytest.mark.parametrize('fault', [503, 'cut short', 'corrupt', _stall_after_half])
def test_a_bad_host_is_left(start, tmp_path, monkeypatch, fault):
    """The next host sends the whole archive. A stall is real, but short."""
    monkeypatch.setattr(download, '_TIMEOUT_SECS', 0.3)
    bad, good = start(fault), start('none')
    _download(tmp_path, bad, good)
    assert bad.ranges == good.ranges == [None]


@pytest.fixture
def rates(monkeypatch):
    """Bytes per second of each URL, on a clock of the test."""
    rates, clock, read1 = {}, SimpleNamespace(now=0.0), http.client.HTTPResponse.read1

    def read1_slowly(response, size):
        content = read1(response, size)
        clock.now += len(content) / rates[response.url]
        return content

    monkeypatch.setattr(http.client.HTTPResponse, 'read1', read1_slowly)
    monkeypatch.setattr(download, 'time', SimpleNamespace(monotonic=lambda: clock.now))
    return rates


def test_a_slow_host_is_left(start, rates, tmp_path):
    """Not one that would need less than ten minutes, nor the only one."""
    slow, good, unused = start('none'), start('none'), start('none')
    rates.update({slow.url: 1e3, good.url: 1e4})
    lines = _download(tmp_path, slow, good, unused)
    assert (slow.ranges, good.ranges, unused.ranges) == ([None], [None], [])
    assert any(re.search(r': slow \(1 kB/s, 0:1\d:\d\d left\)$', line) for line in lines)
    os.remove(str(tmp_path / NAME))
    _download(tmp_path, slow)
    assert len(slow.ranges) == 2


def test_the_official_hosts_come_last(start, tmp_path):
    """The last URL of each archive is asked after those of all archives."""
    bad, last, good = start(404), start('none'), start('none', content=b'other', name='other')
    archives = [
        _archive(bad.url, last.url),
        _archive(good.url, 'http://127.0.0.1:1/x', content=b'other', name='other'),
    ]
    path = download.download_archive(archives, str(tmp_path), lambda line: None)
    assert path == str(tmp_path / 'other') and last.ranges == []


def test_a_wrong_file(start, tmp_path):
    server = start('none', content=bytes(1000))
    with _fails('not the published archive .its MD5 is [0-9a-f]{32}, not'):
        _download(tmp_path, server)
    assert server.ranges == [None] and os.listdir(str(tmp_path)) == []


def test_no_host(start, tmp_path):
    """Each is asked once. Nothing is left."""
    broken, missing = start(503), start(404)
    with _fails(rf'^{broken.url} \(HTTP Error 503: .*\) or 1 other hosts$'):
        _download(tmp_path, broken, missing)
    assert (len(broken.ranges), len(missing.ranges)) == (1, 1)
    for url in ('http://127.0.0.1:1/archive', 'archive', 'http://[bad/archive'):
        with _fails(rf'^{re.escape(url)} \(.+\)$'):
            _download(tmp_path, SimpleNamespace(url=url))
    assert os.listdir(str(tmp_path)) == []


def test_a_disk_that_is_full(start, tmp_path):
    """The limit of the size of a file has the same effect."""
    resource = pytest.importorskip('resource')
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50000, limits[1]))
    try:
        with messages.raises(rf'^Cannot write {tmp_path}/{NAME}.part .*: make room there'):
            _download(tmp_path, start('none'))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(str(tmp_path)) == []


def test_an_interrupted_download_begins_again(start, tmp_path):
    """No part stays, also none of kill -9."""

    def interrupt(line):
        if '%' in line:
            assert os.listdir(str(tmp_path)) == [f'{NAME}.part']
            raise KeyboardInterrupt

    server = start('none')
    with pytest.raises(KeyboardInterrupt):
        download.download_archive([_archive(server.url)], str(tmp_path), interrupt)
    assert os.listdir(str(tmp_path)) == []
    (tmp_path / f'{NAME}.part').write_bytes(b'x' * 2 * len(CONTENT))
    _download(tmp_path, server)
    assert server.ranges == [None, None]
