"""Download of an archive from the first of its hosts that sends it.

A host that sends an error, nothing for ten seconds, or too slowly is left for the next one. The
bytes on disk stay, and the next request for the same archive asks for the rest.
"""

import contextlib
import datetime
import os
import queue
import socket
import threading
import time

from six.moves import http_client, urllib

from cifar10 import errors
from cifar10.data.progress_lines import ProgressLines
from cifar10.errors import UserError
from cifar10.system import files

THREAD_NAME = 'cifar10-download'  # of the threads that open a connection
_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECS = 10  # to connect, and between two chunks
_PAUSE_SECS = 1  # before a host is asked again
_TRIAL_SECS = 5  # between two measurements of the rate
_MAX_SECS_LEFT = 600  # A host that needs longer is left for the untried ones.
_USUAL_BYTES = 170000000  # of an archive whose length a host does not tell


class _Host:
    """A URL of an archive, and what the last connection has shown."""

    def __init__(self, url, archive, directory):
        self.url, self.archive = url, archive
        self.name = (url.split('/')[2] if '://' in url else '') or url
        self.part = os.path.join(directory, archive.name + '.part')
        self.num_received = 0  # bytes that were not on disk
        self.rate = 0  # bytes per second
        self.failure = None  # text


def download_archive(archives, directory, progress):
    """Download one of several archives with the same content.

    Args:
      archives: Archives of the catalog.
      directory: the directory to write to; the caller holds the lock of it.
      progress: a function of one line of text.

    Returns:
      The path of the archive.

    Raises:
      ConnectionError: no host sends an archive; the message has the first host and its failure.
      UserError: a file cannot be written.
    """
    all_hosts = [_Host(url, archive, directory) for archive in archives for url in archive.urls]
    # The last URL of an archive is that of the official host, which is slow.
    all_hosts.sort(key=lambda host: host.url == host.archive.urls[-1])
    hosts, untried = all_hosts, list(all_hosts)
    while hosts:
        for host in hosts:
            progress(f'Downloading {host.archive.name} from {host.name}')
            untried = [other for other in untried if other is not host]
            try:
                path = _download_from(host, archives, bool(untried), progress)
            except (OSError, ValueError, http_client.HTTPException) as error:
                # Without a code, an error of urllib hides the one of the system.
                reason = getattr(error, 'reason', error) if not hasattr(error, 'code') else error
                host.failure = errors.escape_unprintable(str(reason))  # from the network
                progress(f'{host.name}: {host.failure}')
                continue
            for other in all_hosts:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(other.part)
            return path
        # Hosts that have sent something are worth another connection, the fastest one first.
        hosts = sorted((host for host in hosts if host.num_received), key=lambda host: -host.rate)
        time.sleep(_PAUSE_SECS)
    for host in all_hosts:
        if os.path.exists(host.part) and not _size(host.part):
            os.remove(host.part)
    others = f' or {len(all_hosts) - 1} other hosts' if len(all_hosts) > 1 else ''
    is_partial = any(os.path.exists(host.part) for host in all_hosts)
    hint = '; the next start resumes the download' if is_partial else ''
    raise ConnectionError(f'{all_hosts[0].url} ({all_hosts[0].failure}){others}{hint}')


def _download_from(host, archives, may_leave, progress):
    """Download an archive from one host; return the path.

    Raises:
      OSError, ValueError, http_client.HTTPException: the host sends no archive, or would need too
        long and `may_leave` is True.
    """
    is_resumed = _size(host.part) > 0
    _receive(host, may_leave, progress)
    md5 = files.digest(host.part, 'md5')
    for archive in archives:
        if archive.md5 == md5:
            path = os.path.join(os.path.dirname(host.part), archive.name)
            os.replace(host.part, path)
            return path
    os.remove(host.part)
    if is_resumed:
        progress('The earlier part was of another file: starting again')
        return _download_from(host, archives, may_leave, progress)
    host.num_received = 0
    raise ValueError(f'it is not the published archive (its MD5 is {md5}, not {host.archive.md5})')


def _receive(host, may_leave, progress):
    """Append the missing bytes to the partial file; see `_download_from`."""
    num_done = _size(host.part)
    host.num_received, start, num_measured = 0, time.monotonic(), 0
    headers = {'Range': f'bytes={num_done}-'} if num_done else {}
    try:
        response = _open(urllib.request.Request(host.url, headers=headers))
    except urllib.error.HTTPError as error:
        if error.code == 416 and num_done:
            return  # The file is complete or too long. Its MD5 decides.
        raise
    with response, _open_part(host.part) as part:
        # A server without support for ranges sends everything again.
        num_to_skip = 0 if response.getcode() == 206 else num_done
        num_done -= num_to_skip
        length = response.headers.get('Content-Length')
        num_bytes = num_done + int(length or _USUAL_BYTES)
        lines = ProgressLines(
            progress, 'Downloading', max(num_bytes // 1000, 1), 'kB', done=num_done // 1000
        )
        # read1, because read would lose the bytes before a stall
        for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):
            new = chunk[num_to_skip:]
            num_to_skip -= len(chunk) - len(new)
            _append(part, new)
            host.num_received += len(new)
            num_before, num_done = num_done, num_done + len(chunk)
            lines.advance(num_done // 1000 - num_before // 1000)
            num_measured += len(chunk)
            seconds = max(time.monotonic() - start, 1e-3)
            host.rate = num_measured / seconds
            if seconds >= _TRIAL_SECS:
                seconds_left = round((num_bytes - num_done) / host.rate)
                if may_leave and seconds_left > _MAX_SECS_LEFT:
                    left = datetime.timedelta(seconds=seconds_left)
                    raise ConnectionError(f'slow ({host.rate / 1000:.0f} kB/s, {left} left)')
                start, num_measured = time.monotonic(), 0
    if num_to_skip:
        raise ValueError(
            f'the file on the server is shorter than {host.part}: delete the partial file if the server is right'
        )
    if length and num_done < num_bytes:
        raise ConnectionError(f'closed after {num_done} of {num_bytes} bytes')


def _open(request):
    """Return the response to a request, within _TIMEOUT_SECS.

    The timeout of a socket holds for each address of a host, and not for the name server.
    """
    results = queue.Queue()

    def run():
        try:
            results.put(urllib.request.urlopen(request, timeout=_TIMEOUT_SECS))
        except Exception as error:  # The caller raises it.
            results.put(error)

    threading.Thread(target=run, name=THREAD_NAME, daemon=True).start()
    try:
        result = results.get(timeout=_TIMEOUT_SECS)
    except queue.Empty:
        raise socket.timeout(f'no response for {_TIMEOUT_SECS} seconds')
    if isinstance(result, Exception):
        raise result
    return result


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _open_part(path):
    try:
        return open(path, 'ab', buffering=0)  # An error must come from `_append`.
    except OSError as error:
        raise UserError(
            f'Cannot write {path} ({error.strerror})',
            'make room there, make the directory writable, or give another one',
        )


def _append(part, content):
    try:
        while content:
            content = content[part.write(content) :]
    except OSError as error:
        raise UserError(
            f'Cannot write {part.name} ({error.strerror})',
            'make room there; the next start resumes the download',
        )
