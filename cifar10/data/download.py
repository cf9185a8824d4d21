"""Downloads of the official archives of CIFAR-10 and CIFAR-100: resumable, verified, and put into
place only when they are complete."""

import errno
import os
import shutil
import stat
import tarfile
import time
from typing import NamedTuple
import zlib

from six.moves import http_client, urllib

from cifar10.data import dataset, dataset_writer
from cifar10.data.progress import ProgressBar
from cifar10.errors import UserError
from cifar10.system import directories, files

_CHUNK_BYTES = 1 << 18
_MAX_BYTES = 10 * 170052171  # ten times the archive of CIFAR-10: what sends more may never end
# Bytes per second; a slower connection counts as broken. With less the archive takes two days.
_MIN_RATE = 1000
_SHORTER = 'the server sends less than is in %s already: delete that if the server is right'


class Archive(NamedTuple):
    """An official archive, and how patiently it is downloaded."""

    published: dataset.Published
    url: str
    md5: str  # in hexadecimal digits
    timeout_secs: float = 30  # seconds without a byte after which a connection counts as broken
    # seconds before the first retry; doubled after each retry that brings too little
    retry_secs: float = 1


# The MD5s are published at https://www.cs.toronto.edu/~kriz/cifar.html.
CIFAR10 = Archive(
    dataset.CIFAR10,
    'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz',
    'c32a1d4ab5d03f1284b67883e8d87530',
)
CIFAR100 = Archive(
    dataset.CIFAR100,
    'https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz',
    '03b5dce01913d631647c71ecec9e9cb8',
)
DATA_URL, MD5 = CIFAR10.url, CIFAR10.md5


def maybe_download_and_extract(
    data_dir=dataset.DATA_DIR, data_url=DATA_URL, md5=MD5, timeout_secs=30, retry_secs=1
):
    """Puts CIFAR-10 into cifar-10-batches-bin, unless its files are there already.

    If the parent of that directory holds a copy of the archive, nothing is downloaded.

    Args:
      data_dir: cifar-10-batches-bin, or its parent; or any directory that holds a data set.
      data_url: the URL of the archive.
      md5: hexadecimal MD5 of the archive.
      timeout_secs, retry_secs: see Archive.

    Raises:
      UserError: the archive cannot be downloaded or is not the published one, or the directory
        holds only some of the files.
    """
    prepare(Archive(dataset.CIFAR10, data_url, md5, timeout_secs, retry_secs), data_dir)


def prepare(archive, data_dir):
    """Puts the files of an Archive into their directory, as `maybe_download_and_extract` does."""
    with dataset_writer.preparing(data_dir, archive.published) as directory:
        if directory is None:
            return
        path = os.path.join(os.path.dirname(directory), archive.published.archive)
        if not os.path.exists(path):
            _download(archive, path)
        else:
            files.check_regular(path, 'delete it to have it downloaded')
            found = files.digest(path, 'md5')
            if found != archive.md5:
                raise UserError(
                    '%s is not the published archive (its MD5 is %s, not %s): delete it to have it downloaded'
                    % (path, found, archive.md5)
                )
        _extract(archive.published, path, directory)


def _extract(published, path, directory):
    """Extracts the files of the data set, and nothing else."""
    print('Extracting %s' % path, flush=True)
    listings = [listing for listing, _, _ in published.labels.values()]
    try:
        with tarfile.open(path, 'r:gz') as tar, dataset_writer.new_directory(directory) as new:
            for name in published.train_files + published.test_files + listings:
                member = tar.extractfile('%s/%s' % (published.directory, name))
                with open(os.path.join(new, name), 'wb') as extracted:
                    shutil.copyfileobj(member, extracted)
    except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
        raise UserError('%s is damaged (%s): delete it to have it downloaded' % (path, error))


def _download(archive, path):
    """Downloads to `path`.part, which becomes `path` when its MD5 is right; the rest of an earlier
    download is used.

    Raises:
      UserError: the file cannot be downloaded, or is another one.
    """
    part = path + '.part'
    _check_part(part)
    # An earlier run may have left a part of another file: then start again.
    for is_leftover in (_size(part) > 0, False):
        _fetch_with_retries(archive, part)
        found = files.digest(part, 'md5')
        if found == archive.md5:
            os.replace(part, path)
            return
        os.remove(part)
        if not is_leftover:
            break
    raise UserError(
        '%s is not the published archive (its MD5 is %s, not %s): try another --data_url, or put a good copy at %s'
        % (archive.url, found, archive.md5, path)
    )


def _check_part(path):
    """Raises UserError if there is something that cannot be the part of a download, like a link."""
    directories.check_trusted(path)
    if os.path.lexists(path):
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise UserError(
                '%s is a link or no file, and so not the rest of a download: delete it' % path
            )


def _fetch_with_retries(archive, part):
    """Fetches until the file is complete; gives up after three tries in a row that brought less
    than _MIN_RATE."""
    failed_tries = 0
    while True:
        start, before = time.monotonic(), _size(part)
        try:
            return _fetch(archive, part)
        except (OSError, ValueError, http_client.HTTPException) as error:
            # URLError and HTTPError are OSErrors
            code = getattr(error, 'code', None)
            have = _size(part)
            # what is there is as long as the file or longer: its MD5 tells
            if code == 416 and have:
                return None
            is_fast = have - before > _MIN_RATE * (time.monotonic() - start)
            failed_tries = 0 if is_fast else failed_tries + 1
            is_hopeless = (
                isinstance(error, ValueError)
                or getattr(error, 'errno', None) == errno.ENOSPC
                or (code and code < 500 and code not in (408, 429))
            )
            if is_hopeless or failed_tries == 3:
                kept = '; what came is kept, and the next start resumes there' if have else ''
                path = os.path.abspath(part)[: -len('.part')]
                raise UserError(
                    'Cannot download %s (%s%s): check the network and the disk, try `cifar10_dataset.py download` with '
                    'another --data_url, or put a copy of the archive at %s. Without a network, use the images that '
                    '`cifar10_dataset.py synthetic` makes' % (archive.url, error, kept, path)
                )
            print('The download was interrupted (%s): trying again' % error, flush=True)
        time.sleep(archive.retry_secs * 2 ** max(0, failed_tries - 1))


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _fetch(archive, part):
    """Appends to `part` the rest of the file of an Archive."""
    have = _size(part)
    headers = {'Range': 'bytes=%d-' % have} if have else {}
    request = urllib.request.Request(archive.url, headers=headers)
    with urllib.request.urlopen(request, timeout=archive.timeout_secs) as response:
        # bytes that are here already: the server sends the whole file
        known = 0 if response.getcode() == 206 else have
        length = int(response.headers.get('Content-Length') or 0)
        total = have - known + length if length else None
        if total and total < have:
            raise ValueError(_SHORTER % part)
        progress = ProgressBar('Downloading ' + archive.published.archive, length, 'bytes')
        _check_part(part)
        with open(part, 'ab') as out:
            for chunk in _chunks(response, archive.timeout_secs):
                new = chunk[known:]
                known -= len(chunk) - len(new)
                out.write(new)
                have += len(new)
                if have > _MAX_BYTES:
                    break
                if length:
                    progress.advance(len(chunk))
    if have > _MAX_BYTES:
        os.remove(part)
        raise ValueError('the server sent more than %d bytes' % _MAX_BYTES)
    if known and not total:
        raise ConnectionError(_SHORTER % part)
    if total and have - known < total:
        raise ConnectionError('closed after %d of %d bytes' % (have - known, total))


def _chunks(response, timeout_secs):
    """Yields the bytes as they come; raises ConnectionError if fewer than _MIN_RATE come on average
    over `timeout_secs`."""
    start, came = time.monotonic(), 0
    # read would lose what came before a stall
    for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):
        yield chunk
        came, seconds = came + len(chunk), time.monotonic() - start
        if seconds >= timeout_secs:
            if came < _MIN_RATE * seconds:
                raise ConnectionError('fewer than %d bytes per second came' % _MIN_RATE)
            start, came = time.monotonic(), 0
