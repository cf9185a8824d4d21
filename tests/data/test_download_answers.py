"""Answers of a server that cannot be, or never end."""

import contextlib
import hashlib

import pytest

import cifar10
from cifar10.data import download, transfer
from cifar10.errors import UserError
from tests.helpers import download_server
from tests.helpers.download_server import assert_complete, assert_nothing_left
from tests.helpers.special_files import deadline  # noqa: F401


def test_an_unsatisfiable_range_that_was_not_asked_for(fetch, tmp_path):
    with pytest.raises(
        UserError, match='^Cannot download http://127.0.0.1:.* .HTTP Error 416: .*--data_url'
    ):
        fetch(416)
    assert_nothing_left(tmp_path)


def test_an_unsatisfiable_range_with_and_without_a_part(fetch, tmp_path):
    """The part is dropped first."""
    (tmp_path / (download.CIFAR10.name + '.part')).write_bytes(b'x' * 1000)
    with pytest.raises(UserError, match='HTTP Error 416: '):
        fetch(416)
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize(
    'length', ['-5', '-710000400', 'many', '1e3', '', '0', '5000000000', '9' * 30, '\xb2']
)
def test_a_length_that_cannot_be_is_ignored(fetch, tmp_path, capsys, length):
    def answer(handler, content):
        download_server.answer(handler, 200, content, Content_Length=length)

    if length == '0':  # the client believes it
        with pytest.raises(UserError, match='its MD5 is %s' % hashlib.md5(b'').hexdigest()):
            fetch(answer)
        return
    fetch(answer)
    assert_complete(tmp_path)
    shown = capsys.readouterr().out
    assert '>> Downloading cifar-10-binary.tar.gz 0 MB\n' in shown and '%' not in shown


@pytest.mark.parametrize('shift', [-100, 100])
def test_another_range_than_asked_for_starts_again(fetch, tmp_path, archive, shift):
    half = len(archive) // 2

    def answer(handler, content):
        begin = half + shift
        download_server.answer(
            handler,
            206,
            content[begin:],
            Content_Length=str(len(content) - begin),
            Content_Range='bytes %d-%d/%d' % (begin, len(content) - 1, len(content)),
        )

    server = fetch('cut short', answer, 'none')
    assert_complete(tmp_path)
    assert server.ranges == [None, 'bytes=%d-' % half, None]


def test_the_range_that_was_asked_for(fetch, tmp_path, archive):
    half = len(archive) // 2

    def answer(handler, content):
        download_server.answer(
            handler,
            206,
            content[half:],
            Content_Range='bytes %d-%d/%d' % (half, len(content) - 1, len(content)),
        )

    server = fetch('cut short', answer)
    assert_complete(tmp_path)
    assert server.ranges == [None, 'bytes=%d-' % half]


@pytest.mark.parametrize(
    'target', ['file:///etc/passwd', 'ftp://127.0.0.1:1/x', 'FTP://127.0.0.1:1/x', 'data:,x']
)
def test_a_redirection_to_another_kind_of_place(fetch, tmp_path, target):
    with pytest.raises(
        UserError, match='^Cannot download http://127.0.0.1:.*%s.*--data_url' % target[5:]
    ) as raised:
        fetch(lambda handler, content: download_server.answer(handler, 302, b'', Location=target))
    assert 'Connection refused' not in str(raised.value)  # nothing was tried
    assert_nothing_left(tmp_path)


def test_a_redirection_to_another_page(fetch, tmp_path):
    fetch(
        lambda handler, content: download_server.answer(
            handler, 301, b'moved', Location='/elsewhere', Content_Length='5'
        ),
        'none',
    )
    assert_complete(tmp_path)


def test_the_endless_page_of_a_redirection_is_not_read(fetch, tmp_path):
    def answer(handler, content):
        handler.send_response(301)
        handler.send_header('Location', '/elsewhere')
        handler.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                handler.wfile.write(bytes(1 << 16))

    fetch(answer, 'none')
    assert_complete(tmp_path)


def test_a_url_of_a_file(tmp_path, archive):
    (tmp_path / 'copy').write_bytes(archive)
    cifar10.maybe_download_and_extract(
        str(tmp_path / 'data'), (tmp_path / 'copy').as_uri(), hashlib.md5(archive).hexdigest()
    )
    assert_complete(tmp_path / 'data')


def test_a_server_that_sends_for_ever(fetch, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, '_MAX_BYTES', 10**6)
    sent = []

    def answer(handler, content):
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                sent.append(handler.wfile.write(bytes(1 << 16)))

    with pytest.raises(
        UserError, match='^Cannot download .* .the server sent more than 1000000 bytes.: '
    ):
        fetch(answer)
    assert_nothing_left(tmp_path)


def test_more_than_the_server_said(fetch, tmp_path):
    """Chunks have no common length."""

    def answer(handler, content):
        handler.protocol_version = 'HTTP/1.1'
        chunk = b'%x\r\n%s\r\n' % (len(content), content)
        download_server.answer(
            handler,
            200,
            chunk * 2 + b'0\r\n\r\n',
            Content_Length=str(len(content)),
            Transfer_Encoding='chunked',
        )
        handler.close_connection = True

    with pytest.raises(UserError, match='the server sent more than '):
        fetch(answer)
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize('headers', [{'Content_Length': '7'}, {}])
def test_a_page_that_is_shorter_than_what_is_here(fetch, tmp_path, archive, headers):
    """As the page of a hotel, where one must log in first."""

    def answer(handler, content):
        download_server.answer(handler, 200, b'log in!', **headers)

    part = tmp_path / (download.CIFAR10.name + '.part')
    part.write_bytes(archive[:1000])
    with pytest.raises(
        UserError,
        match='^Cannot download .*the server sends less than is in %s already: delete that if '
        % part,
    ):
        fetch(answer)
    assert part.read_bytes() == archive[:1000]
    assert fetch('none').ranges == ['bytes=1000-']
    assert_complete(tmp_path)


def test_a_whole_file_that_breaks_off(fetch, tmp_path, archive):
    """Before what is here already; its length is not known."""

    def answer(handler, content):
        download_server.answer(handler, 200, content[:1000])

    (tmp_path / (download.CIFAR10.name + '.part')).write_bytes(archive[:70000])
    assert fetch(answer, 'none').ranges == ['bytes=70000-'] * 2
    assert_complete(tmp_path)


@pytest.mark.parametrize('headers', [True, False])
def test_a_whole_file_in_place_of_the_rest(fetch, tmp_path, archive, headers):
    """What is here already is kept."""

    def answer(handler, content):
        download_server.answer(
            handler, 200, content, **({'Content_Length': str(len(content))} if headers else {})
        )

    (tmp_path / (download.CIFAR10.name + '.part')).write_bytes(archive[:70000])
    assert fetch(answer).ranges == ['bytes=70000-']
    assert_complete(tmp_path)


def test_the_words_of_a_server_do_not_reach_the_terminal(fetch):
    with pytest.raises(UserError) as raised:
        fetch(
            lambda handler, content: handler.wfile.write(
                b'HTTP/1.0 404 \x1b[31m\x07%s\r\n\r\n' % (b'very ' * 1000)
            )
        )
    assert str(raised.value).isprintable() and len(str(raised.value)) < 800
