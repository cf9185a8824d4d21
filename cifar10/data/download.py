"""Downloads the official CIFAR-10 archive: resumable, verified, and put into place only when it is complete."""
import errno
import hashlib
import os
import shutil
import sys
import tarfile
import time

from six.moves import http_client, urllib

from cifar10.data import dataset
from cifar10.errors import UserError

DATA_URL = 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz'
ARCHIVE = 'cifar-10-binary.tar.gz'
MD5 = 'c32a1d4ab5d03f1284b67883e8d87530'  # published at https://www.cs.toronto.edu/~kriz/cifar.html

_CHUNK_BYTES = 1 << 18


def maybe_download_and_extract(data_dir=dataset.DATA_DIR, data_url=DATA_URL, md5=MD5, timeout_secs=30, retry_secs=1):
    """Puts CIFAR-10 into cifar-10-batches-bin, unless its files are there already.

    If the parent of that directory holds a copy of the archive, nothing is downloaded.

    Args:
      data_dir: cifar-10-batches-bin, or its parent.
      data_url: the URL of the archive.
      md5: hexadecimal MD5 of the archive.
      timeout_secs: seconds without a byte after which a connection counts as broken.
      retry_secs: seconds before the first retry; doubled after each retry that brings no byte.

    Raises:
      UserError: the archive cannot be downloaded or is not the published one, or the directory holds only some of the files.
    """
    with dataset.preparing(data_dir) as parent:
        if parent is None:
            return
        archive = os.path.join(parent, ARCHIVE)
        if not os.path.exists(archive):
            _download(data_url, archive, md5, timeout_secs, retry_secs)
        elif _md5(archive) != md5:
            raise UserError('%s is not the published archive (its MD5 is %s, not %s): delete it to have it downloaded'
                            % (archive, _md5(archive), md5))
        _extract(archive, parent)


def _extract(archive, parent):
    """Extracts the files of the data set, and nothing else."""
    print('Extracting %s' % archive, flush=True)
    try:
        with tarfile.open(archive) as tar, dataset.new_directory(parent) as directory:
            for name in dataset.TRAIN_FILES + dataset.TEST_FILES + [dataset.CLASS_NAMES_FILE]:
                member = tar.extractfile('%s/%s' % (dataset.DIRECTORY, name))
                with open(os.path.join(directory, name), 'wb') as extracted:
                    shutil.copyfileobj(member, extracted)
    except (tarfile.TarError, KeyError, AttributeError, EOFError) as error:  # AttributeError: a member that is no file
        raise UserError('%s is not the CIFAR-10 binary archive (%s): delete it to have it downloaded' % (archive, error))


def _download(url, archive, md5, timeout_secs, retry_secs):
    """Downloads to `archive`.part, and renames it when its MD5 is right."""
    part = archive + '.part'
    for leftover in (os.path.exists(part), False):
        _fetch_with_retries(url, part, timeout_secs, retry_secs)
        found = _md5(part)
        if found == md5:
            os.replace(part, archive)
            return
        os.remove(part)
        if not leftover:  # an earlier run may have left a part of another file: then start again
            break
    raise UserError('%s is not the CIFAR-10 binary archive (its MD5 is %s, not %s): try another --data_url, or put a good '
                    'copy at %s' % (url, found, md5, archive))


def _fetch_with_retries(url, part, timeout_secs, retry_secs):
    """Fetches until the file is complete; gives up after three tries in a row that brought nothing new."""
    furthest, failed_tries = _size(part), 0
    while True:
        try:
            return _fetch(url, part, timeout_secs)
        except (OSError, ValueError, http_client.HTTPException) as error:  # URLError and HTTPError are OSErrors
            code = getattr(error, 'code', None)
            if code == 416:  # what is there is as long as the file or longer: its MD5 tells
                return None
            failed_tries = 0 if _size(part) > furthest else failed_tries + 1
            furthest = max(furthest, _size(part))
            hopeless = (isinstance(error, (ValueError, http_client.InvalidURL)) or getattr(error, 'errno', None) == errno.ENOSPC
                        or (code and code < 500 and code not in (408, 429)))
            if hopeless or failed_tries == 3:
                raise UserError('Cannot download %s (%s): check the network, the disk and --data_url, or put a copy of the '
                                'archive at %s' % (url, error, part[:-len('.part')]))
            print('\nThe download was interrupted (%s): trying again' % error, flush=True)
        time.sleep(retry_secs * 2 ** max(0, failed_tries - 1))


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _fetch(url, part, timeout_secs):
    """Appends to `part` the rest of the file at `url`."""
    have = _size(part)
    request = urllib.request.Request(url, headers={'Range': 'bytes=%d-' % have} if have else {})
    with urllib.request.urlopen(request, timeout=timeout_secs) as response:
        if response.getcode() != 206:  # the server sends the whole file
            have = 0
        length = response.headers.get('Content-Length')
        total = have + int(length) if length else None
        with open(part, 'ab' if have else 'wb') as out:
            shown = None
            for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):  # read would lose what came before a stall
                out.write(chunk)
                have += len(chunk)
                shown = _show_progress(have, total, shown)
    if total and have < total:
        raise ConnectionError('closed after %d of %d bytes' % (have, total))


def _show_progress(have, total, shown):
    """Shows the progress: continuously on a terminal, in steps of 10% in a file. Returns what it showed last."""
    terminal = sys.stdout.isatty()
    now = '%.1f%%' % (100.0 * have / total) if total and terminal else (
        '%d%%' % (10 * (10 * have // total)) if total else '%d MB' % (10 * (have // 10000000)))
    if now != shown:
        print('%s>> Downloading %s %s' % ('\r' if terminal else '', ARCHIVE, now), flush=True,
              end='\n' if have == total or not terminal else '')
    return now


def _md5(path):
    digest = hashlib.md5()
    with open(path, 'rb') as content:
        for chunk in iter(lambda: content.read(_CHUNK_BYTES), b''):
            digest.update(chunk)
    return digest.hexdigest()
