"""Small archives in both formats, and their download from a test server."""

import hashlib
import io
import tarfile

from absl import flags
import numpy as np
import pytest

from cifar10.cli import data_flags
from cifar10.data import dataset, download, published, transport
from tests.helpers import programs, python_files
from tests.helpers.download_server import Server


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    """The home directory may have copies of the data."""
    monkeypatch.setattr(download, '_USUAL_PLACES', ())


@pytest.fixture(scope='session')
def versions(tmp_path_factory):
    """A directory with both versions of a small CIFAR-10: random images, which keep their size in
    an archive."""
    parent = tmp_path_factory.mktemp('versions')
    directory = parent / dataset.CIFAR10_DIRECTORY
    directory.mkdir()
    for index, name in enumerate(dataset.TRAIN_FILES + dataset.TEST_FILES):
        rows = np.random.RandomState(index).randint(0, 256, [40, 3073]).astype(np.uint8)
        rows[:, 0] = np.arange(40) % 10
        rows.tofile(str(directory / name))
    (directory / dataset.CLASS_NAMES_FILE).write_text('\n'.join(dataset.CLASS_NAMES) + '\n')
    python_files.write(directory, parent / published.CIFAR10.spec.python_directory)
    return parent


def _archive(versions, name):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode='w:gz') as tar:
        tar.add(str(versions / name), name)
    return content.getvalue()


@pytest.fixture(scope='session')
def archive(versions):
    """Bytes of the binary archive."""
    return _archive(versions, published.CIFAR10.spec.directory)


@pytest.fixture(scope='session')
def python_archive(versions):
    """Bytes of the archive for Python."""
    return _archive(versions, published.CIFAR10.spec.python_directory)


@pytest.fixture
def small(archive, python_archive, versions):
    """A Published data set with the small archives, without hosts."""
    archives = [
        known._replace(md5=hashlib.md5(content).hexdigest())
        for known, content in zip(published.CIFAR10.archives, [archive, python_archive])
    ]
    sha1 = {
        name: hashlib.sha1((versions / dataset.CIFAR10_DIRECTORY / name).read_bytes()).hexdigest()
        for name in dataset.TRAIN_FILES + dataset.TEST_FILES
    }
    return published.CIFAR10._replace(archives=archives, urls=[], sha1=sha1)


@pytest.fixture
def fetch(tmp_path, small, archive, monkeypatch):
    """fetch(*faults) downloads from a server with these faults, and returns the server."""
    monkeypatch.setattr(transport, '_RETRY_SECS', 0)
    servers = []

    def start(*faults):
        servers.append(Server(archive, list(faults)))
        download.obtain(small, str(tmp_path), servers[-1].url)
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def prepare():
    """prepare(*arguments) returns the Dataset of a trainer with these arguments."""

    def run(*arguments):
        with programs.own_flags():
            data_flags.define()
            flags.FLAGS(['a script', *arguments])
            return data_flags.dataset_from_flags()

    return run
