"""Downloads of programs: published files, verified, from the first of several hosts that is fast.

The hosts in the programs are slow (CIFAR-10) or refuse the files (MNIST).
"""

import os
import tarfile
import urllib.request

import six

from cifar10.data import dataset, published, transport, verification
from cifar10.errors import UserError

# The MD5s and the first host are in torchvision/datasets/mnist.py, the second one is in TensorFlow
# 1.15, the third one belongs to the University of Paderborn. The last one, which programs name, has
# refused the files since 2024 (cvdfoundation/mnist#4).
_MNIST_HOSTS = [
    'https://ossci-datasets.s3.amazonaws.com/mnist/',
    'https://storage.googleapis.com/cvdf-datasets/mnist/',
    'https://raw.githubusercontent.com/fgnt/mnist/master/',
    'https://yann.lecun.com/exdb/mnist/',
]
_MNIST_MD5S = {
    'train-images-idx3-ubyte.gz': 'f68b3c2dcbeaaa9fbdd348bbdeb94873',
    'train-labels-idx1-ubyte.gz': 'd53e105ee54ea40749a09fcbcd1e9432',
    't10k-images-idx3-ubyte.gz': '9fb629c4189551a2d022fa330f9573f3',
    't10k-labels-idx1-ubyte.gz': 'ec29112dd5afa0611ce80d1b7f02629c',
}


def mnist_file(name):
    """Return the Published record of one of the four files of MNIST."""
    archives = [published.Archive(name, _MNIST_MD5S[name], '')]
    return published.Published(
        'MNIST', None, None, archives, [host + name for host in _MNIST_HOSTS], {}
    )


def install():
    """Let urlretrieve get published files by `fetch`, whichever of their hosts a program names."""
    sources = {}  # location of a URL -> Published record of this file only
    for source in [published.CIFAR10, published.CIFAR100, *map(mnist_file, _MNIST_MD5S)]:
        for archive in source.archives:
            urls = [url for url in source.urls if archive.name in url]
            record = source._replace(archives=[archive], urls=urls)
            sources.update((_location(url), record) for url in urls)
    retrieve = urllib.request.urlretrieve

    def retrieve_from_fast_host(url, filename=None, *others, **named):
        source = sources.get(_location(url))
        if not filename or source is None:
            return retrieve(url, filename, *others, **named)
        fetch(source, filename)
        return filename, None

    urllib.request.urlretrieve = six.moves.urllib.request.urlretrieve = retrieve_from_fast_host


def _location(url):
    return str(url).partition('://')[2]  # Programs name the same host with http and https.


def fetch(source, path):
    """Write a published file.

    An archive of CIFAR-10 or CIFAR-100 is packed from the binary files beside it, if they exist.

    Args:
      source: a Published record with one archive.
      path: the new file.

    Raises:
      UserError: no host sends the file, or the file cannot be written.
    """
    (archive,) = source.archives
    place = os.path.dirname(os.path.abspath(path))
    binary_files = os.path.join(place, archive.directory)
    if archive.directory and _is_complete(binary_files):
        print(f'Packing {binary_files} into {path}', flush=True)
        with tarfile.open(path + '.part', 'w:gz', compresslevel=1) as tar:
            tar.add(binary_files, archive.directory)
        os.replace(path + '.part', path)
        return
    # The download has the name of the file, because another archive may be there.
    source = source._replace(archives=[archive._replace(name=os.path.basename(path))])
    try:
        transport.Download(source, place, source.urls).run()
    except ConnectionError as error:
        raise UserError(
            f'Cannot download {error}', f'check the network, or put {archive.name} into {place}'
        )


def _is_complete(directory):
    try:
        found = dataset.read(directory)
        for split in (found.train, found.test):
            verification.verify(split)
    except UserError:
        return False
    return True
