"""The version for Python: the same records as the binary version; damaged and hostile pickles."""

import os
import pickle
import shutil

import numpy as np
import pytest

from cifar10.data import catalog, copies, dataset
from tests.helpers import data_sets, messages, programs, python_files

BATCH = 'data_batch_3'


@pytest.fixture
def directory(versions, tmp_path):
    """The version for Python, which a test may damage."""
    name = catalog.CIFAR10.python.directory
    return shutil.copytree(str(versions / name), str(tmp_path / name))


@pytest.fixture
def rewrite(directory):
    """rewrite(change) writes one batch again after change(its dictionary)."""

    def write(change):
        path = os.path.join(directory, BATCH)
        with open(path, 'rb') as file:
            content = pickle.load(file, encoding='bytes')
        change(content)
        python_files.dump(content, path)

    return write


def convert(source, tmp_path):
    """Convert with the command; return the bytes of each file."""
    out = tmp_path / 'out'
    status, stdout, stderr = programs.call('cifar10_dataset', 'convert', str(source), str(out))
    assert status == 0, stderr
    assert ' training and ' in stdout
    return {path.name: path.read_bytes() for path in out.iterdir()}


def _files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_records_are_those_of_the_binary_version(versions, directory, tmp_path):
    before = _files(versions / catalog.CIFAR10.python.directory)
    assert convert(directory, tmp_path) == _files(versions / dataset.CIFAR10_DIRECTORY)
    assert sorted(os.listdir(directory)) == sorted(before)


def test_cifar100(tmp_path):
    data_sets.write_cifar100(tmp_path / 'made')
    directory = python_files.write(tmp_path / 'made', tmp_path / 'cifar-100-python')
    assert convert(directory, tmp_path) == _files(tmp_path / 'made')


class Hostile:
    """An object whose pickle executes a command when it is read."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.system, (f'touch {self._path}',)


def test_a_hostile_pickle_executes_nothing(directory, rewrite, tmp_path):
    trace = tmp_path / 'executed'

    def change(batch):
        batch[b'filenames'] = Hostile(trace)

    rewrite(change)
    status, _, stderr = programs.call(
        'cifar10_dataset', 'convert', str(directory), str(tmp_path / 'out')
    )
    (line,) = stderr.splitlines()
    assert status == 1 and f'{directory} is damaged ({BATCH}: it names posix.system, ' in line
    assert not trace.exists() and not (tmp_path / 'out').exists()
    with open(os.path.join(directory, BATCH), 'rb') as file:
        pickle.load(file, encoding='bytes')
    assert trace.exists()  # the pickle was indeed hostile


def _set(key, value):
    return lambda batch: batch.update({key: value})


@pytest.mark.parametrize(
    'change, reason',
    [
        (_set(b'data', np.zeros([40, 3072])), 'data is not a uint8 array'),
        (_set(b'labels', [0] * 39), 'labels is not a list of 40 labels'),
    ],
)
def test_a_batch_with_other_content(directory, rewrite, tmp_path, change, reason):
    rewrite(change)
    with messages.raises(
        rf'^{directory} is damaged \({BATCH}: {reason}.*\): delete it or replace it by a good copy$'
    ):
        copies.write_binary_files(catalog.CIFAR10, directory, str(tmp_path))


def test_a_file_that_is_missing(directory, tmp_path):
    path = os.path.join(directory, BATCH)
    os.remove(path)
    with messages.raises(
        rf'^{directory} is damaged \(.* No such file .*{BATCH}.*\): delete it or '
    ):
        copies.write_binary_files(catalog.CIFAR10, directory, str(tmp_path))
