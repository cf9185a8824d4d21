"""The input of MNIST: files, batches, downloads."""

import contextlib
import gzip
import hashlib
import os
import struct

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from tests.helpers import download_server, listing
from tf1_runner import downloads, mnist

try:  # TensorFlow 1.15 has the original.
    from tensorflow.examples.tutorials.mnist import input_data
except ImportError:
    input_data = mnist

RANDOM = np.random.RandomState(0)
TRAIN = RANDOM.randint(0, 256, [50, 4, 3]).astype(np.uint8), RANDOM.randint(0, 10, 50, np.uint8)
TEST = RANDOM.randint(0, 256, [20, 4, 3]).astype(np.uint8), RANDOM.randint(0, 10, 20, np.uint8)


def _contents():
    """Return a dict from the names of the four files to their uncompressed bytes."""
    contents = {}
    for name, (images, labels) in [('train', TRAIN), ('t10k', TEST)]:
        header = struct.pack('>4i', 2051, *images.shape)
        contents[name + '-images-idx3-ubyte'] = header + images.tobytes()
        contents[name + '-labels-idx1-ubyte'] = (
            struct.pack('>2i', 2049, len(labels)) + labels.tobytes()
        )
    return contents


@pytest.fixture
def directory(tmp_path):
    """A directory with the four files; one of them also uncompressed."""
    for name, content in _contents().items():
        if name.startswith('train-labels'):
            (tmp_path / name).write_bytes(content)
        (tmp_path / (name + '.gz')).write_bytes(gzip.compress(content))
    return str(tmp_path)


@pytest.mark.parametrize('one_hot', [False, True])
def test_the_three_parts(directory, one_hot):
    if one_hot:
        os.remove(os.path.join(directory, 'train-labels-idx1-ubyte.gz'))
    found = mnist.read_data_sets(directory, one_hot=one_hot, validation_size=8)
    for part, (images, labels) in [
        (found.validation, [array[:8] for array in TRAIN]),
        (found.train, [array[8:] for array in TRAIN]),
        (found.test, TEST),
    ]:
        assert part.images.dtype == np.float32 and part.num_examples == len(images)
        np.testing.assert_allclose(part.images, images.reshape(-1, 12) / 255, 1e-6)
        np.testing.assert_array_equal(part.labels, np.eye(10)[labels] if one_hot else labels)
    found = mnist.read_data_sets(directory, dtype=tf.uint8, reshape=False, validation_size=0)
    np.testing.assert_array_equal(found.train.images[..., 0], TRAIN[0])
    assert found.validation.num_examples == 0
    with pytest.raises(ValueError, match='between 0 and 50'):
        mnist.read_data_sets(directory)


@pytest.mark.parametrize('module', [mnist] + [input_data] * (input_data is not mnist))
def test_batches(directory, module):
    """The order is that of the original, for the same seed."""
    train, _, test = module.read_data_sets(directory, validation_size=0, seed=3)
    np.random.seed(7)
    batches = [train.next_batch(20) for _ in range(6)]
    random = np.random.RandomState(7)
    order, expected = np.arange(50), []
    for _ in range(3):  # each epoch shuffles the order of the one before
        shuffled = np.arange(50)
        random.shuffle(shuffled)
        order = order[shuffled]
        expected.append(order)
    expected = np.concatenate(expected)[:120]
    for part, values in enumerate([TRAIN[0].reshape(50, 12) / np.float32(255), TRAIN[1]]):
        found = np.concatenate([batch[part] for batch in batches])
        np.testing.assert_allclose(found, values[expected], 1e-6)
    labels = [test.next_batch(15, shuffle=False)[1] for _ in range(4)]
    np.testing.assert_array_equal(np.concatenate(labels), np.tile(TEST[1], 3))


@pytest.mark.parametrize(
    'name, content, reason',
    [
        ('t10k-images-idx3-ubyte', lambda content: content[:-1], 'reshape'),
        ('t10k-labels-idx1-ubyte', lambda content: content[:5], 'requires'),
        ('t10k-images-idx3-ubyte', lambda content: b'\0' * 300, 'its magic number is 0, not 2051'),
    ],
)
def test_a_damaged_file(directory, name, content, reason):
    path = os.path.join(directory, name + '.gz')
    with open(path, 'wb') as file:
        file.write(gzip.compress(content(_contents()[name])))
    with pytest.raises(UserError) as caught:
        mnist.read_data_sets(directory, validation_size=0)
    assert str(caught.value).startswith(f'{path} is damaged (') and reason in str(caught.value)
    with open(path, 'wb') as file:
        file.write(b'<html>')
    with pytest.raises(UserError, match='is damaged'):
        mnist.read_data_sets(directory, validation_size=0)


def test_missing_files_are_downloaded(tmp_path, monkeypatch):
    contents = {name + '.gz': gzip.compress(content) for name, content in _contents().items()}
    with contextlib.ExitStack() as stack:
        for name, content in contents.items():
            server = download_server.Server(content, ['none'], name)
            stack.enter_context(contextlib.closing(server))
            md5 = hashlib.md5(content).hexdigest()
            archive = downloads.MNIST[name]._replace(md5=md5, urls=[server.url])
            monkeypatch.setitem(downloads.MNIST, name, archive)
        found = mnist.read_data_sets(str(tmp_path / 'new'), validation_size=0)
    np.testing.assert_array_equal(found.test.labels, TEST[1])
    assert listing.names(tmp_path / 'new') == sorted(contents)
