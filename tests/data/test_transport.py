"""Downloads from several servers on localhost: a bad one, then a good one."""

import contextlib
import os
import socket
import threading
from types import SimpleNamespace

import pytest

from cifar10.data import download, published, transport
from tests.helpers import messages
from tests.helpers.download_server import Server, answer, assert_complete

NOMINAL_SECS = transport._TRIAL_SECS  # before a test makes it shorter
BINARY, PYTHON = (archive.name for archive in published.CIFAR10.archives)


class Throttled:
    """A response that advances a clock by the time that its bytes, or a stall, need."""

    def __init__(self, response, clock, rate):
        self._response, self._clock, self._rate = response, clock, rate
        self.headers, self.getcode = response.headers, response.getcode

    def read1(self, unused_size):
        try:
            content = self._response.read1(1 << 13)
        except socket.timeout:
            self._clock.now += NOMINAL_SECS
            raise
        self._clock.now += len(content) / self._rate
        return content

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._response.close()


@pytest.fixture
def servers():
    """start(content, faults, name) starts a server; the test ends it."""
    with contextlib.ExitStack() as stack:
        yield lambda *args: stack.enter_context(contextlib.closing(Server(*args)))


@pytest.fixture
def clock(monkeypatch):
    """The clock of the transport; `rates` are bytes per second for each URL."""
    clock = SimpleNamespace(now=0.0, rates={}, slept=[])

    def sleep(seconds):
        clock.slept.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(
        transport, 'time', SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep)
    )
    connect = transport._open

    def throttle(url, *args):
        try:
            return Throttled(connect(url, *args), clock, clock.rates.get(url, 30e6))
        except socket.timeout:
            clock.now += NOMINAL_SECS
            raise

    monkeypatch.setattr(transport, '_open', throttle)
    return clock


def run(small, directory, *urls):
    download.obtain(small._replace(urls=urls), str(directory))


def _stall_after_90_percent(handler, content):
    answer(handler, 200, content[: len(content) * 9 // 10], Content_Length=str(len(content)))
    handler.wfile.flush()
    handler.connection.recv(1)  # until the client closes


@pytest.mark.parametrize(
    'fault, num_resumed',
    [
        (503, 0),
        ('cut short', 1 / 2),
        ('corrupt', 0),
        (_stall_after_90_percent, 9 / 10),
    ],
)
def test_a_bad_host_is_left(
    small, archive, servers, clock, tmp_path, monkeypatch, fault, num_resumed
):
    """The next host sends only what is missing. A stall is real, but short."""
    monkeypatch.setattr(transport, '_TRIAL_SECS', 0.3)
    bad, good = servers(archive, [fault]), servers(archive, ['none'])
    run(small, tmp_path, bad.url, good.url)
    assert_complete(tmp_path)
    begin = int(len(archive) * num_resumed)
    assert len(bad.ranges) == 1 and good.ranges == [f'bytes={begin}-' if begin else None]
    assert clock.now < 10


def test_a_slow_host_is_left_within_ten_seconds(small, archive, servers, clock, tmp_path, capsys):
    slow, good = servers(archive, ['none']), servers(archive, ['none'])
    clock.rates[slow.url] = 70e3
    run(small, tmp_path, slow.url, good.url)
    assert_complete(tmp_path)
    (word,) = good.ranges
    begin = int(word[len('bytes=') : -1])
    assert 5 * 70e3 <= begin < 10 * 70e3 < len(archive)
    assert begin / 70e3 <= clock.now < 10
    assert ' is slow (70 kB/s, 0:00:' in capsys.readouterr().out


def test_a_slow_host_without_ranges_is_left(small, archive, servers, clock, tmp_path):
    """It would send the bytes on disk again."""
    first = servers(archive, ['cut short', 404])
    slow = servers(archive, ['no ranges'])
    good = servers(archive, ['none'])
    clock.rates[slow.url] = 70e3
    run(small, tmp_path, first.url, slow.url, good.url)
    assert_complete(tmp_path)
    assert len(slow.ranges) == len(good.ranges) == 1 and clock.now < 10


def test_the_fastest_of_slow_hosts_is_used(small, archive, servers, clock, tmp_path):
    """Each is measured once. A difference of less than half is worth no further connection."""
    rates = [3e3, 12e3, 5e3, 4e3]
    slow = [servers(archive, ['none']) for _ in rates]
    clock.rates.update({server.url: rate for server, rate in zip(slow, rates)})
    run(small, tmp_path, *[server.url for server in slow])
    assert_complete(tmp_path)
    assert [len(server.ranges) for server in slow] == [1, 2, 1, 1]


def test_a_break_of_a_fast_host(small, archive, servers, clock, tmp_path):
    """It has sent bytes, so it is asked again at the next measurement of the slow one."""
    fast, slow = servers(archive, ['cut short', 'none']), servers(archive, ['none'])
    clock.rates[slow.url] = 3e3
    run(small, tmp_path, fast.url, slow.url)
    assert_complete(tmp_path)
    assert (len(fast.ranges), len(slow.ranges)) == (2, 1) and clock.now < 10


def test_silent_hosts_cost_little(small, archive, servers, clock, tmp_path):
    """The pause after an error doubles: 60, 120, ... seconds."""
    broken, slow = servers(archive, [503]), servers(archive, ['none'])
    clock.rates[slow.url] = 3e2
    run(small, tmp_path, broken.url, slow.url)
    assert_complete(tmp_path)
    assert 2000 < clock.now < 3000 and len(broken.ranges) == 6


def test_a_host_is_not_left_for_an_equal_one(small, archive, servers, clock, tmp_path):
    """The network is the limit for both: only the untried one gets a trial."""
    equal = [servers(archive, ['none']) for _ in range(2)]
    clock.rates.update({equal[0].url: 30e3, equal[1].url: 25e3})
    run(small, tmp_path, *[server.url for server in equal])
    assert_complete(tmp_path)
    assert [len(server.ranges) for server in equal] == [1, 1]


def test_an_earlier_part_decides(small, archive, python_archive, servers, clock, tmp_path):
    """The host with the rest of it comes first; at the end the part is gone."""
    part = tmp_path / f'{BINARY}.part'
    part.write_bytes(archive[: len(archive) * 9 // 10])
    first = servers(python_archive, ['none'], PYTHON)
    second = servers(archive, ['none'])
    run(small, tmp_path, first.url, second.url)
    assert_complete(tmp_path)
    assert first.ranges == [] and len(second.ranges) == 1


def test_a_name_server_that_does_not_answer(monkeypatch):
    """The timeout of a socket does not apply to it."""
    released = threading.Event()
    monkeypatch.setattr(transport.urllib.request, 'urlopen', lambda *a, **b: released.wait())
    with pytest.raises(socket.timeout, match='^no response after 0.1 seconds$'):
        transport._open('http://127.0.0.1:1/', 0, 0.1)
    released.set()


def test_the_other_archive(small, archive, python_archive, servers, clock, tmp_path, capsys):
    """Its bytes are not mixed with those of the first one, which are removed at the end."""
    slow = servers(archive, ['none'])
    good = servers(python_archive, ['none'], PYTHON)
    clock.rates[slow.url] = 70e3
    run(small, tmp_path, slow.url, good.url)
    assert_complete(tmp_path, PYTHON)
    assert good.ranges == [None]
    assert f'Downloading {PYTHON} from {good.url.split("/")[2]}\n' in capsys.readouterr().out


def test_a_url_without_the_name_of_an_archive(small, python_archive, servers, tmp_path):
    """The MD5 decides which archive it is."""
    server = servers(python_archive, ['none'], 'data')
    download.obtain(small, str(tmp_path), server.url)
    assert_complete(tmp_path, PYTHON)


def test_no_host_answers(small, servers, clock, tmp_path):
    """One round: each host is asked once."""
    broken, missing = servers(b'', [503]), servers(b'', [404])
    host = broken.url.split('/')[2]
    with messages.raises(
        f'^Cannot download CIFAR-10 from 2 hosts .the first, {host}: HTTP Error 503: .*: check '
    ):
        run(small, tmp_path, broken.url, missing.url)
    assert (len(broken.ranges), len(missing.ranges)) == (1, 1) and clock.slept == []
    assert os.listdir(str(tmp_path)) == []


def test_bytes_begin_a_new_count_of_rounds(small, archive, servers, clock, tmp_path):
    faults = [503, 503, 'cut short', 503, 503, 'none']
    server = servers(archive, list(faults))
    run(small, tmp_path, server.url)
    assert len(server.ranges) == len(faults)
    assert clock.slept == [1, 2, 1, 1, 2]
    assert_complete(tmp_path)


def test_a_server_that_begins_again_and_breaks_again(small, archive, servers, clock, tmp_path):
    """No bytes are new after the first connection: three more rounds."""

    def send_half(handler, content):
        answer(handler, 200, content[: len(content) // 2], Content_Length=str(len(content)))

    server = servers(archive, [send_half])
    with messages.raises('^Cannot download .*closed after .*; the next start resumes the download'):
        run(small, tmp_path, server.url)
    assert len(server.ranges) == 4


def test_a_wrong_file_that_breaks(small, archive, servers, clock, tmp_path):
    """The host is asked no more than twice for the whole file."""
    server = servers(bytes(1000), ['cut short', 'none'] * 9)
    with messages.raises('^Cannot download .* not the published archive'):
        run(small, tmp_path, server.url)
    assert len(server.ranges) == 4


def test_a_wrong_file_after_a_good_part(small, archive, servers, clock, tmp_path):
    """The wrong host spoils the part. All is received again, from the host that is right."""
    good, wrong = servers(archive, ['cut short', 'none']), servers(archive, ['corrupt'])
    run(small, tmp_path, good.url, wrong.url)
    assert_complete(tmp_path)
    assert wrong.ranges == [f'bytes={len(archive) // 2}-', None]
    assert good.ranges == [None, None]
