"""CIFAR-10 batches from queues: reading, shuffling, prefetching, evaluation input."""

import os
import types
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import distortions
from cifar10.config import CLASSIC, DEPTH, HEIGHT, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN, WIDTH
from cifar10.data import dataset, verification
from cifar10.distortions import IMAGE_SIZE  # noqa: F401 (listings look for it here)
from cifar10.errors import UserError

BATCH_SIZE = CLASSIC.batch_size

# Collections. Training starts when the sizes of the shuffle queues have reached their minima.
SHUFFLE_QUEUE_SIZE = 'shuffle_queue_size'  # int32 scalar tensors, records
SHUFFLE_QUEUE_MIN = 'shuffle_queue_min'  # numbers of records
QUEUE_FILL = 'queue_fill'  # scalar tensors from 0 to 1, named after the queue

MIN_FRACTION_OF_EXAMPLES_IN_QUEUE = 0.4


class Shard(NamedTuple):
    """One of `num_shards` equal, disjoint parts of the examples."""

    index: int = 0
    num_shards: int = 1


class InputSettings(NamedTuple):
    """Settings of the training input."""

    strengths: distortions.Strengths = distortions.Strengths()
    deterministic: bool = False  # whether the seed of the graph fixes the order of the images too
    shard: Shard = Shard()


def read_cifar10(filename_queue, label_weights=(1,)):
    """Read one example from the files in a queue of names.

    Run it N times for N examples.

    Args:
      filename_queue: a queue of strings.
      label_weights: of the bytes of a label, see dataset.Split; CIFAR-10 has one byte.

    Returns:
      An object with the fields height, width and depth; key, a string scalar, 'file:record'; label,
      int32 [1]; and uint8image, uint8 [32, 32, 3].
    """
    record_bytes = len(label_weights) + dataset.IMAGE_BYTES
    key, value = tf.FixedLengthRecordReader(record_bytes).read(filename_queue)
    record = tf.reshape(tf.decode_raw(value, tf.uint8), [1, record_bytes])
    labels, images = _split_records(record, label_weights)
    return types.SimpleNamespace(
        height=HEIGHT,
        width=WIDTH,
        depth=DEPTH,
        key=key,
        label=labels,
        uint8image=tf.transpose(images[0], [1, 2, 0]),
    )


def _split_records(rows, label_weights):
    """Split uint8 [n, record_bytes] into labels, int32 [n], and images, uint8 [n, 3, 32, 32]."""
    label_bytes, pixels = rows[:, : len(label_weights)], rows[:, len(label_weights) :]
    labels = tf.reduce_sum(tf.cast(label_bytes, tf.int32) * list(label_weights), 1)
    return labels, tf.reshape(pixels, [-1, DEPTH, HEIGHT, WIDTH])


def distorted_inputs(data_dir=dataset.DATA_DIR, batch_size=BATCH_SIZE, settings=InputSettings()):
    """Return batches of distorted training images, in random order, without end.

    Args:
      data_dir: a directory that holds a data set, or a Dataset; see dataset.read.
      batch_size: examples per batch.
      settings: an InputSettings.

    Returns:
      images: float32 [batch_size, 24, 24, 3].
      labels: int32 [batch_size].

    Raises:
      cifar10.errors.UserError: a file is missing or malformed, or has fewer examples than there are
      shards.
    """
    split = dataset.read(data_dir).train
    num_examples = verification.verify(split) // settings.shard.num_shards
    with tf.device('/cpu:0'), tf.name_scope('distorted_inputs'):
        labels, images = shuffled_records(split, num_examples, batch_size, settings)
        parameters = distortions.sample_parameters(batch_size, settings.strengths)
        images = distortions.distort(images, parameters)
        return images, check_labels(labels, split.num_classes)


def shuffled_records(split, num_examples, batch_size, settings=InputSettings()):
    """Return batches of undistorted images, in random order, without end.

    Args:
      split: a Split.
      num_examples: the queue keeps at least 40 % of this number of records, but no more than of
        CIFAR-10: its memory is bounded.
      batch_size: examples per batch.
      settings: an InputSettings. If it is deterministic, and one thread takes the batches, the
        seed of the graph fixes the order. Otherwise the timing of threads decides which records
        are in the queue when one of them is drawn.

    Returns:
      labels: int32 [batch_size].
      images: uint8 [batch_size, 3, 32, 32].
    """
    minimum = int(
        min(num_examples, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN) * MIN_FRACTION_OF_EXAMPLES_IN_QUEUE
    )
    # With room for one record more than must stay, it is full whenever one is drawn, and what it
    # holds is certain.
    capacity = minimum + (1 if settings.deterministic else 3 * batch_size)
    filenames = tf.train.string_input_producer(split.paths)
    with tf.name_scope('shuffle_queue'):
        queue = tf.RandomShuffleQueue(
            capacity, minimum, [tf.uint8], [[split.record_bytes]], name='shuffle_queue'
        )
        enqueue = queue.enqueue_many([_read_records(filenames, split, settings.shard)])
        num_threads = (
            1 if settings.deterministic else 2
        )  # one fills the queue while the other reads a file
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue] * num_threads))
        size = queue.size()
        tf.add_to_collection(SHUFFLE_QUEUE_SIZE, size)
        tf.add_to_collection(SHUFFLE_QUEUE_MIN, minimum)
        tf.add_to_collection(QUEUE_FILL, tf.divide(size, capacity, name='fill'))
        return _split_records(queue.dequeue_many(batch_size), split.label_weights)


def _read_records(filename_queue, split, shard=Shard()):
    """Read about 256 records at a time, uint8 [n, record_bytes].

    Each shard gets every shard.num_shards-th block of each file. Blocks are as large as the sizes
    of the files allow.

    Raises:
      UserError: a file has fewer records than there are shards.
    """
    paths, record_bytes = split.paths, split.record_bytes
    lengths = [os.path.getsize(path) // record_bytes for path in paths]
    for path, length in zip(paths, lengths):
        if length < shard.num_shards:
            raise UserError(
                f'{path} has {length} examples, which cannot be shared by {shard.num_shards} workers: start fewer, or give more data'
            )
    # A reader takes blocks of one size, so the block must divide the length of each file, or it
    # would cut a record at its end. A block of one record leaves shards that differ by one record
    # per file; there is no larger one that suits every shard.
    common = np.gcd.reduce(lengths)
    blocks = [count for count in range(1, 257) if common % (count * shard.num_shards) == 0]
    block = max(blocks, default=1)
    size = block * record_bytes
    reader = tf.FixedLengthRecordReader(
        size, header_bytes=shard.index * size, hop_bytes=shard.num_shards * size
    )
    _, values = reader.read_up_to(filename_queue, 256 // block)
    return tf.reshape(tf.decode_raw(values, tf.uint8), [-1, record_bytes])


def check_labels(labels, num_classes):
    """Return the labels, int32 [n], checked to be below `num_classes`.

    Computing them raises InvalidArgumentError otherwise. Without this check a GPU computes a NaN
    for such a label, which can only come from a file that has changed since it was verified.
    """
    with tf.device('/cpu:0'), tf.name_scope('check_labels'):
        message = (
            f'a label is outside 0 to {num_classes - 1}, because {verification.CHANGED_MESSAGE}'
        )
        check = tf.debugging.Assert(tf.reduce_max(labels) < num_classes, [message])
        with tf.control_dependencies([check]):
            return tf.identity(labels)


def prefetch_queue(images, labels, capacity, num_threads=1):
    """Prefetch up to `capacity` batches, in `num_threads` threads.

    Returns:
      A tf.FIFOQueue: each run of its dequeue() gives the next (images, labels).
    """
    with tf.device('/cpu:0'), tf.name_scope('prefetch_queue'):
        queue = tf.FIFOQueue(
            capacity,
            [images.dtype, labels.dtype],
            [images.shape, labels.shape],
            name='prefetch_queue',
        )
        enqueue = queue.enqueue([images, labels])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue] * num_threads))
        tf.add_to_collection(QUEUE_FILL, tf.divide(queue.size(), capacity, name='fill'))
    return queue


def tower_batches(queue, num_towers):
    """Dequeue a batch per tower, one after the other.

    So the tower that gets a batch does not depend on timing.

    Returns:
      A list of what queue.dequeue() gives.
    """
    batches = []
    for _ in range(num_towers):
        with tf.control_dependencies(batches[-1] if batches else []):
            batches.append(queue.dequeue())
    return batches


def inputs(eval_data, data_dir=dataset.DATA_DIR, batch_size=BATCH_SIZE, num_epochs=None):
    """Return batches of undistorted images, in the order of the files.

    Args:
      eval_data: whether to read the test files rather than the training files.
      data_dir: a directory that holds a data set, or a Dataset; see dataset.read.
      batch_size: examples per batch.
      num_epochs: how often each example comes. The last batch is shorter if they do not divide
        evenly; running the tensors once more raises tf.errors.OutOfRangeError. None gives full
        batches without end.

    Returns:
      images: float32 [n, 24, 24, 3], the centre of each image, standardised; n is batch_size, or
        unknown with `num_epochs`.
      labels: int32 [n].

    Raises:
      cifar10.errors.UserError: a file is missing or malformed.
    """
    found = dataset.read(data_dir)
    split = found.test if eval_data else found.train
    verification.verify(split)
    labels, images = undistorted_records(split, batch_size, num_epochs)
    with tf.device('/cpu:0'), tf.name_scope('crop'):
        return distortions.crop(images), check_labels(labels, split.num_classes)


def undistorted_records(split, batch_size=BATCH_SIZE, num_epochs=None):
    """Return batches as they are in the files, in order; see `inputs`.

    Args:
      split: a Split.
      batch_size: examples per batch.
      num_epochs: how often each example comes; None means without end.

    Returns:
      labels: int32 [n].
      images: uint8 [n, 3, 32, 32].
    """
    with tf.device('/cpu:0'), tf.name_scope('inputs'):
        queue = tf.FIFOQueue(
            4 * batch_size, [tf.uint8], [[split.record_bytes]], name='record_queue'
        )
        if num_epochs:
            filenames = _filename_queue(split.paths * num_epochs)
            rows = queue.dequeue_up_to(batch_size)
        else:
            filenames = tf.train.string_input_producer(split.paths, shuffle=False)
            rows = queue.dequeue_many(batch_size)
        enqueue = queue.enqueue_many([_read_records(filenames, split)])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
        return _split_records(rows, split.label_weights)


def _filename_queue(paths):
    """Return a queue of the file names that is closed after the last one.

    tf.train.string_input_producer(num_epochs=1) would count in a local variable, which a listing
    that only restores a checkpoint does not initialise.
    """
    queue = tf.FIFOQueue(len(paths), [tf.string], [[]], name='filename_queue')
    with tf.control_dependencies([queue.enqueue_many([paths])]):
        enqueue_and_close = queue.close()
    # the thread's second enqueue finds the queue closed, which ends it
    tf.train.add_queue_runner(
        tf.train.QueueRunner(
            queue,
            [enqueue_and_close],
            queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
        )
    )
    return queue
