"""Transport of an archive from the first of several hosts that is fast.

A host that answers with an error, stalls, or needs much longer than another one would, is left. The
bytes on disk stay: the next host with the same archive sends the rest.
"""

import contextlib
import datetime
import math
import os
import queue
import socket
import threading
import time

from six.moves import http_client, urllib

from cifar10 import errors
from cifar10.data.progress import ProgressBar
from cifar10.data.published import archive_of_url
from cifar10.errors import UserError
from cifar10.system import files

_CHUNK_BYTES = 1 << 18
# Maximum time to open a connection and between two chunks; interval between two measurements.
_TRIAL_SECS = 5
_ONLY_HOST_SECS = 30  # the same, if there is no other host
_PAUSE_SECS = 60  # after an error without a byte, if another host is slow; doubled after each
_RETRY_SECS = 1  # before the second round of all hosts, doubled before each further one
_EXPECTED_RATE = 5e6  # bytes per second, of a host that has not been measured
_EXPECTED_BYTES = 170e6  # of an archive, until a host sends its length


class _Host:
    """A URL, and what its connections have shown."""

    def __init__(self, url, archive, directory):
        self.url = url
        self.archive = archive
        self.path = os.path.join(directory, archive.name)
        self.name = (url.split('/')[2] if '://' in url else '') or url
        self.measured_rate = _EXPECTED_RATE  # bytes per second
        self.error = None
        self.has_wrong_bytes = False  # True if a file with bytes of this host had a wrong MD5
        self.pause_end = -math.inf  # infinite after an error that will not pass
        self._pause = _PAUSE_SECS

    def fail(self, error, has_sent):
        """Do not use this host for a while, or for ever."""
        code = getattr(error, 'code', None)
        if isinstance(error, ValueError) or (code and code < 500 and code not in (408, 429)):
            self.pause_end = math.inf
        elif has_sent:
            self.pause_end = time.monotonic() + _TRIAL_SECS
        else:
            self.pause_end = time.monotonic() + self._pause
            self._pause *= 2
        # URLError has no code, and hides the error of the system.
        self.error = (not code and getattr(error, 'reason', None)) or error

    def rate(self):
        """Return the expected bytes per second; 0 in a pause."""
        return self.measured_rate if time.monotonic() >= self.pause_end else 0


class _SlowHostError(Exception):
    """Another host would be done sooner."""


class Download:
    """One download of a Published data set."""

    def __init__(self, published, directory, urls):
        """Set the directory of the archive, and the URLs in the order of the first tries."""
        self._archives = published.archives
        self._directory = directory
        self._hosts = [_Host(url, archive_of_url(published, url), directory) for url in urls]
        is_single = len(urls) == 1
        self._name = urls[0] if is_single else f'{published.name} from {len(urls)} hosts'
        self._trial_secs = _ONLY_HOST_SECS if is_single else _TRIAL_SECS
        self._max_failed_rounds = 3 if is_single else 1  # in a row, without a byte
        self._partial_paths = {}  # archive path -> partial file
        self._num_bytes = _EXPECTED_BYTES
        self._num_new = 0  # bytes that were not on disk before

    def run(self):
        """Download one of the archives to the directory.

        Raises:
          ConnectionError: no host has sent the archive.
          UserError: a file cannot be written.
        """
        num_failed_rounds = num_before = 0
        try:
            # Also the unused ones: an earlier part decides which host would be done first.
            for host in self._hosts:
                if host.path not in self._partial_paths:
                    self._partial_paths[host.path] = _open_partial(host.path)
            while True:
                host = min(self._hosts, key=self._seconds_left)
                if host.rate():
                    if self._try(host):
                        return
                    continue
                num_failed_rounds = 0 if self._num_new > num_before else num_failed_rounds + 1
                num_before = self._num_new
                remaining = [host for host in self._hosts if host.pause_end < math.inf]
                if not remaining or num_failed_rounds == self._max_failed_rounds:
                    raise ConnectionError(self._failure())
                time.sleep(_RETRY_SECS * 2 ** max(0, num_failed_rounds - 1))
                for host in remaining:
                    host.pause_end = -math.inf
        finally:
            for path in self._partial_paths.values():
                if os.path.exists(path) and not os.path.getsize(path):
                    os.remove(path)

    def _seconds_left(self, host):
        """Return the estimated time until `host` would be done."""
        num_bytes = self._num_bytes - _size(self._partial_paths[host.path])
        return max(num_bytes, 1) / host.rate() if host.rate() else math.inf

    def _try(self, host):
        """Receive from a host; return True if the archive is complete."""
        partial_path = self._partial_paths[host.path]
        num_present, num_before = _size(partial_path), self._num_new
        print(f'Downloading {host.archive.name} from {host.name}', flush=True)
        try:
            self._receive(host, partial_path, num_present)
            return self._verify(host, partial_path, num_present)
        except _SlowHostError as error:
            print(f'{host.name} is slow ({error})', flush=True)
        except (OSError, ValueError, http_client.HTTPException) as error:
            # URLError and HTTPError are OSErrors.
            host.fail(error, has_sent=self._num_new > num_before)
            # The text comes from the network.
            print(errors.escape_unprintable(f'{host.name}: {host.error}'), flush=True)
        return False

    def _receive(self, host, partial_path, num_present):
        """Append the missing bytes to the partial file.

        Raises:
          _SlowHostError: another host would be done sooner.
          OSError, ValueError, http_client.HTTPException: the host does not send all bytes.
        """
        start = time.monotonic()
        try:
            response = _open(host.url, num_present, self._trial_secs)
        except urllib.error.HTTPError as error:
            if error.code == 416 and num_present:
                return  # The file is complete or too long. Its MD5 decides.
            raise
        with response, open(partial_path, 'ab') as out:
            # A server without support for ranges sends everything again.
            num_to_skip = 0 if response.getcode() == 206 else num_present
            length = int(response.headers.get('Content-Length') or 0)
            if length:
                self._num_bytes = num_present - num_to_skip + length
            if not length or self._num_bytes >= num_present:
                num_done = num_present - num_to_skip
                for chunk in self._measured(host, response, num_done, start):
                    new = chunk[num_to_skip:]
                    _append(out, new)
                    num_to_skip -= len(chunk) - len(new)
                    self._num_new += len(new)
        if num_to_skip:
            raise ValueError(
                f'the file on the server is shorter than {partial_path}: delete the partial file if the server is right'
            )
        num_present = _size(partial_path)
        if length and num_present < self._num_bytes:
            raise ConnectionError(f'closed after {num_present} of {self._num_bytes} bytes')

    def _measured(self, host, response, num_done, start):
        """Yield the chunks of a response after `num_done` bytes; print the progress.

        The first measurement begins at `start`, before the connection.
        """
        progress = ProgressBar(
            f'Downloading from {host.name}',
            max(1, int(self._num_bytes) // 1000),
            'kB',
            done=num_done // 1000,
        )
        num_measured = 0
        # read1, because read would lose the bytes before a stall
        for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):
            yield chunk
            num_before, num_done = num_done, num_done + len(chunk)
            num_measured += len(chunk)
            progress.advance(num_done // 1000 - num_before // 1000)
            seconds = time.monotonic() - start
            if seconds >= self._trial_secs:
                host.measured_rate = num_measured / seconds
                self._check_rate(host, max(self._num_bytes - num_done, 1) / host.measured_rate)
                start, num_measured = time.monotonic(), 0

    def _check_rate(self, host, seconds_left):
        """Raise _SlowHostError if another host would need less than half of the time."""
        others = [self._seconds_left(other) for other in self._hosts if other is not host]
        if others and seconds_left > 2 * min(others):
            left = datetime.timedelta(seconds=round(seconds_left))
            raise _SlowHostError(f'{host.measured_rate / 1000:.0f} kB/s, {left} left')

    def _verify(self, host, partial_path, num_resumed):
        """Publish the complete archive and return True; return False to start again.

        Raises:
          ValueError: everything came from this host.
        """
        md5 = files.digest(partial_path, 'md5')
        for archive in self._archives:
            if archive.md5 == md5:
                os.replace(partial_path, os.path.join(self._directory, archive.name))
                self._remove_partial_files()
                return True
        os.truncate(partial_path, 0)
        if not num_resumed or host.has_wrong_bytes:
            raise ValueError(
                f'it is not the published archive (its MD5 is {md5}, not {host.archive.md5})'
            )
        host.has_wrong_bytes = True
        print('The earlier part was of another file: starting again', flush=True)
        return False

    def _remove_partial_files(self):
        for path in self._partial_paths.values():
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)

    def _failure(self):
        host = next(host for host in self._hosts if host.error)
        is_partial = any(map(_size, self._partial_paths.values()))
        hint = '; the next start resumes the download' if is_partial else ''
        first = '' if len(self._hosts) == 1 else f'the first, {host.name}: '
        return f'{self._name} ({first}{host.error}{hint})'


def _open(url, num_present, seconds):
    """Return the response to a request for the bytes after the first `num_present` ones.

    Raises:
      socket.timeout: there is no response after `seconds`. The timeout of a socket would apply to
        each address of the host and each redirection, and not to the name server.
    """
    headers = {'Range': f'bytes={num_present}-'} if num_present else {}
    results = queue.Queue()

    def request():
        try:
            results.put(
                urllib.request.urlopen(
                    urllib.request.Request(url, headers=headers), timeout=seconds
                )
            )
        except Exception as error:  # The caller raises it.
            results.put(error)

    threading.Thread(target=request, daemon=True).start()
    try:
        result = results.get(timeout=seconds)
    except queue.Empty:
        raise socket.timeout(f'no response after {seconds} seconds')
    if isinstance(result, Exception):
        raise result
    return result


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _append(out, content):
    try:
        out.write(content)
    except OSError as error:
        raise UserError(
            f'Cannot write {out.name} ({error.strerror}): make room there; the next start resumes the download'
        )


def _open_partial(path):
    """Return the path of the partial file, with the bytes of an earlier download.

    Raises:
      UserError: the file cannot be written.
    """
    partial_path = path + '.part'
    try:
        with open(partial_path, 'ab'):
            return partial_path
    except OSError as error:
        raise UserError(
            f'Cannot write {partial_path} ({error.strerror}): make room there, make the directory writable, or give another one'
        )
