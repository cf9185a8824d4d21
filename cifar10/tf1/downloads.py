"""Downloads of programs: published files, verified, from the first of several hosts that is fast.

The hosts in the programs are slow (CIFAR-10) or refuse the files (MNIST).
"""

import os
import tarfile
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


def install():
    """Let urlretrieve get published files by `fetch`, whichever of their hosts a program names."""
    archives = [*MNIST.values()]
    for published in catalog.PUBLISHED.values():
        archives += published.archives
    archives_by_location = {_location(url): each for each in archives for url in each.urls}
    retrieve = urllib.request.urlretrieve

    def retrieve_from_fast_host(url, filename=None, *others, **named):
        archive = archives_by_location.get(_location(url))
        if not filename or archive is None:
            return retrieve(url, filename, *others, **named)
        fetch(archive, filename)
        return filename, None

    urllib.request.urlretrieve = six.moves.urllib.request.urlretrieve = retrieve_from_fast_host


def _location(url):
    return str(url).partition('://')[2]  # Programs name the same host with http and https.


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
        with directories.Lock(place, progress=progress):
            if os.path.exists(path) and files.digest(path, 'md5') == archive.md5:
                return  # Another process has written it.
            if not _pack(archive, path, progress):
                # The download has the name of the file, because another archive may be there.
                download_archive([archive._replace(name=os.path.basename(path))], place, progress)
    except ConnectionError as error:
        raise UserError(
            f'Cannot download {error}', f'check the network, or put {archive.name} into {place}'
        )


def _pack(archive, path, progress):
    """Write the archive of the binary files beside it; return False without complete files."""
    binary_files = os.path.join(os.path.dirname(os.path.abspath(path)), archive.directory)
    if archive.directory not in [each.directory for each in catalog.PUBLISHED.values()]:
        return False
    try:
        for split in dataset.read(binary_files).splits:
            verification.verify(split)
    except UserError:
        return False
    progress(f'Packing {binary_files} into {path}')
    with tarfile.open(path + '.part', 'w:gz', compresslevel=1) as tar:
        tar.add(binary_files, archive.directory)
    os.replace(path + '.part', path)
    return True
