"""Input and training step in the tutorial's operations: the reference, the benchmark's baseline.

tf.image distorts one example at a time. 16 threads fill tf.train.shuffle_batch. Local response
normalization is tf.nn.lrn. A tf.group runs the update and the moving averages, in no fixed order.
"""

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, input as input_lib, model
from cifar10.config import NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN, RunLength
from cifar10.data import dataset, verification
from cifar10.tutorial import train as tutorial_train


def distort(image, row, column, flip, brightness, contrast):
    """Distort an image, uint8 [32, 32, 3], with tf.image and the given random numbers.

    Returns:
      float32 [24, 24, 3].
    """
    image = tf.cast(image, tf.float32)
    image = tf.slice(image, [row, column, 0], [24, 24, 3])  # as tf.random_crop
    image = tf.cond(flip, lambda: tf.image.flip_left_right(image), lambda: image)
    image = tf.image.adjust_brightness(image, brightness)
    image = tf.image.adjust_contrast(image, contrast)
    return tf.image.per_image_standardization(image)


def distorted_inputs(data_dir, batch_size):
    """Return batches of distorted images and labels.

    Returns:
      float32 [batch_size, 24, 24, 3], and int32 [batch_size].
    """
    split = verification.verify_split(dataset.read(data_dir).train)
    minimum = int(0.4 * min(split.num_examples, NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN))
    record = input_lib.read_cifar10(tf.train.string_input_producer(split.paths), split.label_bytes)
    row, column = (tf.random_uniform([], maxval=9, dtype=tf.int32) for _ in range(2))
    image = distort(
        record.uint8image,
        row,
        column,
        tf.random_uniform([]) < 0.5,
        tf.random_uniform([], -63, 63),
        tf.random_uniform([], 0.2, 1.8),
    )
    images, labels = tf.train.shuffle_batch(
        [image, record.label],
        batch_size,
        num_threads=16,
        capacity=minimum + 3 * batch_size,
        min_after_dequeue=minimum,
    )
    return images, tf.reshape(labels, [batch_size])


def _stack_and_average(tower_grads):
    """Average the gradients of all towers; return a list of (gradient, variable)."""
    averages = []
    for grads_and_vars in zip(*tower_grads):
        gradients, variables = zip(*grads_and_vars)
        averages.append((tf.reduce_mean(tf.stack(gradients), 0), variables[0]))
    return averages


def training_step(job, batches):
    """Build a tower on each device of the Job, and the update; return the train op."""
    hparams, devices = job.hparams, job.resources.devices
    global_step = tf.train.get_or_create_global_step()
    run_length = RunLength(
        int(batches[0][0].shape[0]), job.num_examples
    )  # the books' schedule counts the batch of one tower
    sgd = tf.train.GradientDescentOptimizer(
        tutorial_train.learning_rate(global_step, run_length, hparams)
    )
    tower_grads = []
    for i, (device, (images, labels)) in enumerate(zip(devices, batches)):
        with tf.device(device), tf.name_scope(f'tower_{i}') as scope, tf.variable_scope(
            tf.get_variable_scope(), reuse=i > 0
        ), cpu_kernels.portable():
            logits = model.inference(images, job.dataset.num_classes)
            tower_grads.append(sgd.compute_gradients(model.loss(logits, labels, scope)))
    gradients = _stack_and_average(tower_grads) if len(devices) > 1 else tower_grads[0]
    update = sgd.apply_gradients(gradients, global_step=global_step)
    averages = tf.train.ExponentialMovingAverage(hparams.moving_average_decay, global_step)
    return tf.group(update, averages.apply(tf.trainable_variables()))
