"""Reading, shuffling, evaluation input."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import distortions, input as input_lib
from cifar10.data import dataset
from cifar10.errors import UserError
from tests.helpers import oracle, queues


def test_read_cifar10_byte_for_byte(data_dir):
    paths = dataset.read(data_dir).train.paths[:2]
    record = input_lib.read_cifar10(tf.train.string_input_producer(paths, shuffle=False))
    assert (record.height, record.width, record.depth) == (32, 32, 3)
    assert (record.label.dtype, record.label.shape.as_list()) == (tf.int32, [1])
    assert (record.uint8image.dtype, record.uint8image.shape.as_list()) == (tf.uint8, [32, 32, 3])
    labels, images = oracle.read_records(paths)
    found = queues.run([record.key, record.label, record.uint8image], len(labels))
    for i, (key, label, image) in enumerate(found):
        assert key.decode() == f'{paths[i // 60]}:{i % 60}'
        assert label[0] == labels[i]
        np.testing.assert_array_equal(image, images[i])


def test_labels_stay_with_their_images(data_dir, monkeypatch):
    """Also for 48 different examples in a row."""
    monkeypatch.setattr(distortions, 'distort', lambda images, *draws: images)
    batch = cifar10.distorted_inputs(data_dir, batch_size=16)
    stored_labels, stored = oracle.read_records(dataset.read(data_dir).train.paths)
    places = {image.tobytes(): i for i, image in enumerate(stored)}
    drawn = []
    for images, labels in queues.run(batch, 3):
        indices = [places[image.transpose(1, 2, 0).tobytes()] for image in images]
        np.testing.assert_array_equal(labels, stored_labels[indices])
        drawn += indices
    assert len(set(drawn)) == 48


def test_shuffled_images_epoch_after_epoch(data_dir):
    _, labels = cifar10.distorted_inputs(data_dir, batch_size=50)
    seen = np.concatenate(queues.run(labels, 60))  # ten epochs
    stored, _ = oracle.read_records(dataset.read(data_dir).train.paths)
    # Without shuffling, the labels of each file would be consecutive in any order of files.
    assert not any(
        stored[start : start + 10].tobytes() in seen.astype(np.uint8).tobytes()
        for start in range(0, 300, 60)
    )
    counts = np.bincount(seen, minlength=10)
    assert counts.min() > 0.8 * 300 and counts.max() < 1.2 * 300


def test_a_batch_larger_than_the_data_set(data_dir):
    images, _ = cifar10.distorted_inputs(data_dir, batch_size=512)
    assert queues.run(images, 2)[1].shape == (512, 24, 24, 3)


@pytest.mark.parametrize('eval_data, batch_size', [(True, 50), (False, 128)])
def test_each_record_once_and_in_order(data_dir, eval_data, batch_size):
    data = dataset.read(data_dir)
    stored_labels, stored = oracle.read_records((data.test if eval_data else data.train).paths)
    batch = cifar10.inputs(eval_data, data_dir, batch_size, num_epochs=1)
    batches = queues.run(batch, -(-len(stored) // batch_size))
    assert {len(labels) for _, labels in batches[:-1]} <= {batch_size}
    images, labels = map(np.concatenate, zip(*batches))
    np.testing.assert_array_equal(labels, stored_labels)
    np.testing.assert_allclose(images, oracle.evaluation_images(stored), rtol=1e-5, atol=1e-5)


def test_queue_fill_is_in_the_collection(data_dir):
    images, labels = cifar10.distorted_inputs(data_dir, 16)
    queue = input_lib.prefetch_queue(images, labels, 4)
    fills = tf.get_collection(input_lib.QUEUE_FILL)
    assert [fill.op.name for fill in fills] == [
        'distorted_inputs/shuffle_queue/fill',
        'prefetch_queue/fill',
    ]
    with tf.Session() as session:
        assert session.run(fills) == [0, 0]
        session.run(queue.enqueue([tf.zeros([16, 24, 24, 3]), tf.zeros([16], tf.int32)]))
        assert session.run(fills) == [0, 0.25]


def test_inputs_run_on_the_cpu(data_dir, graph):
    with tf.device('/gpu:0'):
        cifar10.distorted_inputs(data_dir, 16)
        cifar10.inputs(True, data_dir)
    assert {op.device for op in graph.get_operations() if op.type != 'NoOp'} == {'/device:CPU:0'}


@pytest.mark.parametrize(
    'build, name',
    [
        (cifar10.distorted_inputs, 'data_batch_1.bin'),
        (lambda data_dir: cifar10.inputs(True, data_dir), 'test_batch.bin'),
    ],
)
def test_missing_files_are_named(tmp_path, build, name):
    with pytest.raises(UserError, match=f'{name} is missing'):
        build(str(tmp_path))
