"""Resumable, verified, atomic downloads of the official archives of CIFAR-10 and CIFAR-100."""

import contextlib
import errno
import glob
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
_MAX_BYTES = 10 * 170052171  # limit for a server that sends endlessly: ten times CIFAR-10
# A slower connection counts as broken: the archive would take two days.
_MIN_BYTES_PER_SEC = 1000


class Archive(NamedTuple):
    """Official archive and the timeouts of its download."""

    dataset_spec: dataset.DatasetSpec
    url: str
    md5: str  # hexadecimal
    timeout_secs: float = 30  # of the socket, and interval of the speed check
    retry_secs: float = 1  # wait before a retry, doubled from the second failed try


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
    """Download and extract CIFAR-10 to cifar-10-batches-bin, unless the files exist.

    An archive in the parent directory of cifar-10-batches-bin is used instead of a download. The
    default directory must not belong to another user.

    Args:
      data_dir: cifar-10-batches-bin or its parent. Another data set in this directory is kept.
      data_url: URL of the archive.
      md5: hexadecimal MD5 of the archive.
      timeout_secs: see Archive.
      retry_secs: see Archive.

    Raises:
      UserError: the archive cannot be downloaded or has another MD5, some of the files are
        missing, or the default directory belongs to another user.
    """
    if data_dir == dataset.DATA_DIR and not dataset_writer.is_present(data_dir):
        directories.check_trusted(data_dir, 'give another directory')
    download_and_extract(
        Archive(dataset.CIFAR10, data_url, md5, timeout_secs, retry_secs), data_dir
    )


def download_and_extract(archive, data_dir):
    """Download and extract an Archive, as `maybe_download_and_extract` does."""
    with dataset_writer.lock_files_dir(data_dir, archive.dataset_spec) as directory:
        if directory is None:
            return
        path = os.path.join(os.path.dirname(directory), archive.dataset_spec.archive_name)
        if not os.path.exists(path):
            _download(archive, path)
        else:
            files.check_regular_file(path, 'delete it to download it again')
            actual_md5 = files.digest(path, 'md5')
            if actual_md5 != archive.md5:
                raise UserError(
                    f'{path} is not the published archive (its MD5 is {actual_md5}, not {archive.md5}): delete it to download it again'
                )
        _extract(archive.dataset_spec, path, directory)


def _extract(dataset_spec, path, directory):
    """Extract only the files of the data set."""
    print(f'Extracting {path}', flush=True)
    names_files = [names_file for names_file, _, _ in dataset_spec.label_modes.values()]
    try:
        with tarfile.open(path, 'r:gz') as tar, dataset_writer.verified_directory(directory) as new:
            for name in dataset_spec.train_files + dataset_spec.test_files + names_files:
                member = tar.extractfile(f'{dataset_spec.directory}/{name}')
                with open(os.path.join(new, name), 'wb') as extracted:
                    shutil.copyfileobj(member, extracted)
    except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
        raise UserError(f'{path} is damaged ({error}): delete it to download it again')


def _download(archive, path):
    """Download to a partial file, or resume an earlier one; rename it if the MD5 is correct.

    Raises:
      UserError: the file cannot be downloaded or written, or has another MD5.
    """
    partial_path = _make_partial(path)
    try:
        # An earlier partial file may belong to another archive. The second try downloads
        # everything.
        for is_leftover in (_size(partial_path) > 0, False):
            _fetch_with_retries(archive, partial_path, path)
            actual_md5 = files.digest(partial_path, 'md5')
            if actual_md5 == archive.md5:
                os.replace(partial_path, path)
                return
            os.truncate(partial_path, 0)
            if not is_leftover:
                break
        raise UserError(
            f'{archive.url} is not the published archive (its MD5 is {actual_md5}, not {archive.md5}): try another --data_url, '
            f'or put a good copy at {path}'
        )
    finally:
        if not _size(partial_path):
            with contextlib.suppress(FileNotFoundError):
                os.remove(partial_path)


def _make_partial(path):
    """Return the path of a new partial file of this process, with the largest earlier download.

    Even without locks, no other process writes to the file. Abandoned files are removed. Other
    files are copied, because their processes may run on another machine.

    Raises:
      UserError: the file cannot be written.
    """
    try:
        with files.open_new(f'{path}.part{directories.process_mark()}') as new:
            pass
    except OSError as error:
        raise UserError(
            f'Cannot write {path}.part ({error.strerror}): make room there, make the directory writable, or give another one'
        )
    earlier = filter(_is_partial, glob.glob(glob.escape(path) + '.part*'))
    for leftover in sorted(earlier, key=_size):
        with contextlib.suppress(OSError):  # Another process has been faster.
            if directories.is_abandoned(leftover):
                os.replace(leftover, new.name)
            else:
                shutil.copyfile(leftover, new.name)
    return new.name


def _is_partial(path):
    """Return True for a file that is not a link, which could change or publish another file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:  # Its process has just completed it.
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def _fetch_with_retries(archive, partial_path, path):
    """Fetch until the file is complete.

    Raises:
      UserError: the error is permanent, or three consecutive tries were below _MIN_BYTES_PER_SEC.
    """
    failed_tries = 0
    while True:
        start, before = time.monotonic(), _size(partial_path)
        try:
            return _fetch(archive, partial_path)
        except (OSError, ValueError, http_client.HTTPException) as error:
            # URLError and HTTPError are OSErrors
            code = getattr(error, 'code', None)
            num_received = _size(partial_path)
            # 416: the partial file is complete or too long; its MD5 decides.
            if code == 416 and num_received:
                return None
            is_fast = num_received - before > _MIN_BYTES_PER_SEC * (time.monotonic() - start)
            failed_tries = 0 if is_fast else failed_tries + 1
            is_permanent = (
                isinstance(error, ValueError)
                or getattr(error, 'errno', None) == errno.ENOSPC
                or (code and code < 500 and code not in (408, 429))
            )
            if is_permanent or failed_tries == 3:
                resume_hint = '; the next start resumes the download' if num_received else ''
                raise UserError(
                    f'Cannot download {archive.url} ({error}{resume_hint}): check the network and the disk, try '
                    '`cifar10_dataset.py download` with another --data_url, or put a copy of the archive at '
                    f'{os.path.abspath(path)}. Without a network, use `cifar10_dataset.py synthetic`'
                )
            print(f'The download was interrupted ({error}): trying again', flush=True)
        time.sleep(archive.retry_secs * 2 ** max(0, failed_tries - 1))


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _fetch(archive, partial_path):
    """Append the missing bytes to `partial_path`."""
    num_received = _size(partial_path)
    headers = {'Range': f'bytes={num_received}-'} if num_received else {}
    request = urllib.request.Request(archive.url, headers=headers)
    with urllib.request.urlopen(request, timeout=archive.timeout_secs) as response:
        # A server without support for ranges sends everything again.
        num_to_skip = 0 if response.getcode() == 206 else num_received
        length = int(response.headers.get('Content-Length') or 0)
        total = num_received - num_to_skip + length if length else None
        if total and total < num_received:
            raise ValueError(_shorter_message(partial_path))
        progress = ProgressBar('Downloading ' + archive.dataset_spec.archive_name, length, 'bytes')
        with open(partial_path, 'ab') as out:
            for chunk in _read_chunks(response, archive.timeout_secs):
                new = chunk[num_to_skip:]
                num_to_skip -= len(chunk) - len(new)
                out.write(new)
                num_received += len(new)
                if num_received > _MAX_BYTES:
                    break
                if length:
                    progress.advance(len(chunk))
    if num_received > _MAX_BYTES:
        os.truncate(partial_path, 0)
        raise ValueError(f'the server sent more than {_MAX_BYTES} bytes')
    if num_to_skip and not total:
        raise ConnectionError(_shorter_message(partial_path))
    if total and num_received - num_to_skip < total:
        raise ConnectionError(f'closed after {num_received - num_to_skip} of {total} bytes')


def _read_chunks(response, timeout_secs):
    """Yield the received bytes.

    Raises:
      ConnectionError: the mean over `timeout_secs` is below _MIN_BYTES_PER_SEC.
    """
    start, num_bytes = time.monotonic(), 0
    # read1, because read would lose the bytes before a stall
    for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):
        yield chunk
        num_bytes, seconds = num_bytes + len(chunk), time.monotonic() - start
        if seconds >= timeout_secs:
            if num_bytes < _MIN_BYTES_PER_SEC * seconds:
                raise ConnectionError(f'slower than {_MIN_BYTES_PER_SEC} bytes per second')
            start, num_bytes = time.monotonic(), 0


def _shorter_message(partial_path):
    return f'the file on the server is shorter than {partial_path}: delete the partial file if the server is right'
