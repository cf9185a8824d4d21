"""The download, against a server on localhost that misbehaves in every way."""
import hashlib
import http.server
import io
import os
import tarfile
import threading

import pytest

import cifar10
from cifar10.data import dataset, download
from cifar10.errors import UserError


@pytest.fixture(scope='module')
def archive(tmp_path_factory):
    """The bytes of a small archive with the official layout, random enough not to be compressed away."""
    directory = tmp_path_factory.mktemp('archive') / dataset.DIRECTORY
    directory.mkdir()
    for name in dataset.TRAIN_FILES + dataset.TEST_FILES:
        (directory / name).write_bytes(b''.join(bytes([i % 10]) + os.urandom(3072) for i in range(40)))
    (directory / dataset.CLASS_NAMES_FILE).write_text('\n'.join(dataset.CLASS_NAMES))
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode='w:gz') as tar:
        tar.add(str(directory), dataset.DIRECTORY)
    return content.getvalue()


class Server:
    """Serves `content`; each request takes the next of `faults`, and all after the last one take that."""

    def __init__(self, content, faults):
        self.ranges = []  # the Range header of each request
        self.released = threading.Event()  # ends the stalls
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requested = self.headers.get('Range')
                server.ranges.append(requested)
                fault = faults.pop(0) if len(faults) > 1 else faults[0]
                if isinstance(fault, int):
                    return self.send_error(fault)
                start = int(requested[len('bytes='):-1]) if requested and not str(fault).startswith('no ranges') else 0
                if start >= len(content):
                    return self.send_error(416)
                body = content[start:]
                self.send_response(206 if start else 200)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                if fault == 'corrupt':
                    body = bytes(len(body))
                self.wfile.write(body[:len(body) // 2] if str(fault).endswith(('cut short', 'stall')) else body)
                if fault == 'stall':
                    self.wfile.flush()
                    server.released.wait()

            def log_message(self, *unused_args):
                pass

        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = 'http://127.0.0.1:%d/cifar-10-binary.tar.gz' % self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()  # looks often whether it must end

    def close(self):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def fetch(tmp_path, archive):
    """fetch(*faults) downloads from a server with these faults and returns the server."""
    servers = []

    def start(*faults, **kwargs):
        servers.append(Server(archive, list(faults)))
        cifar10.maybe_download_and_extract(str(tmp_path), servers[-1].url, md5=hashlib.md5(archive).hexdigest(),
                                           retry_secs=0, timeout_secs=kwargs.get('timeout_secs', 30))
        return servers[-1]
    yield start
    for server in servers:
        server.close()


def _assert_complete(data_dir):
    assert dataset.verify(dataset.train_files(str(data_dir)) + dataset.test_files(str(data_dir))) == 240
    assert dataset.class_names(str(data_dir)) == dataset.CLASS_NAMES
    assert sorted(os.listdir(str(data_dir))) == [dataset.DIRECTORY, download.ARCHIVE]


def _assert_nothing_left(data_dir):
    assert os.listdir(str(data_dir)) == []


def test_whole_archive(fetch, tmp_path, capsys):
    server = fetch('none')
    _assert_complete(tmp_path)
    assert server.ranges == [None]
    assert 'Downloading cifar-10-binary.tar.gz 100%' in capsys.readouterr().out


def test_nothing_is_done_if_the_files_exist(fetch, tmp_path):
    fetch('none')
    os.remove(str(tmp_path / download.ARCHIVE))
    assert fetch('none').ranges == []


def test_a_transfer_cut_short_is_resumed(fetch, tmp_path, archive):
    server = fetch('cut short', 'cut short', 'none')
    _assert_complete(tmp_path)
    half = len(archive) // 2
    assert server.ranges == [None, 'bytes=%d-' % half, 'bytes=%d-' % (half + (len(archive) - half) // 2)]


def test_a_server_without_ranges_starts_again(fetch, tmp_path):
    fetch('cut short', 'no ranges')
    _assert_complete(tmp_path)


def test_a_stalled_transfer_is_resumed(fetch, tmp_path):
    server = fetch('stall', 'none', timeout_secs=0.3)
    _assert_complete(tmp_path)
    assert len(server.ranges) == 2


def test_a_server_that_always_stalls(fetch, tmp_path):
    """Each connection brings half of what is missing, so that more than three may break in a row."""
    assert len(fetch(*['stall'] * 4, 'none', timeout_secs=0.3).ranges) == 5
    _assert_complete(tmp_path)


def test_no_ranges_and_always_cut_short(fetch, tmp_path):
    with pytest.raises(UserError, match='closed after'):
        fetch('cut short', 'no ranges, cut short')


def test_a_passing_server_error_is_retried(fetch, tmp_path):
    assert len(fetch(503, 503, 'none').ranges) == 3
    _assert_complete(tmp_path)


def test_a_server_that_stays_broken(fetch, tmp_path):
    with pytest.raises(UserError, match='Cannot download http://127.0.0.1:.*503.*--data_url'):
        fetch(503)
    _assert_nothing_left(tmp_path)


def test_a_missing_archive_is_not_retried(fetch, tmp_path):
    with pytest.raises(UserError, match='Cannot download http://127.0.0.1:.*404'):
        fetch(404, 'none')
    _assert_nothing_left(tmp_path)


def test_a_corrupt_archive_is_not_kept(fetch, tmp_path):
    with pytest.raises(UserError, match='is not the CIFAR-10 binary archive .its MD5 is [0-9a-f]{32}, not'):
        fetch('corrupt')
    _assert_nothing_left(tmp_path)


@pytest.mark.parametrize('size', [1000, 10000000])
def test_a_leftover_of_another_file_is_deleted(fetch, tmp_path, size):
    (tmp_path / (download.ARCHIVE + '.part')).write_bytes(b'x' * size)
    server = fetch('none')
    _assert_complete(tmp_path)
    assert server.ranges == ['bytes=%d-' % size, None]


def test_an_unreachable_server_or_malformed_url(tmp_path):
    for url in ('http://127.0.0.1:1/archive', 'archive'):
        with pytest.raises(UserError, match='Cannot download %s' % url):
            cifar10.maybe_download_and_extract(str(tmp_path), url, retry_secs=0)


def test_a_local_copy_is_used(tmp_path, archive):
    (tmp_path / download.ARCHIVE).write_bytes(archive)
    cifar10.maybe_download_and_extract(str(tmp_path), 'http://127.0.0.1:1/', md5=hashlib.md5(archive).hexdigest())
    _assert_complete(tmp_path)


def test_a_wrong_local_copy_is_named_and_kept(tmp_path, archive):
    (tmp_path / download.ARCHIVE).write_bytes(archive)
    with pytest.raises(UserError, match='%s is not the published archive' % (tmp_path / download.ARCHIVE)):
        cifar10.maybe_download_and_extract(str(tmp_path))
    assert os.listdir(str(tmp_path)) == [download.ARCHIVE]


def _escaping(member):
    member.name = '../../escaped'


def _linked(member):
    member.type, member.linkname, member.size = tarfile.SYMTYPE, '/etc/passwd', 0


def _directory(member):
    member.type, member.size = tarfile.DIRTYPE, 0


@pytest.mark.parametrize('disguise', [_escaping, _linked, _directory])
def test_a_hostile_archive_writes_nothing(tmp_path, archive, disguise):
    content = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as honest, tarfile.open(fileobj=content, mode='w:gz') as hostile:
        for member in honest:
            data = honest.extractfile(member)
            if member.name.endswith('test_batch.bin'):
                disguise(member)
            hostile.addfile(member, data)
    data_dir = tmp_path / 'parent' / 'data'
    data_dir.mkdir(parents=True)
    (data_dir / download.ARCHIVE).write_bytes(content.getvalue())
    with pytest.raises(UserError, match='is not the CIFAR-10 binary archive'):
        cifar10.maybe_download_and_extract(str(data_dir), md5=hashlib.md5(content.getvalue()).hexdigest())
    assert os.listdir(str(tmp_path)) == ['parent'] and os.listdir(str(tmp_path / 'parent')) == ['data']
    assert os.listdir(str(data_dir)) == [download.ARCHIVE]
