"""Downloads a file from a web server: resumable, verified, and put into place only when it is
complete."""

import contextlib
import errno
import hashlib
import os
import re
import socket
import stat
import sys
import threading
import time
from typing import NamedTuple

from six.moves import http_client, urllib

from cifar10.errors import UserError

_CHUNK_BYTES = 1 << 18
_MAX_BYTES = 10 * 170052171  # ten times the archive of CIFAR-10: what sends more may never end
_SHORTER = 'the server sends less than is in %s already: delete that if the server is right'


class Source(NamedTuple):
    """What is downloaded from where, and how patiently."""

    title: str  # for messages, like 'the CIFAR-10 binary archive'
    url: str
    md5: str  # in hexadecimal digits
    remedy: str = 'give another --data_url'  # for an address that does not work
    timeout_secs: float = 30  # seconds without a byte after which a connection counts as broken
    # seconds before the first retry; doubled after each retry that brings too little
    retry_secs: float = 1
    # Bytes per second, on average over timeout_secs; a slower connection counts as broken. With
    # less the archive takes two days.
    min_rate: float = 1000


def download(source, path):
    """Downloads a file: to `path`.part, which becomes `path` when its MD5 is right; the rest of an
    earlier download is used.

    Args:
      source: a Source.
      path: where the file is to be.

    Raises:
      UserError: it cannot be downloaded, or is another one.
    """
    part = path + '.part'
    if os.path.lexists(part):
        _open_part(part).close()
    for leftover in (os.path.exists(part), False):
        _fetch_with_retries(source, part)
        found = md5(part)
        if found == source.md5:
            os.replace(part, path)
            return
        os.remove(part)
        if not leftover:  # an earlier run may have left a part of another file: then start again
            break
    raise UserError(
        '%s is not %s (its MD5 is %s, not %s): try another --data_url, or put a good copy at %s'
        % (source.url, source.title, found, source.md5, path)
    )


def _open_part(path):
    """Opens the part of a download to append to it: a new file, or one that this user has left
    there.

    Raises:
      UserError: something else lies there; what a link leads to is not touched.
    """
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, 'O_BINARY', 0)
    with contextlib.suppress(FileExistsError):
        return os.fdopen(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666), 'ab')
    # which a link, a directory, a FIFO, or another user's file gives
    with contextlib.suppress(OSError):
        handle = os.open(path, flags | getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_NONBLOCK', 0))
        found = os.fstat(handle)
        if (
            stat.S_ISREG(found.st_mode)
            and found.st_nlink == 1
            and (not hasattr(os, 'getuid') or found.st_uid == os.getuid())
        ):
            return os.fdopen(handle, 'ab')
        os.close(handle)
    raise UserError(
        '%s is a link, no file, or not yours, and so not the rest of a download: delete it' % path
    )


def _fetch_with_retries(source, part):
    """Fetches until the file is complete; gives up after three tries in a row that brought less
    than source.min_rate."""
    furthest, failed_tries = _size(part), 0
    while True:
        start = time.monotonic()
        try:
            return _fetch(source, part)
        except (OSError, ValueError, http_client.HTTPException) as error:
            # URLError and HTTPError are OSErrors
            code = getattr(error, 'code', None)
            # what is there is as long as the file or longer: its MD5 tells
            if code == 416 and _size(part):
                return None
            brought = _size(part) - furthest
            failed_tries = (
                0 if brought > source.min_rate * (time.monotonic() - start) else failed_tries + 1
            )
            furthest = max(furthest, _size(part))
            hopeless = (
                isinstance(error, (ValueError, http_client.InvalidURL))
                or getattr(error, 'errno', None) == errno.ENOSPC
                or (code and code < 500 and code not in (408, 429))
            )
            # a server's words
            reason = ''.join(
                character if character.isprintable() else '?' for character in str(error)[:200]
            )
            if hopeless or failed_tries == 3:
                kept = (
                    '; what came is kept, and the next start resumes there' if _size(part) else ''
                )
                raise UserError(
                    'Cannot download %s (%s%s): check the network and the disk, %s, or put a copy of the archive at %s. '
                    'Without a network, use the images that `cifar10_dataset.py synthetic` makes'
                    % (
                        source.url,
                        reason,
                        kept,
                        source.remedy,
                        os.path.abspath(part)[: -len('.part')],
                    )
                )
            print('\nThe download was interrupted (%s): trying again' % reason, flush=True)
        time.sleep(source.retry_secs * 2 ** max(0, failed_tries - 1))


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


class _HeaderDeadline:
    """Mixin for urllib's handlers that limits the time for all headers together; urllib's timeout
    is for each byte."""

    def do_open(self, http_class, req, **http_conn_args):
        """Opens a connection as urllib does; raises ConnectionError if the headers come too
        slowly."""

        def connect(*args, **kwargs):
            connection = http_class(*args, **kwargs)
            get_response, late = connection.getresponse, []

            def give_up():
                late.append(True)
                # The connection, or its socket, may just have been closed.
                with contextlib.suppress(OSError, AttributeError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

            def get_response_in_time():
                timer = threading.Timer(connection.timeout, give_up)
                timer.daemon = True
                timer.start()
                try:
                    return get_response()
                finally:
                    timer.cancel()
                    if late:
                        raise ConnectionError('the headers came too slowly')

            connection.getresponse = get_response_in_time
            return connection

        return super().do_open(connect, req, **http_conn_args)


class _HTTPHandler(_HeaderDeadline, urllib.request.HTTPHandler):
    pass


class _HTTPSHandler(_HeaderDeadline, urllib.request.HTTPSHandler):
    pass


class _WebRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to other web servers only; urllib would go to FTP servers too."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # noqa: PLR0913
        fp.close()  # urllib would read its body, however long it is
        if not newurl.startswith(('http://', 'https://')):
            raise ValueError('it redirects to %s, which is not followed' % newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(source, part):
    """Appends to `part` the rest of the file of a Source."""
    have = _size(part)
    request = urllib.request.Request(
        source.url, headers={'Range': 'bytes=%d-' % have} if have else {}
    )
    opener = urllib.request.build_opener(_WebRedirects, _HTTPHandler, _HTTPSHandler)
    with opener.open(request, timeout=source.timeout_secs) as response:
        # bytes that are here already: the server sends the whole file
        known = 0 if response.getcode() == 206 else have
        sent_range = re.match('bytes ([0-9]+)-', response.headers.get('Content-Range', ''))
        if have and not known and sent_range and int(sent_range.group(1)) != have:
            os.remove(part)
            raise ConnectionError('the server sent another part than it was asked for')
        total = _total(response.headers, have - known)
        if total and total < have:
            raise ValueError(_SHORTER % part)
        limit = total or _MAX_BYTES
        with _open_part(part) as out:
            shown = None
            for chunk in _chunks(response, source):
                new = chunk[known:]
                known -= len(chunk) - len(new)
                out.write(new)
                have += len(new)
                if have > limit:
                    break
                shown = _show_progress(os.path.basename(part)[: -len('.part')], have, total, shown)
    if known and not total:
        raise ConnectionError(_SHORTER % part)
    if have > limit:
        os.remove(part)
        raise ValueError('the server sent more than %d bytes' % limit)
    if total and have - known < total:
        raise ConnectionError('closed after %d of %d bytes' % (have - known, total))


def _chunks(response, source):
    """Yields the bytes as they come; raises ConnectionError where they come more slowly than the
    Source may send them."""
    start, came = time.monotonic(), 0
    # read would lose what came before a stall
    for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):
        yield chunk
        came, seconds = came + len(chunk), time.monotonic() - start
        if seconds >= source.timeout_secs:
            if came < source.min_rate * seconds:
                raise ConnectionError('fewer than %d bytes per second came' % source.min_rate)
            start, came = time.monotonic(), 0


def _total(headers, have):
    """The bytes of the whole file if the server says how many come; None if it does not, or says
    what cannot be."""
    length = headers.get('Content-Length', '')
    total = have + int(length) if re.fullmatch('[0-9]{1,12}', length) else 0
    return total if 0 < total <= _MAX_BYTES else None


def _show_progress(name, have, total, shown):
    """Shows the progress: continuously on a terminal, in steps of 10% in a file. Returns what it
    showed last."""
    terminal = sys.stdout.isatty()
    now = (
        '%.1f%%' % (100.0 * have / total)
        if total and terminal
        else (
            '%d%%' % (10 * (10 * have // total)) if total else '%d MB' % (10 * (have // 10000000))
        )
    )
    if now != shown:
        print(
            '%s>> Downloading %s %s' % ('\r' if terminal else '', name, now),
            flush=True,
            end='\n' if have == total or not terminal else '',
        )
    return now


def md5(path):
    """The MD5 of a file, in hexadecimal digits."""
    digest = hashlib.md5()
    with open(path, 'rb') as content:
        for chunk in iter(lambda: content.read(_CHUNK_BYTES), b''):
            digest.update(chunk)
    return digest.hexdigest()
