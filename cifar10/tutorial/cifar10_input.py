"""The tutorial's module `cifar10_input`, on the package's input.

A program may set the constants before it builds its graph.
"""

import os  # noqa: F401 (programs use `import *`)

from six.moves import xrange  # noqa: F401 (programs use `import *`)
import tensorflow.compat.v1 as tf

from cifar10 import distortions, input as input_lib
from cifar10.config import (  # noqa: F401 (programs use them)
    NUM_CLASSES,
    NUM_EXAMPLES_PER_EPOCH_FOR_EVAL,
    NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN,
)
from cifar10.data import dataset, verification

IMAGE_SIZE = distortions.IMAGE_SIZE

read_cifar10 = input_lib.read_cifar10
_NUM_PREPROCESS_THREADS = 16


def _generate_image_and_label_batch(image, label, min_queue_examples, batch_size, shuffle=True):
    """Batch an image [height, width, depth] and a label [1] in a queue, in random order or not."""
    capacity = min_queue_examples + 3 * batch_size
    if shuffle:
        images, labels = tf.train.shuffle_batch(
            [image, label], batch_size, capacity, min_queue_examples, _NUM_PREPROCESS_THREADS
        )
    else:
        images, labels = tf.train.batch(
            [image, label], batch_size, _NUM_PREPROCESS_THREADS, capacity
        )
    tf.summary.image('images', images)
    return images, tf.reshape(labels, [batch_size])


def distorted_inputs(
    data_dir=dataset.DATA_DIR, batch_size=input_lib.BATCH_SIZE, image_size=None, num_examples=None
):
    """Return batches of distorted training images, in random order, endlessly.

    Args:
      data_dir: a directory that holds a data set, see dataset.read.
      batch_size: examples per batch.
      image_size: height and width of the images; None means IMAGE_SIZE.
      num_examples: number of examples that sets the size of the queue, at most that in the files;
        None means NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN. See cifar10.input.min_queue_examples.

    Returns:
      images: float32 [batch_size, image_size, image_size, 3].
      labels: int32 [batch_size].

    Raises:
      UserError: a file is missing or malformed.
    """
    image_size = IMAGE_SIZE if image_size is None else image_size
    # Accept any label, because own networks have any number of classes.
    split = dataset.read(data_dir).train
    split = verification.verify_split(split._replace(num_classes=dataset.MAX_CLASSES))
    num_examples = min(num_examples or NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN, split.num_examples)
    print(
        f'Filling queue with {input_lib.min_queue_examples(num_examples)} CIFAR images before starting to '
        'train. This will take a few minutes.',
        flush=True,
    )
    with tf.device('/cpu:0'), tf.name_scope('data_augmentation'):
        labels, images = input_lib.shuffled_records(split, num_examples, batch_size)
        images = distortions.distort(
            images, distortions.sample(batch_size, image_size=image_size), image_size=image_size
        )
        images, labels = input_lib.prefetch_queue(images, labels, 2, num_threads=2).dequeue()
    tf.summary.image('images', images)
    return images, labels


def inputs(
    eval_data,
    data_dir=dataset.DATA_DIR,
    batch_size=input_lib.BATCH_SIZE,
    num_epochs=None,
    image_size=None,
):
    """Return batches of undistorted images, in the order of the files.

    Args:
      eval_data: read the test files if True, else the training files.
      data_dir: a directory that holds a data set, see dataset.read.
      batch_size: examples per batch.
      num_epochs: see cifar10.input.inputs; None gives full batches endlessly.
      image_size: height and width of the images; None means IMAGE_SIZE.

    Returns:
      images: float32 [n, image_size, image_size, 3]; n is batch_size, or unknown with `num_epochs`.
      labels: int32 [n].

    Raises:
      UserError: a file is missing or malformed.
    """
    image_size = IMAGE_SIZE if image_size is None else image_size
    found = dataset.read(data_dir)
    split = found.test if eval_data else found.train
    verification.verify_split(split._replace(num_classes=dataset.MAX_CLASSES))
    labels, images = input_lib.undistorted_records(split, batch_size, num_epochs)
    with tf.device('/cpu:0'), tf.name_scope('input'):
        images = distortions.crop(images, image_size=image_size)
    tf.summary.image('images', images)
    return images, labels
