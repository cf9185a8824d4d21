"""The tutorial's module cifar10_input on the package's input."""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import dataset, preparation, verification
from cifar10.tutorial import cifar10_input
from tests.helpers import oracle, queues


def test_two_passes_over_the_test_images(data_dir):
    """50 images in five full batches of 20: the fifth ends the second pass."""
    images, labels = cifar10_input.inputs(True, dataset.files_dir(data_dir), 20)
    assert (images.shape.as_list(), labels.shape.as_list()) == ([20, 24, 24, 3], [20])
    cifar10_input.distorted_inputs(data_dir, 16)
    # Evaluations of books merge all summaries and need at least one.
    summaries = [tensor.op.type for tensor in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert summaries.count('ImageSummary') == 2
    expected, _ = oracle.read_records(dataset.read(data_dir).test.paths)
    np.testing.assert_array_equal(np.concatenate(queues.run(labels, 5)), np.tile(expected, 2))


def test_the_size_of_the_images_can_be_set(data_dir, monkeypatch):
    monkeypatch.setattr(cifar10_input, 'IMAGE_SIZE', 20)
    assert cifar10_input.distorted_inputs(data_dir, 16)[0].shape.as_list() == [16, 20, 20, 3]
    (images,) = queues.run(cifar10_input.inputs(True, data_dir, 50)[0], 1)
    _, stored = oracle.read_records(dataset.read(data_dir).test.paths)
    crops = stored[:, 6:26, 6:26].astype(np.float64)
    crops = (crops - crops.mean((1, 2, 3), keepdims=True)) / crops.std((1, 2, 3), keepdims=True)
    np.testing.assert_allclose(images, crops, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    'num_examples, num_in_files, minimum',
    [(250, 300, 100), (50000, 300, 120), (50000, 2, 1), (60000, 60000, 20000)],
)
def test_the_number_of_examples_sets_the_queue(
    data_dir, monkeypatch, capsys, graph, num_examples, num_in_files, minimum
):
    """It is 40 % of the constant or of the examples in the files, whichever is less."""
    monkeypatch.setattr(cifar10_input, 'NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN', num_examples)
    monkeypatch.setattr(
        verification, 'verify_split', lambda split: split._replace(counts=[num_in_files])
    )
    cifar10_input.distorted_inputs(data_dir, 16)
    assert capsys.readouterr().out.startswith(
        f'Filling queue with {minimum} CIFAR images before starting to train.'
    )
    (queue,) = [op for op in graph.get_operations() if op.type.startswith('RandomShuffleQueue')]
    assert (queue.get_attr('min_after_dequeue'), queue.get_attr('capacity')) == (
        minimum,
        minimum + 48,
    )


def test_own_classes_in_the_files(own_data_dir):
    """A program sets NUM_CLASSES itself."""
    directory = os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY)
    with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w') as names:
        names.write('cat\ndog\nbird\n')
    preparation.maybe_download_and_extract(own_data_dir)
    _, labels = cifar10_input.inputs(True, own_data_dir, 7)
    expected, _ = oracle.read_records([os.path.join(directory, 'test_batch.bin')])
    np.testing.assert_array_equal(queues.run(labels, 1)[0], expected[:7])
    assert cifar10_input.distorted_inputs(own_data_dir, 7)[1].shape == [7]


@pytest.mark.parametrize('shuffle', [False, True])
def test_batches_of_single_examples(data_dir, shuffle):
    paths = dataset.read(data_dir).train.paths[:1]
    record = cifar10_input.read_cifar10(tf.train.string_input_producer(paths, shuffle=False))
    record.label += 100
    images, labels = cifar10_input._generate_image_and_label_batch(
        tf.cast(record.uint8image, tf.float32), record.label, 10, 7, shuffle
    )
    assert (images.shape.as_list(), labels.shape.as_list()) == ([7, 32, 32, 3], [7])
    pairs = {(label + 100, image.sum()) for label, image in zip(*oracle.read_records(paths))}
    for some_images, some_labels in queues.run([images, labels], 3):
        assert set(zip(some_labels, some_images.sum((1, 2, 3)))) <= pairs
