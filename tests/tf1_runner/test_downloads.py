"""Downloads of programs."""

import contextlib
import hashlib
import os
import shutil
import tarfile
import urllib.error
import urllib.request

import pytest
import six
import tensorflow.compat.v1 as tf

from cifar10.data import catalog
from tests.helpers import data_sets, download_server, messages
from tf1_runner import downloads, error_hints

NAME = 'cifar-10-binary.tar.gz'


def _archive(content, url):
    md5 = hashlib.md5(content).hexdigest()
    return catalog.CIFAR10.archive_of(NAME)._replace(md5=md5, urls=[url])


@pytest.fixture
def install(monkeypatch):
    """Return the function `install`, which is undone after the test."""
    owners = [(module, 'urlretrieve') for module in (urllib.request, six.moves.urllib.request)]
    owners.append((urllib.request.OpenerDirector, 'open'))
    for owner, name in owners:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    return downloads.install


@pytest.mark.parametrize(
    'url, name, num_hosts',
    [
        ('http://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz', NAME, 3),
        ('https://WWW.cs.toronto.edu:443/%7Ekriz/cifar-10-binary.tar.gz', NAME, 3),
        (
            'https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz',
            'train-images-idx3-ubyte.gz',
            4,
        ),
        ('http://localhost/cifar-10-binary.tar.gz', None, None),
    ],
)
def test_which_files_come_from_several_hosts(monkeypatch, install, url, name, num_hosts):
    """Another host is left to urllib."""
    monkeypatch.setattr(urllib.request, 'urlretrieve', lambda url, *arguments: 'by urllib')
    calls = []
    monkeypatch.setattr(downloads, 'fetch', lambda *arguments: calls.append(arguments))
    install()
    result = six.moves.urllib.request.urlretrieve(url, '/x/data.tgz', lambda *numbers: None)
    if name is None:
        assert (result, calls) == ('by urllib', [])
        return
    ((archive, path),) = calls
    assert (result[0], path) == ('/x/data.tgz', '/x/data.tgz')
    assert archive.name == name and len(archive.urls) == num_hosts
    assert all(name in url for url in archive.urls)


def _open(url, path):
    with urllib.request.urlopen(url, timeout=30) as response, open(path, 'wb') as file:
        size = int(response.info()['Content-Length'])
        assert response.status == 200 and int(response.getheader('Content-Length')) == size
        shutil.copyfileobj(response, file)


def _open_with_own_opener(url, path):
    opener = urllib.request.build_opener()
    opener.addheaders = [('User-agent', 'Mozilla/5.0')]
    with opener.open(urllib.request.Request(url)) as response, open(path, 'wb') as file:
        file.write(response.read())


def _get_by_keras(url, path):
    directory, name = os.path.split(path)
    tf.keras.utils.get_file(name, url, cache_dir=directory, cache_subdir='')


WAYS = [
    lambda *arguments: urllib.request.urlretrieve(*arguments),
    urllib.request.urlretrieve,  # as Keras has imported it
    _open,
    _open_with_own_opener,
    _get_by_keras,
]


@pytest.fixture
def known(monkeypatch):
    """Return a function that makes a server, and a slow one, the hosts of a published archive."""

    def make(content, *servers):
        archive = _archive(content, '')._replace(urls=[server.url for server in servers])
        published = catalog.CIFAR10._replace(archives=[archive])
        monkeypatch.setattr(catalog, 'PUBLISHED', {'cifar10': published})

    return make


@pytest.mark.parametrize('way', WAYS)
def test_a_file_comes_from_the_first_host(tmp_path, install, known, way):
    content = bytes(range(256)) * 40
    fast = download_server.Server(content, ['corrupt', 'none'])
    slow, path = download_server.Server(b'slow', ['none']), tmp_path / 'data.tgz'
    # The first host sends another file at first.
    with contextlib.closing(fast), contextlib.closing(slow):
        known(content, fast, fast, slow)
        install()
        way(slow.url, str(path))
    assert path.read_bytes() == content
    assert (len(fast.ranges), slow.ranges) == (2, [])


@pytest.mark.parametrize('way', WAYS[2:])
def test_no_host_sends_the_file(tmp_path, install, known, way):
    server = download_server.Server(b'', [404])
    with contextlib.closing(server):
        known(b'x', server)
        install()
        with pytest.raises(Exception, match='Cannot download') as caught:
            way(server.url, str(tmp_path / 'data.tgz'))
    line = error_hints.find_hint(caught.value, str(tmp_path))
    assert line.endswith(f'Cannot download {server.url}; check the network')


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
