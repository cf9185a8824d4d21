"""Downloads of programs: published files, verified, from the first of several hosts that is fast.

The hosts in the programs are slow (CIFAR-10) or refuse the files (MNIST).
"""

import http.client
import io
import os
import pathlib
import tarfile
import tempfile
import threading
from typing import NamedTuple
import urllib.error
import urllib.parse
import urllib.request

import six

from cifar10.data import catalog, dataset, verification
from cifar10.data.download import download_archive
from cifar10.errors import UserError, show
from cifar10.system import directories, files

# The MD5s and the first host are in torchvision/datasets/mnist.py, the second one is in TensorFlow
# 1.15, the third one belongs to the University of Paderborn. The last one, which programs name, has
# refused the files since 2024 (cvdfoundation/mnist#4).
_MNIST_HOSTS = [
    'https://ossci-datasets.s3.amazonaws.com/mnist/',
    'https://storage.googleapis.com/cvdf-datasets/mnist/',
    'https://raw.githubusercontent.com/fgnt/mnist/master/',
    'https://yann.lecun.com/exdb/mnist/',
]
MNIST = {
    name: catalog.Archive(name, md5, '', [host + name for host in _MNIST_HOSTS])
    for name, md5 in {
        'train-images-idx3-ubyte.gz': 'f68b3c2dcbeaaa9fbdd348bbdeb94873',
        'train-labels-idx1-ubyte.gz': 'd53e105ee54ea40749a09fcbcd1e9432',
        't10k-images-idx3-ubyte.gz': '9fb629c4189551a2d022fa330f9573f3',
        't10k-labels-idx1-ubyte.gz': 'ec29112dd5afa0611ce80d1b7f02629c',
    }.items()
}


class _Own(threading.local):
    """State of a thread: True while `_download` sends requests, which go to their hosts."""

    is_downloading = False


_own = _Own()


def install():
    """Let urllib get published files, whichever of their hosts a program names."""
    archives = [*MNIST.values()]
    for published in catalog.PUBLISHED.values():
        archives += published.archives
    archives_by_location = {_location(url): each for each in archives for url in each.urls}
    _replace_urlretrieve(archives_by_location)
    _replace_open(archives_by_location)


def _location(url):
    """Return what the different spellings of a URL have in common."""
    parts = urllib.parse.urlsplit(str(url))
    return parts.hostname, urllib.parse.unquote(parts.path), parts.query


def _replace_urlretrieve(archives_by_location):
    """Let urlretrieve with a path use `fetch`, which can also pack."""
    retrieve = urllib.request.urlretrieve

    def retrieve_from_fast_host(url, filename=None, *others, **named):
        archive = archives_by_location.get(_location(url))
        if not filename or archive is None:
            return retrieve(url, filename, *others, **named)
        fetch(archive, filename)
        return filename, None

    urllib.request.urlretrieve = six.moves.urllib.request.urlretrieve = retrieve_from_fast_host


def _replace_open(archives_by_location):
    """Replace the method behind urlopen, and behind a urlretrieve that Keras has imported."""
    open_url = urllib.request.OpenerDirector.open

    def open_from_fast_host(self, url, *others, **named):
        request = urllib.request.Request(url) if isinstance(url, str) else url
        archive = archives_by_location.get(_location(request.full_url))
        posted, *_ = *others, named.get('data')
        is_whole = (
            posted is None and request.get_method() == 'GET' and not request.has_header('Range')
        )
        if archive is None or not is_whole or _own.is_downloading:
            return open_url(self, url, *others, **named)
        try:
            response = _respond(archive)
        except ConnectionError as error:
            raise urllib.error.URLError(f'Cannot download {error}') from None
        response.url, response.msg = request.full_url, response.reason  # as urllib sets them
        return response

    urllib.request.OpenerDirector.open = open_from_fast_host


class _Connection(NamedTuple):
    """Socket with a response."""

    content: bytes

    def makefile(self, unused_mode):
        """Return the response as a file."""
        head = f'HTTP/1.1 200 OK\r\nContent-Length: {len(self.content)}\r\n\r\n'
        return io.BufferedReader(io.BytesIO(head.encode() + self.content))


def _respond(archive):
    """Return an http.client.HTTPResponse with a published file.

    Raises:
      ConnectionError, UserError: see download_archive.
    """
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(_download(archive, directory, show))
        response = http.client.HTTPResponse(_Connection(path.read_bytes()))
    response.begin()
    return response


def _download(archive, directory, progress):
    _own.is_downloading = True
    try:
        return download_archive([archive], directory, progress)
    finally:
        _own.is_downloading = False


def fetch(archive, path, progress=show):
    """Write a published file.

    An archive of a published data set is packed from the binary files beside it, if they exist.

    Args:
      archive: an Archive of the catalog, or of MNIST.
      path: the new file.
      progress: a function of one line of text.

    Raises:
      UserError: no host sends the file, or the file cannot be written.
    """
    place = os.path.dirname(os.path.abspath(path))
    try:
        with directories.lock(place, progress=progress):
            if os.path.exists(path) and files.digest(path, 'md5') == archive.md5:
                return  # Another process has written it.
            if not _pack(archive, path, progress):
                # The download has the name of the file, because another archive may be there.
                _download(archive._replace(name=os.path.basename(path)), place, progress)
    except ConnectionError as error:
        raise UserError(
            f'Cannot download {error}: check the network, or put {archive.name} into {place}'
        )


def _pack(archive, path, progress):
    """Write the archive of the binary files beside it; return False without complete files."""
    binary_files = os.path.join(os.path.dirname(os.path.abspath(path)), archive.directory)
    if archive.directory not in [each.directory for each in catalog.PUBLISHED.values()]:
        return False
    try:
        verification.verify(dataset.read(binary_files))
    except UserError:
        return False
    progress(f'Packing {binary_files} into {path}')
    with tarfile.open(path + '.part', 'w:gz', compresslevel=1) as tar:
        tar.add(binary_files, archive.directory)
    os.replace(path + '.part', path)
    return True
