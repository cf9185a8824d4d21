"""Downloads of programs by urlretrieve."""

import contextlib
import hashlib
import os
import shutil
import tarfile
import urllib.request

import pytest
import six

from cifar10.data import catalog
from cifar10.tf1 import downloads
from tests.helpers import data_sets, download_server, messages

NAME = 'cifar-10-binary.tar.gz'


def _archive(content, url):
    md5 = hashlib.md5(content).hexdigest()
    return catalog.CIFAR10.archive_of(NAME)._replace(md5=md5, urls=[url])


@pytest.mark.parametrize(
    'url, name, num_hosts',
    [
        ('http://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz', NAME, 3),
        ('http://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz', 'cifar-100-python.tar.gz', 4),
        (
            'https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz',
            'train-images-idx3-ubyte.gz',
            4,
        ),
        ('http://localhost/cifar-10-binary.tar.gz', None, None),
    ],
)
def test_which_files_come_from_several_hosts(monkeypatch, url, name, num_hosts):
    """Another host, and a file without a name, are left to urllib."""
    for module in (urllib.request, six.moves.urllib.request):
        monkeypatch.setattr(module, 'urlretrieve', lambda url, *arguments: 'by urllib')
    calls = []
    monkeypatch.setattr(downloads, 'fetch', lambda *arguments: calls.append(arguments))
    downloads.install()
    assert six.moves.urllib.request.urlretrieve(url) == 'by urllib'
    result = urllib.request.urlretrieve(url, '/x/data.tgz', lambda *numbers: None)
    if name is None:
        assert (result, calls) == ('by urllib', [])
        return
    ((archive, path),) = calls
    assert (result[0], path) == ('/x/data.tgz', '/x/data.tgz')
    assert archive.name == name and len(archive.urls) == num_hosts
    assert all(name in url for url in archive.urls)


def test_a_file_with_another_name(tmp_path):
    content = b'an archive'
    (tmp_path / NAME).write_bytes(b'another file')
    server = download_server.Server(content, ['none'])
    with contextlib.closing(server):
        downloads.fetch(_archive(content, server.url), str(tmp_path / 'data.tgz'))
    assert sorted(os.listdir(str(tmp_path))) == [NAME, 'data.tgz']
    assert (tmp_path / NAME).read_bytes() == b'another file'
    assert (tmp_path / 'data.tgz').read_bytes() == content


def test_no_host(tmp_path):
    server = download_server.Server(b'', [404])
    with contextlib.closing(server), messages.raises(
        rf'^Cannot download {server.url} \(HTTP Error 404: .*\): check the network, or put {NAME} into {tmp_path}$'
    ):
        downloads.fetch(_archive(b'x', server.url), str(tmp_path / NAME))


def test_files_beside_the_archive(tmp_path):
    """They make the archive, without a network, unless one of them is missing."""
    data_sets.write(str(tmp_path))
    files = tmp_path / catalog.CIFAR10.directory
    expected = {path.name: path.read_bytes() for path in files.iterdir()}
    content = b'from the host'
    server = download_server.Server(content, ['none', 'none'])
    with contextlib.closing(server):
        downloads.fetch(_archive(content, server.url), str(tmp_path / NAME))
        assert server.ranges == []
        python = catalog.CIFAR10.archive_of('cifar-10-python.tar.gz')._replace(
            md5=hashlib.md5(content).hexdigest(), urls=[server.url]
        )
        downloads.fetch(python, str(tmp_path / 'python'))
        os.remove(str(files / 'data_batch_3.bin'))
        downloads.fetch(_archive(content, server.url), str(tmp_path / 'again'))
    assert (tmp_path / 'again').read_bytes() == (tmp_path / 'python').read_bytes() == content
    shutil.rmtree(str(files))
    with tarfile.open(str(tmp_path / NAME), 'r:gz') as tar:
        tar.extractall(str(tmp_path))
    assert {path.name: path.read_bytes() for path in files.iterdir()} == expected
