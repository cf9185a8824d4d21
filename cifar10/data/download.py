"""Download of an archive from the first of its hosts that sends it.

A host that sends an error, nothing for ten seconds, or too slowly is left for the next one.
"""

import contextlib
import datetime
import os
import time

from six.moves import http_client, urllib

from cifar10 import errors
from cifar10.data.progress_lines import ProgressLines
from cifar10.errors import UserError
from cifar10.system import files

_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECS = 10  # to connect, and between two chunks
_TRIAL_SECS = 5  # between two measurements of the rate
_MAX_SECS_LEFT = 600  # A host that needs longer is left for the untried ones.
_USUAL_BYTES = 170000000  # of an archive whose length a host does not tell


class _HostError(Exception):
    """Failure of a host."""


def download_archive(archives, directory, progress):
    """Download one of several archives with the same content.

    An interrupted download leaves no file.

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
    hosts = [(archive, url) for archive in archives for url in archive.urls]
    # The last URL of an archive is that of the official host, which is slow.
    hosts.sort(key=lambda host: host[1] == host[0].urls[-1])
    failures = []
    for archive, url in hosts:
        name = (url.split('/')[2] if '://' in url else '') or url
        progress(f'Downloading {archive.name} from {name}')
        part = os.path.join(directory, archive.name + '.part')
        may_leave = len(failures) < len(hosts) - 1
        try:
            with open(part, 'wb') as file:
                file.writelines(_receive(url, may_leave, progress))
            md5 = files.digest(part, 'md5')
            names = [received.name for received in archives if received.md5 == md5]
            if names:
                path = os.path.join(directory, names[0])
                os.replace(part, path)
                return path
            failure = f'it is not the published archive (its MD5 is {md5}, not {archive.md5})'
        except _HostError as error:
            failure = errors.escape_unprintable(str(error))  # from the network
        except OSError as error:
            raise UserError(
                f'Cannot write {part} ({error.strerror}): '
                'make room there, make the directory writable, or give another one'
            )
        finally:
            with contextlib.suppress(OSError):
                os.remove(part)
        progress(f'{name}: {failure}')
        failures.append(failure)
    others = f' or {len(hosts) - 1} other hosts' if len(hosts) > 1 else ''
    raise ConnectionError(f'{hosts[0][1]} ({failures[0]}){others}')


def _receive(url, may_leave, progress):
    """Yield the response of a URL in chunks.

    Raises:
      _HostError: the host does not send all bytes, or would need too long and `may_leave` is True.
    """
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECS) as response:
            length = response.headers.get('Content-Length')
            num_bytes, num_done = int(length or _USUAL_BYTES), 0
            lines = ProgressLines(progress, 'Downloading', max(num_bytes // 1000, 1), 'kB')
            start, num_measured = time.monotonic(), 0
            # read1 returns what has arrived. read would wait for a whole chunk.
            for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):
                yield chunk
                lines.advance((num_done + len(chunk)) // 1000 - num_done // 1000)
                num_done += len(chunk)
                num_measured += len(chunk)
                seconds = time.monotonic() - start
                if may_leave and seconds >= _TRIAL_SECS:
                    rate = num_measured / seconds
                    seconds_left = round((num_bytes - num_done) / rate)
                    if seconds_left > _MAX_SECS_LEFT:
                        left = datetime.timedelta(seconds=seconds_left)
                        raise ConnectionError(f'slow ({rate / 1000:.0f} kB/s, {left} left)')
                    start, num_measured = time.monotonic(), 0
            if length and num_done < num_bytes:
                raise ConnectionError(f'closed after {num_done} of {num_bytes} bytes')
    except (OSError, ValueError, http_client.HTTPException) as error:
        # Without a code, an error of urllib hides the one of the system.
        raise _HostError(error if hasattr(error, 'code') else getattr(error, 'reason', error))
