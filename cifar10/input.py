"""Queue-based input pipeline: reading, shuffling, prefetching, evaluation input."""

import os
import types
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import distortions
from cifar10.config import (
    CLASSIC,
    DEPTH,
    HEIGHT,
    IMAGE_SIZE,  # noqa: F401 (books import it from here)
    NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN,
    WIDTH,
    HParams,
)
from cifar10.data import dataset, verification
from cifar10.errors import UserError

BATCH_SIZE = CLASSIC.batch_size

# Graph collections. Training starts when each shuffle queue has reached its minimum size.
SHUFFLE_QUEUE_SIZE = 'shuffle_queue_size'  # int32 scalar tensors, records
SHUFFLE_QUEUE_MIN = 'shuffle_queue_min'  # ints, records
QUEUE_FILL = 'queue_fill'  # float scalar tensors, 0 to 1, named after the queue

MIN_FRACTION_OF_EXAMPLES_IN_QUEUE = 0.4


class Shard(NamedTuple):
    """One of `num_shards` disjoint parts of the examples, of nearly equal size."""

    index: int = 0
    num_shards: int = 1


class InputSettings(NamedTuple):
    """Settings of the training input."""

    hparams: HParams = CLASSIC  # of the distortions
    deterministic: bool = False  # True: the graph's seed fixes the order of images
    shard: Shard = Shard()


def read_cifar10(filename_queue, label_bytes=1):
    """Read the next example from the files of a filename queue.

    Args:
      filename_queue: a queue of strings.
      label_bytes: number of label bytes per record; the last one is the label.

    Returns:
      An object with the fields height, width, depth; key, a string scalar 'file:record'; label,
      int32 [1]; uint8image, uint8 [32, 32, 3].
    """
    record_bytes = label_bytes + dataset.IMAGE_BYTES
    key, value = tf.FixedLengthRecordReader(record_bytes).read(filename_queue)
    record = tf.reshape(tf.decode_raw(value, tf.uint8), [1, record_bytes])
    labels, images = _split_records(record, label_bytes)
    return types.SimpleNamespace(
        height=HEIGHT,
        width=WIDTH,
        depth=DEPTH,
        key=key,
        label=labels,
        uint8image=tf.transpose(images[0], [1, 2, 0]),
    )


def _split_records(rows, label_bytes):
    """Split uint8 [n, record_bytes] into labels, int32 [n], and images, uint8 [n, 3, 32, 32]."""
    labels = tf.cast(rows[:, label_bytes - 1], tf.int32)
    return labels, tf.reshape(rows[:, label_bytes:], [-1, DEPTH, HEIGHT, WIDTH])


def distorted_inputs(data_dir=dataset.DATA_DIR, batch_size=BATCH_SIZE, settings=InputSettings()):
    """Return batches of distorted training images, in random order, endlessly.

    Args:
      data_dir: directory of a data set, or a Dataset; see dataset.read.
      batch_size: examples per batch.
      settings: an InputSettings.

    Returns:
      images: float32 [batch_size, 24, 24, 3].
      labels: int32 [batch_size].

    Raises:
      cifar10.errors.UserError: a file is missing or malformed, or has fewer examples than shards.
    """
    split = verification.verify_split(dataset.read(data_dir).train)
    num_examples = split.num_examples // settings.shard.num_shards
    with tf.device('/cpu:0'), tf.name_scope('distorted_inputs'):
        labels, images = shuffled_records(split, num_examples, batch_size, settings)
        sampled = distortions.sample(batch_size, settings.hparams)
        images = distortions.distort(images, sampled)
        return images, labels


def min_queue_examples(num_examples):
    """Return the minimum size of the shuffle queue: 40 % of the examples, and at least 1.

    It is 40 % of no more than 50,000 examples, to bound the memory.
    """
    num_examples = min(num_examples, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN)
    return max(1, int(num_examples * MIN_FRACTION_OF_EXAMPLES_IN_QUEUE))


def shuffled_records(split, num_examples, batch_size, settings=InputSettings()):
    """Return batches of raw records, in random order, endlessly.

    Args:
      split: a Split.
      num_examples: examples in the shard, see min_queue_examples.
      batch_size: examples per batch.
      settings: an InputSettings. If `deterministic` is True and one thread dequeues, the graph's
        seed fixes the order.

    Returns:
      labels: int32 [batch_size].
      images: uint8 [batch_size, 3, 32, 32].
    """
    minimum = min_queue_examples(num_examples)
    # Deterministic: with room for one record above the minimum, the queue is full at each dequeue.
    # The timing of threads then does not change the content.
    capacity = minimum + (1 if settings.deterministic else 3 * batch_size)
    filenames = tf.train.string_input_producer(split.paths)
    with tf.name_scope('shuffle_queue'):
        queue = tf.RandomShuffleQueue(
            capacity, minimum, [tf.uint8], [[split.record_bytes]], name='shuffle_queue'
        )
        enqueue = queue.enqueue_many([_read_records(filenames, split, settings.shard)])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
        size = queue.size()
        tf.add_to_collection(SHUFFLE_QUEUE_SIZE, size)
        tf.add_to_collection(SHUFFLE_QUEUE_MIN, minimum)
        tf.add_to_collection(QUEUE_FILL, tf.divide(size, capacity, name='fill'))
        return _split_records(queue.dequeue_many(batch_size), split.label_bytes)


def _read_records(filename_queue, split, shard=Shard()):
    """Read the next 1 to 256 records, uint8 [n, record_bytes].

    A shard reads every shard.num_shards-th block of each file. Blocks are as large as the file
    sizes allow.

    Raises:
      UserError: a file has fewer records than shards.
    """
    paths, record_bytes = split.paths, split.record_bytes
    lengths = [os.path.getsize(path) // record_bytes for path in paths]
    for path, length in zip(paths, lengths):
        if length < shard.num_shards:
            raise UserError(
                f'{path} has {length} examples, too few for {shard.num_shards} workers: '
                'start fewer workers, or give more data'
            )
    # The block size must divide the length of each file, or the reader would lose the last records.
    # If no size gives equal shards, a block is one record. Then the shards differ by at most one
    # record per file.
    common = np.gcd.reduce(lengths)
    blocks = [count for count in range(1, 257) if common % (count * shard.num_shards) == 0]
    block = max(blocks, default=1)
    size = block * record_bytes
    reader = tf.FixedLengthRecordReader(
        size, header_bytes=shard.index * size, hop_bytes=shard.num_shards * size
    )
    _, values = reader.read_up_to(filename_queue, 256 // block)
    return tf.reshape(tf.decode_raw(values, tf.uint8), [-1, record_bytes])


def prefetch_queue(images, labels, capacity, num_threads=1):
    """Prefetch up to `capacity` batches in `num_threads` threads.

    Returns:
      A tf.FIFOQueue; its dequeue() returns the next (images, labels).
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
    """Dequeue one batch per tower, in the order of the towers.

    With a fixed order, the timing of threads does not change the batch of a tower.

    Returns:
      A list of (images, labels).
    """
    batches = []
    for _ in range(num_towers):
        with tf.control_dependencies(batches[-1] if batches else []):
            batches.append(queue.dequeue())
    return batches


def inputs(eval_data, data_dir=dataset.DATA_DIR, batch_size=BATCH_SIZE, num_epochs=None):
    """Return batches of undistorted images in the order of the files.

    Args:
      eval_data: True reads the test files, False the training files.
      data_dir: directory of a data set, or a Dataset; see dataset.read.
      batch_size: examples per batch.
      num_epochs: number of passes over the examples. The last batch may be smaller. The next
        session.run raises tf.errors.OutOfRangeError. None returns full batches endlessly.

    Returns:
      images: float32 [n, 24, 24, 3], standardized center crops; n is batch_size, or unknown with
        `num_epochs`.
      labels: int32 [n].

    Raises:
      cifar10.errors.UserError: a file is missing or malformed.
    """
    found = dataset.read(data_dir)
    split = verification.verify_split(found.test if eval_data else found.train)
    labels, images = undistorted_records(split, batch_size, num_epochs)
    with tf.device('/cpu:0'), tf.name_scope('crop'):
        return distortions.crop(images), labels


def undistorted_records(split, batch_size=BATCH_SIZE, num_epochs=None):
    """Return batches of raw records in the order of the files; for the arguments see `inputs`.

    Returns:
      labels: int32 [n].
      images: uint8 [n, 3, 32, 32].
    """
    with tf.device('/cpu:0'), tf.name_scope('inputs'):
        filenames = (
            _filename_queue(split.paths * num_epochs)
            if num_epochs
            else tf.train.string_input_producer(split.paths, shuffle=False)
        )
        rows = tf.train.batch(
            [_read_records(filenames, split)],
            batch_size,
            capacity=4 * batch_size,
            enqueue_many=True,
            allow_smaller_final_batch=bool(num_epochs),
        )
        return _split_records(rows, split.label_bytes)


def _filename_queue(paths):
    """Return a queue of file names that closes after the last name.

    tf.train.string_input_producer(num_epochs=1) would need a local variable. Programs of books that
    only restore a checkpoint do not initialize local variables.
    """
    queue = tf.FIFOQueue(len(paths), [tf.string], [[]], name='filename_queue')
    with tf.control_dependencies([queue.enqueue_many([paths])]):
        enqueue_and_close = queue.close()
    # The second enqueue fails, because the queue is closed. The error ends the thread.
    tf.train.add_queue_runner(
        tf.train.QueueRunner(
            queue,
            [enqueue_and_close],
            queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
        )
    )
    return queue
