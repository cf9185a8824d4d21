"""A small archive, and its download from a test server."""

import hashlib
import io
import os
import tarfile

import pytest

import cifar10
from cifar10.data import dataset
from tests.helpers.download_server import Server


@pytest.fixture(scope='session')
def archive(tmp_path_factory):
    """Bytes of a small archive with the official layout; random images keep its size."""
    directory = tmp_path_factory.mktemp('archive') / dataset.CIFAR10_DIRECTORY
    directory.mkdir()
    for name in dataset.TRAIN_FILES + dataset.TEST_FILES:
        (directory / name).write_bytes(
            b''.join(bytes([i % 10]) + os.urandom(3072) for i in range(40))
        )
    (directory / dataset.CLASS_NAMES_FILE).write_text('\n'.join(dataset.CLASS_NAMES))
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode='w:gz') as tar:
        tar.add(str(directory), dataset.CIFAR10_DIRECTORY)
    return content.getvalue()


@pytest.fixture
def fetch(tmp_path, archive):
    """fetch(*faults) downloads from a server with these faults, and returns the server."""
    servers = []

    def start(*faults, **kwargs):
        servers.append(Server(archive, list(faults)))
        cifar10.maybe_download_and_extract(
            str(tmp_path),
            servers[-1].url,
            md5=hashlib.md5(archive).hexdigest(),
            retry_secs=0,
            timeout_secs=kwargs.get('timeout_secs', 30),
        )
        return servers[-1]

    yield start
    for server in servers:
        server.close()
