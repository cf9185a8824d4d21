"""The download, against a server on localhost that misbehaves in every way."""
import contextlib
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
from tests.helpers import special_files
from tests.helpers.special_files import deadline  # noqa: F401


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
    """Serves `content`; each request takes the next of `faults`, and all after the last one take that.

    A fault is the status of an error, a word, or a function that answers instead: it gets the handler and the content.
    """

    def __init__(self, content, faults):
        self.ranges = []  # the Range header of each request
        self.released = threading.Event()  # ends the stalls
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requested = self.headers.get('Range')
                server.ranges.append(requested)
                fault = faults.pop(0) if len(faults) > 1 else faults[0]
                if callable(fault):
                    return fault(self, content)
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


def _linked_within(member):
    member.type, member.linkname, member.size = tarfile.SYMTYPE, 'data_batch_1.bin', 0


def _hard_linked(member):
    member.type, member.linkname, member.size = tarfile.LNKTYPE, dataset.DIRECTORY + '/data_batch_1.bin', 0


def _directory(member):
    member.type, member.size = tarfile.DIRTYPE, 0


def _fifo(member):
    member.type, member.size = tarfile.FIFOTYPE, 0


def _device(member):
    member.type, member.size, member.devmajor, member.devminor = tarfile.CHRTYPE, 0, 1, 5


@pytest.mark.parametrize('disguise', [_escaping, _linked, _linked_within, _hard_linked, _directory, _fifo, _device])
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


@pytest.mark.parametrize('name, size, most', [('test_batch.bin', 10001 * 3073, 30730000), ('batches.meta.txt', 4097, 4096)])
def test_a_file_that_is_too_long_is_not_extracted(tmp_path, archive, monkeypatch, name, size, most):
    """It packs well: the archive stays small."""
    content = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as honest, tarfile.open(fileobj=content, mode='w:gz') as bomb:
        for member in honest:
            data = honest.extractfile(member)
            if member.name.endswith(name):
                member.size, data = size, io.BytesIO(bytes(size))
            bomb.addfile(member, data)
    (tmp_path / download.ARCHIVE).write_bytes(content.getvalue())
    with pytest.raises(UserError, match='is not the CIFAR-10 binary archive .*/%s is not a file of at most %d bytes' % (name, most)):
        cifar10.maybe_download_and_extract(str(tmp_path), md5=hashlib.md5(content.getvalue()).hexdigest())
    assert os.listdir(str(tmp_path)) == [download.ARCHIVE]


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


needs_root = pytest.mark.skipif(not hasattr(os, 'getuid') or os.getuid() != 0, reason='only root can give a file to another user')


@pytest.mark.parametrize('put', [_symlink, _hard_link, _fifo_with_a_reader, pytest.param(_of_another_user, marks=needs_root)]
                         + [_special(kind) for kind in special_files.KINDS])
def test_a_part_that_is_no_part_is_not_written_to(tmp_path, put):
    """It is named before the server is asked."""
    (tmp_path / 'target').write_bytes(b'precious')
    part = tmp_path / (download.ARCHIVE + '.part')
    put(part, tmp_path / 'target')
    before = os.lstat(str(part))
    with pytest.raises(UserError, match='^%s is a link, no file, or not yours, and so not the rest of a download: delete it$' % part):
        cifar10.maybe_download_and_extract(str(tmp_path), 'http://127.0.0.1:1/')
    assert (tmp_path / 'target').read_bytes() == b'precious'
    assert os.path.samestat(before, os.lstat(str(part))) and before.st_size == os.lstat(str(part)).st_size
    assert not (tmp_path / download.ARCHIVE).exists()


def test_a_link_that_is_put_there_during_the_download(fetch, tmp_path):
    """Nothing is there at the start."""
    (tmp_path / 'target').write_bytes(b'precious')

    def put(handler, content):
        (tmp_path / (download.ARCHIVE + '.part')).symlink_to(tmp_path / 'target')
        _answer(handler, 200, content)
    with pytest.raises(UserError, match='.part is a link'):
        fetch(put)
    assert (tmp_path / 'target').read_bytes() == b'precious'


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_an_archive_that_is_no_file(fetch, tmp_path, kind):
    special_files.make(tmp_path / download.ARCHIVE, kind)
    with pytest.raises(UserError, match='^%s is %s, not a file: delete it to have it downloaded$' % (
            tmp_path / download.ARCHIVE, kind)):
        fetch('none')


def _answer(handler, status, body, **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace('_', '-'), value)
    handler.end_headers()
    with contextlib.suppress(ConnectionError):  # the client has had enough
        handler.wfile.write(body)


def test_an_unsatisfiable_range_that_was_not_asked_for(fetch, tmp_path):
    with pytest.raises(UserError, match='^Cannot download http://127.0.0.1:.* .HTTP Error 416: .*--data_url'):
        fetch(416)
    _assert_nothing_left(tmp_path)


def test_an_unsatisfiable_range_with_and_without_a_part(fetch, tmp_path):
    """The part is dropped first."""
    (tmp_path / (download.ARCHIVE + '.part')).write_bytes(b'x' * 1000)
    with pytest.raises(UserError, match='HTTP Error 416: '):
        fetch(416)
    _assert_nothing_left(tmp_path)


@pytest.mark.parametrize('length', ['-5', '-710000400', 'many', '1e3', '', '0', '5000000000', '9' * 30, '\xb2'])
def test_a_length_that_cannot_be_is_ignored(fetch, tmp_path, capsys, length):
    def answer(handler, content):
        _answer(handler, 200, content, Content_Length=length)
    if length == '0':  # the client believes it
        with pytest.raises(UserError, match='its MD5 is %s' % hashlib.md5(b'').hexdigest()):
            fetch(answer)
        return
    fetch(answer)
    _assert_complete(tmp_path)
    shown = capsys.readouterr().out
    assert '>> Downloading cifar-10-binary.tar.gz 0 MB\n' in shown and '%' not in shown


@pytest.mark.parametrize('shift', [-100, 100])
def test_another_range_than_asked_for_starts_again(fetch, tmp_path, archive, shift):
    half = len(archive) // 2

    def answer(handler, content):
        begin = half + shift
        _answer(handler, 206, content[begin:], Content_Length=str(len(content) - begin),
                Content_Range='bytes %d-%d/%d' % (begin, len(content) - 1, len(content)))
    server = fetch('cut short', answer, 'none')
    _assert_complete(tmp_path)
    assert server.ranges == [None, 'bytes=%d-' % half, None]


def test_the_range_that_was_asked_for(fetch, tmp_path, archive):
    half = len(archive) // 2

    def answer(handler, content):
        _answer(handler, 206, content[half:], Content_Range='bytes %d-%d/%d' % (half, len(content) - 1, len(content)))
    server = fetch('cut short', answer)
    _assert_complete(tmp_path)
    assert server.ranges == [None, 'bytes=%d-' % half]


@pytest.mark.parametrize('target', ['file:///etc/passwd', 'ftp://127.0.0.1:1/x', 'FTP://127.0.0.1:1/x', 'data:,x'])
def test_a_redirection_to_another_kind_of_place(fetch, tmp_path, target):
    with pytest.raises(UserError, match='^Cannot download http://127.0.0.1:.*%s.*--data_url' % target[5:]) as raised:
        fetch(lambda handler, content: _answer(handler, 302, b'', Location=target))
    assert 'Connection refused' not in str(raised.value)  # nothing was tried
    _assert_nothing_left(tmp_path)


def test_a_redirection_to_another_page(fetch, tmp_path):
    fetch(lambda handler, content: _answer(handler, 301, b'moved', Location='/elsewhere', Content_Length='5'), 'none')
    _assert_complete(tmp_path)


def test_the_endless_page_of_a_redirection_is_not_read(fetch, tmp_path):
    def answer(handler, content):
        handler.send_response(301)
        handler.send_header('Location', '/elsewhere')
        handler.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                handler.wfile.write(bytes(1 << 16))
    fetch(answer, 'none')
    _assert_complete(tmp_path)


def test_a_url_of_a_file(tmp_path, archive):
    (tmp_path / 'copy').write_bytes(archive)
    cifar10.maybe_download_and_extract(str(tmp_path / 'data'), (tmp_path / 'copy').as_uri(), hashlib.md5(archive).hexdigest())
    _assert_complete(tmp_path / 'data')


def test_a_server_that_sends_for_ever(fetch, tmp_path, monkeypatch):
    monkeypatch.setattr(download, '_MAX_BYTES', 10 ** 6)
    sent = []

    def answer(handler, content):
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                sent.append(handler.wfile.write(bytes(1 << 16)))
    with pytest.raises(UserError, match='^Cannot download .* .the server sent more than 1000000 bytes.: '):
        fetch(answer)
    _assert_nothing_left(tmp_path)


def test_more_than_the_server_said(fetch, tmp_path):
    """Chunks have no common length."""
    def answer(handler, content):
        handler.protocol_version = 'HTTP/1.1'
        chunk = b'%x\r\n%s\r\n' % (len(content), content)
        _answer(handler, 200, chunk * 2 + b'0\r\n\r\n', Content_Length=str(len(content)), Transfer_Encoding='chunked')
        handler.close_connection = True
    with pytest.raises(UserError, match='the server sent more than '):
        fetch(answer)
    _assert_nothing_left(tmp_path)


def test_the_words_of_a_server_do_not_reach_the_terminal(fetch):
    with pytest.raises(UserError) as raised:
        fetch(lambda handler, content: handler.wfile.write(b'HTTP/1.0 404 \x1b[31m\x07%s\r\n\r\n' % (b'very ' * 1000)))
    assert str(raised.value).isprintable() and len(str(raised.value)) < 600
