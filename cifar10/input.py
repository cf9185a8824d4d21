"""CIFAR-10 batches from queues: reading, shuffling, distortions, evaluation input.

Everything works on whole batches of raw records. The per-example operations of `tf.image` cost more than ten times the
CPU of these, which give the same images.
"""
import functools
import math
import os
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import dataset
from cifar10.hparams import CLASSIC

IMAGE_SIZE = 24
BATCH_SIZE = CLASSIC.batch_size
_CENTRE = (dataset.HEIGHT - IMAGE_SIZE) // 2  # first row and first column of the crop at the centre

# Collections of scalar tensors. Training waits until the sizes reach the minima.
SHUFFLE_QUEUE_SIZE = 'shuffle_queue_size'  # int32, records
SHUFFLE_QUEUE_MIN = 'shuffle_queue_min'  # int32, records
QUEUE_FILL = 'queue_fill'  # float32 from 0 to 1, named after the queue

_MIN_FRACTION_OF_EXAMPLES_IN_QUEUE = 0.4


class CIFAR10Record(NamedTuple):
    """One example, as `read_cifar10` returns it."""
    height: int
    width: int
    depth: int
    key: tf.Tensor  # string scalar, 'file:record'
    label: tf.Tensor  # int32 [1]
    uint8image: tf.Tensor  # uint8 [32, 32, 3]


def read_cifar10(filename_queue):
    """Reads one example from the files that `filename_queue`, a queue of strings, names.

    Run it N times for N examples.

    Returns:
      A CIFAR10Record.
    """
    key, value = tf.FixedLengthRecordReader(dataset.RECORD_BYTES).read(filename_queue)
    record = tf.reshape(tf.decode_raw(value, tf.uint8), [1, dataset.RECORD_BYTES])
    labels, images = _split(record)
    return CIFAR10Record(dataset.HEIGHT, dataset.WIDTH, dataset.DEPTH, key, labels,
                         tf.transpose(images[0], [1, 2, 0]))


def _split(records):
    """Splits uint8 [n, 3073] into labels, int32 [n], and images, uint8 [n, 3, 32, 32]."""
    labels = tf.cast(records[:, 0], tf.int32)
    images = tf.reshape(records[:, dataset.LABEL_BYTES:], [-1, dataset.DEPTH, dataset.HEIGHT, dataset.WIDTH])
    return labels, images


def distortion_draws(n, hparams=CLASSIC):
    """Draws what `distort` needs for n images.

    Returns:
      Four tensors [n]: first row and first column of the crop (int32, at most hparams.crop_shift from the centre's, 4), whether to
      mirror (bool, even odds), and the contrast factor (float32, 1 - hparams.contrast to 1 + hparams.contrast).
    """
    rows, columns = [tf.random_uniform([n], _CENTRE - hparams.crop_shift, _CENTRE + hparams.crop_shift + 1, tf.int32) for _ in range(2)]
    mirror = tf.random_uniform([n]) < 0.5
    contrast = tf.random_uniform([n], 1 - hparams.contrast, 1 + hparams.contrast)
    return rows, columns, mirror, contrast


def distort(images, rows, columns, mirror, contrast):
    """Crops, mirrors, changes the contrast of, and standardises each image of a batch.

    Equal to tf.image's crop, flip, adjust_brightness, adjust_contrast and per_image_standardization of each image, in
    float32 without clipping. There a change of brightness cancels in the standardisation, so that none is made, and
    contrast and standardisation together are one affine map a channel.

    Args:
      images: uint8 [n, 3, 32, 32].
      rows, columns, mirror, contrast: as `distortion_draws` returns them.

    Returns:
      float32 [n, 24, 24, 3].
    """
    offsets = tf.range(IMAGE_SIZE)
    images = tf.gather(images, rows[:, None] + offsets, axis=2, batch_dims=1)
    columns = columns[:, None] + tf.where_v2(mirror[:, None], offsets[::-1], offsets)
    # A product with ones and zeros picks the columns exactly; gathering byte by byte would take ten times as long.
    picks = tf.one_hot(columns, dataset.WIDTH, axis=1, dtype=tf.float32)
    images = tf.reshape(tf.cast(images, tf.float32), [-1, dataset.DEPTH * IMAGE_SIZE, dataset.WIDTH])
    images = tf.reshape(tf.matmul(images, picks), [-1, dataset.DEPTH, IMAGE_SIZE, IMAGE_SIZE])
    return _standardize(images, contrast)


def _standardize(images, contrast):
    """Contrast about each channel's mean, then zero mean and unit variance over each image.

    With m_c the mean of channel c, m the mean of the image and f the contrast factor, the contrast makes x - m into
    f (x - m_c) + (m_c - m), whose variance is f^2 var(x - m_c) + var(m_c - m). As in tf.image.per_image_standardization the
    standard deviation counts as at least 1 / sqrt(number of values), which keeps uniform images finite.

    Args:
      images: float32 [n, 3, height, width].
      contrast: float32, [n] or a scalar.

    Returns:
      float32 [n, height, width, 3].
    """
    contrast = tf.reshape(contrast, [-1, 1, 1, 1])
    channel_mean = tf.reduce_mean(images, [2, 3], keepdims=True)
    channel_offset = channel_mean - tf.reduce_mean(channel_mean, 1, keepdims=True)
    images -= channel_mean
    variance = (tf.square(contrast) * tf.reduce_mean(tf.square(images), [1, 2, 3], keepdims=True)
                + tf.reduce_mean(tf.square(channel_offset), [1, 2, 3], keepdims=True))
    num_values = int(images.shape[1]) * int(images.shape[2]) * int(images.shape[3])
    inverse_stddev = tf.minimum(tf.rsqrt(variance), num_values ** 0.5)
    images = images * (contrast * inverse_stddev) + channel_offset * inverse_stddev
    return tf.transpose(images, [0, 2, 3, 1])


def distorted_inputs(data_dir=dataset.DATA_DIR, batch_size=BATCH_SIZE, hparams=CLASSIC):
    """Batches of distorted training images, in random order, without end.

    Args:
      data_dir: parent of cifar-10-batches-bin.
      batch_size: examples a batch.
      hparams: an HParams, which says how strong the distortions are.

    Returns:
      images: float32 [batch_size, 24, 24, 3].
      labels: int32 [batch_size].

    Raises:
      cifar10.errors.UserError: a file is missing or malformed.
    """
    paths = dataset.train_files(data_dir)
    num_examples = dataset.verify(paths)
    with tf.device('/cpu:0'), tf.name_scope('distorted_inputs'):
        records = _shuffled_records(paths, num_examples, batch_size)
        labels, images = _split(records)
        return distort(images, *distortion_draws(batch_size, hparams)), labels


def _shuffled_records(paths, num_examples, batch_size):
    """Dequeues uint8 [batch_size, 3073] from a shuffle queue that the files feed, over and over."""
    minimum = int(num_examples * _MIN_FRACTION_OF_EXAMPLES_IN_QUEUE)
    capacity = minimum + 3 * batch_size
    filenames = tf.train.string_input_producer(paths)
    with tf.name_scope('shuffle_queue'):
        queue = tf.RandomShuffleQueue(capacity, minimum, [tf.uint8], [[dataset.RECORD_BYTES]], name='shuffle_queue')
        enqueue = queue.enqueue_many([_read_records(filenames, paths)])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue] * 2))  # one fills the queue while the other reads
        size = queue.size()
        tf.add_to_collection(SHUFFLE_QUEUE_SIZE, size)
        tf.add_to_collection(SHUFFLE_QUEUE_MIN, tf.constant(minimum))
        tf.add_to_collection(QUEUE_FILL, tf.divide(tf.cast(size, tf.float32), capacity, name='fill'))
        return queue.dequeue_many(batch_size)


def _read_records(filename_queue, paths):
    """Reads about 256 records of a file at a time, uint8 [n, 3073], in blocks as large as the sizes of the files allow."""
    sizes = functools.reduce(math.gcd, [os.path.getsize(path) // dataset.RECORD_BYTES for path in paths])
    block = max(records for records in range(1, 257) if sizes % records == 0)
    _, values = tf.FixedLengthRecordReader(block * dataset.RECORD_BYTES).read_up_to(filename_queue, 256 // block)
    return tf.reshape(tf.decode_raw(values, tf.uint8), [-1, dataset.RECORD_BYTES])


def prefetch_queue(images, labels, capacity, num_threads=1):
    """A queue that keeps up to `capacity` batches ready, which `num_threads` threads make while the devices compute.

    Returns:
      A tf.FIFOQueue: each run of its dequeue() gives the next (images, labels).
    """
    with tf.device('/cpu:0'), tf.name_scope('prefetch_queue'):
        queue = tf.FIFOQueue(capacity, [images.dtype, labels.dtype], [images.shape, labels.shape], name='prefetch_queue')
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([images, labels])] * num_threads))
        tf.add_to_collection(QUEUE_FILL, tf.divide(tf.cast(queue.size(), tf.float32), capacity, name='fill'))
    return queue


def inputs(eval_data, data_dir=dataset.DATA_DIR, batch_size=BATCH_SIZE):
    """Batches of undistorted images: each example exactly once, in the order of the files.

    Args:
      eval_data: whether to read the test files rather than the training files.
      data_dir: parent of cifar-10-batches-bin.
      batch_size: examples a batch; the last batch is shorter where they do not divide evenly. Running the
        tensors once more raises tf.errors.OutOfRangeError.

    Returns:
      images: float32 [n, 24, 24, 3], the centre of each image, standardised.
      labels: int32 [n].

    Raises:
      cifar10.errors.UserError: a file is missing or malformed.
    """
    labels, images = undistorted_records(eval_data, data_dir, batch_size)
    with tf.device('/cpu:0'):
        return crop(images), labels


def undistorted_records(eval_data, data_dir, batch_size=BATCH_SIZE):
    """Batches as they are on disk: see `inputs`.

    Returns:
      labels: int32 [n].
      images: uint8 [n, 3, 32, 32].
    """
    paths = dataset.test_files(data_dir) if eval_data else dataset.train_files(data_dir)
    dataset.verify(paths)
    with tf.device('/cpu:0'), tf.name_scope('inputs'):
        queue = tf.FIFOQueue(4 * batch_size, [tf.uint8], [[dataset.RECORD_BYTES]], name='record_queue')
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue_many([_read_records(_once(paths), paths)])]))
        return _split(queue.dequeue_up_to(batch_size))


def crop(images, down=0, across=0):
    """Crops so many pixels from the centre, and standardises: uint8 [n, 3, 32, 32] to float32 [n, 24, 24, 3]."""
    top, left = _CENTRE + down, _CENTRE + across
    return _standardize(tf.cast(images[:, :, top:top + IMAGE_SIZE, left:left + IMAGE_SIZE], tf.float32), 1.0)


def _once(paths):
    """A queue of the file names that is closed after one pass.

    tf.train.string_input_producer(num_epochs=1) would count in a local variable, which a listing that only restores a
    checkpoint does not initialise.
    """
    queue = tf.FIFOQueue(len(paths), [tf.string], [[]], name='filename_queue')
    with tf.control_dependencies([queue.enqueue_many([paths])]):
        enqueue_and_close = queue.close()
    tf.train.add_queue_runner(tf.train.QueueRunner(  # its second enqueue finds the queue closed and ends the thread
        queue, [enqueue_and_close], queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError)))
    return queue
