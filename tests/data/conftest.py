"""Small archives of both versions of CIFAR-10."""

import hashlib
import io
import tarfile

from absl import flags
import numpy as np
import pytest

from cifar10.cli import data_flags
from cifar10.data import catalog, copies, dataset
from tests.helpers import programs, python_files


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    """The computer may have copies of the data."""
    monkeypatch.setattr(copies, 'find_of_programs', lambda published: [])


@pytest.fixture(scope='session')
def versions(tmp_path_factory):
    """A directory with both versions of a small CIFAR-10: random images, which keep their size in
    an archive."""
    parent = tmp_path_factory.mktemp('versions')
    directory = parent / dataset.CIFAR10_DIRECTORY
    directory.mkdir()
    for index, name in enumerate(catalog.CIFAR10.binary_files):
        rows = np.random.RandomState(index).randint(0, 256, [40, 3073]).astype(np.uint8)
        rows[:, 0] = np.arange(40) % 10
        rows.tofile(str(directory / name))
    (directory / dataset.CLASS_NAMES_FILE).write_text('\n'.join(dataset.CLASS_NAMES) + '\n')
    python_files.write(directory, parent / catalog.CIFAR10.python.directory)
    return parent


def _archive(versions, name):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode='w:gz') as tar:
        tar.add(str(versions / name), name)
    return content.getvalue()


@pytest.fixture(scope='session')
def archive(versions):
    """Bytes of the binary archive."""
    return _archive(versions, catalog.CIFAR10.directory)


@pytest.fixture(scope='session')
def python_archive(versions):
    """Bytes of the archive for Python."""
    return _archive(versions, catalog.CIFAR10.python.directory)


@pytest.fixture
def small(archive, python_archive, versions):
    """The Published data set of the small archives, without hosts."""
    archives = [
        known._replace(md5=hashlib.md5(content).hexdigest(), urls=[])
        for known, content in zip(catalog.CIFAR10.archives, [python_archive, archive])
    ]
    sha1 = {
        name: hashlib.sha1((versions / dataset.CIFAR10_DIRECTORY / name).read_bytes()).hexdigest()
        for name in catalog.CIFAR10.binary_files
    }
    return catalog.CIFAR10._replace(archives=archives, sha1=sha1)


@pytest.fixture
def prepare():
    """prepare(*arguments) returns the Dataset of a trainer with these arguments."""

    def run(*arguments):
        with programs.own_flags():
            data_flags.define()
            flags.FLAGS(['a script', *arguments])
            return data_flags.dataset_from_flags()

    return run
