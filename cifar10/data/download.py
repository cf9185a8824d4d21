"""Downloads the official CIFAR-10 archive: resumable, verified, and put into place only when it is complete."""
import contextlib
import errno
import hashlib
import os
import re
import stat
import sys
import tarfile
import time
import zlib

from six.moves import http_client, urllib

from cifar10 import files
from cifar10.data import dataset
from cifar10.errors import UserError

DATA_URL = 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz'
ARCHIVE = 'cifar-10-binary.tar.gz'
MD5 = 'c32a1d4ab5d03f1284b67883e8d87530'  # published at https://www.cs.toronto.edu/~kriz/cifar.html

_CHUNK_BYTES = 1 << 18
_MAX_BYTES = 10 * 170052171  # ten times the archive: what sends more may never end
_FILE_BYTES = dataset.NUM_EXAMPLES_PER_EPOCH_FOR_EVAL * dataset.RECORD_BYTES  # a training file is as long as the test file
_SHORTER = 'the server sends less than is in %s already: delete that if the server is right'


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
        else:
            files.check_regular(archive, 'delete it to have it downloaded')
            found = _md5(archive)
            if found != md5:
                raise UserError('%s is not the published archive (its MD5 is %s, not %s): delete it to have it downloaded'
                                % (archive, found, md5))
        _extract(archive, parent)


def _extract(archive, parent):
    """Extracts the files of the data set, and nothing else."""
    print('Extracting %s' % archive, flush=True)
    try:
        with tarfile.open(archive, 'r:gz') as tar, dataset.new_directory(parent) as directory:
            for name in dataset.TRAIN_FILES + dataset.TEST_FILES + [dataset.CLASS_NAMES_FILE]:
                content = _member(tar, name)
                with open(os.path.join(directory, name), 'wb') as extracted:
                    extracted.write(content)
    except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
        raise UserError('%s is not the CIFAR-10 binary archive (%s): delete it to have it downloaded' % (archive, error))


def _member(tar, name):
    """The content of a file in the archive, which must be no link, and no longer than it can be in a data set."""
    member = tar.getmember('%s/%s' % (dataset.DIRECTORY, name))
    longest = dataset.CLASS_NAMES_BYTES if name == dataset.CLASS_NAMES_FILE else _FILE_BYTES
    if not member.isreg() or member.size > longest:
        raise tarfile.TarError('%s is not a file of at most %d bytes' % (member.name, longest))
    return tar.extractfile(member).read()


def _download(url, archive, md5, timeout_secs, retry_secs):
    """Downloads to `archive`.part, and renames it when its MD5 is right."""
    part = archive + '.part'
    if os.path.lexists(part):
        _open_part(part).close()
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


def _open_part(path):
    """Opens the part of a download to append to it: a new file, or one that this user has left there.

    Raises:
      UserError: something else lies there; what a link leads to is not touched.
    """
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, 'O_BINARY', 0)
    with contextlib.suppress(FileExistsError):
        return os.fdopen(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666), 'ab')
    with contextlib.suppress(OSError):  # which a link, a directory, a FIFO, or another user's file gives
        handle = os.open(path, flags | getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_NONBLOCK', 0))
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and (not hasattr(os, 'getuid') or found.st_uid == os.getuid()):
            return os.fdopen(handle, 'ab')
        os.close(handle)
    raise UserError('%s is a link, no file, or not yours, and so not the rest of a download: delete it' % path)


def _fetch_with_retries(url, part, timeout_secs, retry_secs):
    """Fetches until the file is complete; gives up after three tries in a row that brought nothing new."""
    furthest, failed_tries = _size(part), 0
    while True:
        try:
            return _fetch(url, part, timeout_secs)
        except (OSError, ValueError, http_client.HTTPException) as error:  # URLError and HTTPError are OSErrors
            code = getattr(error, 'code', None)
            if code == 416 and _size(part):  # what is there is as long as the file or longer: its MD5 tells
                return None
            failed_tries = 0 if _size(part) > furthest else failed_tries + 1
            furthest = max(furthest, _size(part))
            hopeless = (isinstance(error, (ValueError, http_client.InvalidURL)) or getattr(error, 'errno', None) == errno.ENOSPC
                        or (code and code < 500 and code not in (408, 429)))
            reason = ''.join(character if character.isprintable() else '?' for character in str(error)[:200])  # a server's words
            if hopeless or failed_tries == 3:
                raise UserError('Cannot download %s (%s): check the network, the disk and --data_url, or put a copy of the '
                                'archive at %s; --dataset=synthetic needs no network' % (url, reason, part[:-len('.part')]))
            print('\nThe download was interrupted (%s): trying again' % reason, flush=True)
        time.sleep(retry_secs * 2 ** max(0, failed_tries - 1))


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


class _WebRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to other web servers only; urllib would go to FTP servers too."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # noqa: PLR0913
        fp.close()  # urllib would read its body, however long it is
        if not newurl.startswith(('http://', 'https://')):
            raise ValueError('it redirects to %s, which is not followed' % newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(url, part, timeout_secs):
    """Appends to `part` the rest of the file at `url`."""
    have = _size(part)
    request = urllib.request.Request(url, headers={'Range': 'bytes=%d-' % have} if have else {})
    with urllib.request.build_opener(_WebRedirects).open(request, timeout=timeout_secs) as response:
        known = 0 if response.getcode() == 206 else have  # bytes that are here already: the server sends the whole file
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
            for chunk in iter(lambda: response.read1(_CHUNK_BYTES), b''):  # read would lose what came before a stall
                new = chunk[known:]
                known -= len(chunk) - len(new)
                out.write(new)
                have += len(new)
                if have > limit:
                    break
                shown = _show_progress(have, total, shown)
    if known and not total:
        raise ConnectionError(_SHORTER % part)
    if have > limit:
        os.remove(part)
        raise ValueError('the server sent more than %d bytes' % limit)
    if total and have - known < total:
        raise ConnectionError('closed after %d of %d bytes' % (have - known, total))


def _total(headers, have):
    """The bytes of the whole file if the server says how many come; None if it does not, or says what cannot be."""
    length = headers.get('Content-Length', '')
    total = have + int(length) if re.fullmatch('[0-9]{1,12}', length) else 0
    return total if 0 < total <= _MAX_BYTES else None


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
