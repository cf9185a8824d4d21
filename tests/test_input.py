"""Reading, distortions, evaluation input."""
import collections

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import dataset, input as cifar10_input
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC
from scripts import cifar10_classic
from tests import conftest, oracle


def run_queues(fetches, times):
    """Starts the graph's queue runners and returns what `times` runs of `fetches` give."""
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        results = [session.run(fetches) for _ in range(times)]
        coord.request_stop()
        coord.join(threads)
    return results


def test_read_cifar10_byte_for_byte(data_dir):
    paths = dataset.train_files(data_dir)[:2]
    record = cifar10_input.read_cifar10(tf.train.string_input_producer(paths, shuffle=False))
    assert (record.height, record.width, record.depth) == (32, 32, 3)
    assert (record.label.dtype, record.label.shape.as_list()) == (tf.int32, [1])
    assert (record.uint8image.dtype, record.uint8image.shape.as_list()) == (tf.uint8, [32, 32, 3])
    labels, images = oracle.read_records(paths)
    results = run_queues([record.key, record.label, record.uint8image], len(labels))
    for i, (key, label, image) in enumerate(results):
        assert key.decode() == '%s:%d' % (paths[i // 60], i % 60)
        assert label[0] == labels[i]
        np.testing.assert_array_equal(image, images[i])


def _draws(n, seed):
    rng = np.random.RandomState(seed)
    return (rng.randint(0, 9, n), rng.randint(0, 9, n), rng.rand(n) < 0.5, rng.uniform(0.2, 1.8, n).astype(np.float32))


def test_batched_distortions_equal_tf_image_per_example(data_dir):
    _, images = oracle.read_records(dataset.test_files(data_dir))
    rows, columns, mirror, contrast = _draws(len(images), seed=1)
    brightness = np.random.RandomState(2).uniform(-63, 63, len(images))
    expected = [cifar10_classic.distort(image, row, column, tf.constant(flip), shift, factor)
                for image, row, column, flip, shift, factor in zip(images, rows, columns, mirror, brightness, contrast)]
    distorted = cifar10_input.distort(tf.constant(images.transpose(0, 3, 1, 2)), rows, columns, mirror, contrast)
    with tf.Session() as session:
        distorted, expected = session.run([distorted, tf.stack(expected)])
    assert distorted.shape == (50, 24, 24, 3)
    np.testing.assert_allclose(distorted, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('low, high, tolerance', [(0, 1, 0), (255, 256, 0), (100, 102, 1e-4), (0, 256, 1e-5)])
def test_standardisation_of_flat_and_of_lively_images(low, high, tolerance):
    """In float64 by NumPy: tf.image itself has only 4 digits for images that are nearly uniform."""
    images = np.random.RandomState(3).randint(low, high, [20, 3, 32, 32]).astype(np.uint8)
    rows, columns, mirror, contrast = _draws(20, seed=4)
    distorted = cifar10_input.distort(tf.constant(images), rows, columns, mirror, contrast)
    with tf.Session() as session:
        distorted = session.run(distorted)
    for i in range(20):
        x = images[i].transpose(1, 2, 0)[rows[i]:rows[i] + 24, columns[i]:columns[i] + 24].astype(np.float64)
        x = x[:, ::-1] if mirror[i] else x
        x = (x - x.mean((0, 1))) * contrast[i] + x.mean((0, 1))
        x = (x - x.mean()) / max(x.std(), x.size ** -0.5)
        np.testing.assert_allclose(distorted[i], x, atol=tolerance)


def test_standard_deviation_counts_as_at_least_one_over_the_root_of_the_number_of_values():
    """One value of 1,728 differs by 1, which a contrast of 0.2 makes 0.2: a standard deviation of 0.2 / sqrt(1728)."""
    images = np.full([1, 3, 32, 32], 7, np.uint8)
    images[0, 1, 16, 16] = 8
    distorted = cifar10_input.distort(tf.constant(images), *[np.array([draw]) for draw in (4, 4, False, np.float32(0.2))])
    with tf.Session() as session:
        distorted = session.run(distorted)
    np.testing.assert_allclose(distorted[0, 12, 12, 1], 0.2 * (1 - 1 / 576) * 1728 ** 0.5 + (1 / 576 - 1 / 1728) * 1728 ** 0.5, rtol=1e-4)


def test_draws_cover_their_ranges_evenly_and_are_independent():
    with tf.Session() as session:
        rows, columns, mirror, contrast = draws = session.run(cifar10_input.distortion_draws(20000))
    for offsets in (rows, columns):
        counts = np.bincount(offsets, minlength=9)
        assert len(counts) == 9
        assert np.abs(counts - 20000 / 9).max() < 5 * (20000 * 8 / 81) ** 0.5  # five standard deviations
    assert abs(mirror.mean() - 0.5) < 5 * 0.5 / 20000 ** 0.5
    assert contrast.min() >= 0.2 and contrast.max() < 1.8
    counts, _ = np.histogram(contrast, 10, (0.2, 1.8))
    assert np.abs(counts - 2000).max() < 5 * (20000 * 0.09) ** 0.5
    # Neither draws of one example nor those of examples beside each other or a batch apart tell of one another.
    for i, first in enumerate(draws):
        for second in draws[i + 1:]:
            assert abs(np.corrcoef(first, second)[0, 1]) < 5 / 20000 ** 0.5
        for distance in (1, 2, 128):
            assert abs(np.corrcoef(first[:-distance], first[distance:])[0, 1]) < 5 / 20000 ** 0.5


def test_draws_are_as_strong_as_the_recipe_says():
    with tf.Session() as session:
        rows, columns, _, contrast = session.run(
            cifar10_input.distortion_draws(1000, CLASSIC._replace(crop_shift=1, contrast=0.25)))
        unchanged = session.run(cifar10_input.distortion_draws(1000, CLASSIC._replace(crop_shift=0, contrast=0.0)))
    assert set(rows) == set(columns) == {3, 4, 5}
    assert 0.75 <= contrast.min() < 0.76 and 1.24 < contrast.max() < 1.25
    assert [set(unchanged[i]) for i in (0, 1, 3)] == [{4}, {4}, {1.0}]


def test_training_images_are_distorted_as_strongly_as_the_recipe_says(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10_input, '_standardize', lambda images, contrast: contrast)
    data_dir = conftest.write_data_set(tmp_path / 'data')
    contrast, _ = cifar10_input.distorted_inputs(data_dir, 20, CLASSIC._replace(contrast=0.0))
    assert set(run_queues([contrast], 1)[0][0]) == {1.0}


def test_each_batch_draws_anew():
    draws = cifar10_input.distortion_draws(1000)
    with tf.Session() as session:
        for first, second in zip(session.run(draws), session.run(draws)):
            assert abs(np.corrcoef(first, second)[0, 1]) < 5 / 1000 ** 0.5


def test_training_images_are_each_distorted_by_draws_of_their_own(tmp_path, monkeypatch):
    """Images whose pixels tell their row and their column, without the standardisation that would hide it."""
    image = np.zeros([3, 32, 32], np.uint8)
    image[0], image[1] = np.mgrid[:32, :32]
    data_dir = conftest.write_data_set(tmp_path / 'data')
    for path in dataset.train_files(data_dir):
        np.tile(np.concatenate([[0], image.ravel()]).astype(np.uint8), [20, 1]).tofile(path)
    monkeypatch.setattr(cifar10_input, '_standardize', lambda images, contrast: (images, contrast))
    (images, contrast), _ = cifar10_input.distorted_inputs(data_dir, 100)
    images, contrast = (np.concatenate(parts) for parts in zip(*run_queues([images, contrast], 40)))
    rows, columns, mirror = images[:, 0, 0, 0], images[:, 1].min((1, 2)), images[:, 1, 0, 0] > images[:, 1, 0, 1]
    assert len(set(zip(rows, columns, mirror))) == 9 * 9 * 2
    assert len(set(contrast)) > 3900 and contrast.min() < 0.21 and contrast.max() > 1.79
    for draws in (rows, columns, mirror, contrast):
        for distance in (1, 50, 100):
            assert abs(np.corrcoef(draws[:-distance], draws[distance:])[0, 1]) < 5 / 4000 ** 0.5


def test_contrast_and_standardisation_equal_numpy_in_float64():
    rng = np.random.RandomState(5)
    images, contrast = rng.uniform(0, 255, [50, 3, 24, 24]), rng.uniform(0.2, 1.8, 50)
    with tf.Session() as session:
        standardized = session.run(cifar10_input._standardize(tf.constant(images), tf.constant(contrast)))
    mean = images.mean((2, 3), keepdims=True)
    x = (images - mean) * contrast[:, None, None, None] + mean + rng.uniform(-63, 63, [50, 1, 1, 1])  # the brightness cancels
    x = (x - x.mean((1, 2, 3), keepdims=True)) / x.std((1, 2, 3), keepdims=True)
    np.testing.assert_allclose(standardized, x.transpose(0, 2, 3, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('counts', [(7,), (13, 5, 1), (512, 256), (300, 257)])
def test_files_of_any_sizes_are_read_whole(tmp_path, counts):
    records = np.random.RandomState(6).randint(0, 256, [sum(counts), dataset.RECORD_BYTES]).astype(np.uint8)
    paths = [str(tmp_path / str(i)) for i in range(len(counts))]
    for path, part in zip(paths, np.split(records, np.cumsum(counts)[:-1])):
        part.tofile(path)
    with tf.Session() as session:
        read = cifar10_input._read_records(tf.train.string_input_producer(paths, shuffle=False, num_epochs=1), paths)
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        parts = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                parts.append(session.run(read))
        coord.request_stop()
        coord.join(threads)
    assert max(map(len, parts)) <= 256
    np.testing.assert_array_equal(np.concatenate(parts), records)


def test_distorted_inputs_keep_labels_with_their_images(data_dir):
    """Each batch image is found again among the 9 x 9 crops and their mirror images of an example with its label."""
    images, labels = cifar10.distorted_inputs(data_dir, batch_size=16)
    assert (images.dtype, images.shape.as_list()) == (tf.float32, [16, 24, 24, 3])
    assert (labels.dtype, labels.shape.as_list()) == (tf.int32, [16])
    all_labels, all_images = oracle.read_records(dataset.train_files(data_dir))
    batches = run_queues([images, labels], 3)
    # Contrast, brightness and standardisation are one affine map a channel, which correlation does not see.
    for image, label in zip(batches[2][0][:4], batches[2][1][:4]):
        assert max(_best_correlation(image, example) for example in all_images[all_labels == label]) > 0.999
    assert len({image.tobytes() for images, _ in batches for image in images}) == 48


def _best_correlation(image, example):
    crops = np.lib.stride_tricks.sliding_window_view(example.astype(np.float64), (24, 24), (0, 1)).reshape(81, 3, 576)
    crops = crops - crops.mean(2, keepdims=True)
    best = 0
    for candidate in (image, image[:, ::-1]):
        channels = candidate.transpose(2, 0, 1).reshape(3, 576).astype(np.float64)
        channels = channels - channels.mean(1, keepdims=True)
        products = (crops * channels).sum(2) / np.sqrt((crops ** 2).sum(2) * (channels ** 2).sum(1))
        best = max(best, products.min(1).max())
    return best


def test_training_images_come_shuffled_and_epoch_after_epoch(data_dir):
    _, labels = cifar10.distorted_inputs(data_dir, batch_size=50)
    seen = np.concatenate(run_queues(labels, 60))  # ten epochs
    stored, _ = oracle.read_records(dataset.train_files(data_dir))
    # Unshuffled, each file's labels would stand there in a row, whatever the order of the files.
    assert not any(stored[start:start + 10].tobytes() in seen.astype(np.uint8).tobytes() for start in range(0, 300, 60))
    counts = np.bincount(seen, minlength=10)
    assert counts.min() > 0.8 * 300 and counts.max() < 1.2 * 300


def test_training_starts_though_the_batch_is_larger_than_the_data_set(data_dir):
    images, _ = cifar10.distorted_inputs(data_dir, batch_size=512)
    assert run_queues(images, 2)[1].shape == (512, 24, 24, 3)


@pytest.mark.parametrize('eval_data, batch_size', [(True, 16), (True, 50), (True, 64), (False, 128)])
def test_inputs_give_each_record_once_in_order_with_a_short_last_batch(data_dir, eval_data, batch_size):
    paths = dataset.test_files(data_dir) if eval_data else dataset.train_files(data_dir)
    expected_labels, expected_images = oracle.read_records(paths)
    images, labels = cifar10.inputs(eval_data, data_dir, batch_size)
    expected = tf.map_fn(oracle.evaluation_image, expected_images, tf.float32)
    batches = run_queues([images, labels], -(-len(expected_labels) // batch_size))
    assert [len(batch_labels) for _, batch_labels in batches[:-1]] == [batch_size] * (len(batches) - 1)
    np.testing.assert_array_equal(np.concatenate([batch_labels for _, batch_labels in batches]), expected_labels)
    with tf.Session() as session:
        np.testing.assert_allclose(np.concatenate([batch for batch, _ in batches]), session.run(expected), rtol=1e-5, atol=1e-5)


def test_inputs_end_after_one_pass(data_dir):
    _, labels = cifar10.inputs(True, data_dir, 64)
    with pytest.raises(tf.errors.OutOfRangeError):
        run_queues(labels, 2)


def test_prefetch_queue_hands_every_batch_to_one_taker():
    number = tf.train.range_input_producer(1000, shuffle=False).dequeue()
    queue = cifar10_input.prefetch_queue(tf.fill([2, 24, 24, 3], tf.cast(number, tf.float32)), tf.fill([2], number), 4)
    takers = [queue.dequeue() for _ in range(2)]
    taken = [pair for pairs in run_queues(takers, 20) for pair in pairs]
    numbers = [int(labels[0]) for _, labels in taken]
    assert max(collections.Counter(numbers).values()) == 1
    assert all((images == labels[0]).all() for images, labels in taken)


def test_queue_fill_is_in_the_collection(data_dir):
    images, labels = cifar10.distorted_inputs(data_dir, 16)
    queue = cifar10_input.prefetch_queue(images, labels, 4)
    fills = tf.get_collection(cifar10_input.QUEUE_FILL)
    assert [fill.op.name for fill in fills] == ['distorted_inputs/shuffle_queue/fill', 'prefetch_queue/fill']
    with tf.Session() as session:
        assert session.run(fills) == [0, 0]
        session.run(queue.enqueue([tf.zeros([16, 24, 24, 3]), tf.zeros([16], tf.int32)]))
        assert session.run(fills) == [0, 0.25]


def test_inputs_run_on_the_cpu_whatever_the_device_scope(data_dir, graph):
    with tf.device('/gpu:0'):
        cifar10.distorted_inputs(data_dir, 16)
        cifar10.inputs(True, data_dir)
    assert {op.device for op in graph.get_operations() if op.type != 'NoOp'} == {'/device:CPU:0'}


@pytest.mark.parametrize('inputs', [cifar10.distorted_inputs, lambda data_dir: cifar10.inputs(True, data_dir)])
def test_missing_files_are_named(tmp_path, inputs):
    with pytest.raises(UserError, match='is missing'):
        inputs(str(tmp_path))
