"""The trainer in the tutorial's operations: the reference, which is the baseline of the benchmark.

tf.image distorts one example at a time. 16 threads fill tf.train.shuffle_batch. A FIFO queue
prefetches. Local response normalization is tf.nn.lrn. A tf.group runs the update and the moving
averages, in no fixed order. The summaries run the network again.
"""

import os

import tensorflow.compat.v1 as tf

from cifar10 import hooks, input as input_lib, model, training
from cifar10.config import NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN, RunLength
from cifar10.data import dataset, verification
from cifar10.errors import UserError
from cifar10.runs import checkpoint
from cifar10.system import directories, machine
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
    split = dataset.read(data_dir).train
    minimum = int(0.4 * min(verification.verify(split), NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN))
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


def _loss_with_summaries(scope, images, labels, num_classes):
    """Return the total loss of the tower in the name scope `scope`; add its summaries."""
    logits = model.inference(images, num_classes, is_tuned=False)
    total_loss = model.loss(logits, labels, scope)
    for activations in tf.get_collection(tf.GraphKeys.ACTIVATIONS, scope):
        name = activations.op.name.split('/')[-1]
        tf.summary.histogram(name + '/activations', activations)
        tf.summary.scalar(name + '/sparsity', tf.nn.zero_fraction(activations))
    for part in tf.get_collection('losses', scope):
        tf.summary.scalar('loss', part)
    return total_loss


def _stack_and_average(tower_grads):
    """Average the gradients of all towers; return a list of (gradient, variable)."""
    averages = []
    for grads_and_vars in zip(*tower_grads):
        gradients, variables = zip(*grads_and_vars)
        averages.append((tf.reduce_mean(tf.stack(gradients), 0), variables[0]))
    return averages


def training_step(job, batches):
    """Build a tower on each device of the Job, and the update.

    Returns:
      The train op, the loss of the last tower, and the averaged gradients.
    """
    hparams, devices = job.hparams, job.devices
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
        ):
            total_loss = _loss_with_summaries(scope, images, labels, job.dataset.num_classes)
            tower_grads.append(sgd.compute_gradients(total_loss))
    gradients = _stack_and_average(tower_grads) if len(devices) > 1 else tower_grads[0]
    update = sgd.apply_gradients(gradients, global_step=global_step)
    averages = tf.train.ExponentialMovingAverage(hparams.moving_average_decay, global_step)
    return tf.group(update, averages.apply(tf.trainable_variables())), total_loss, gradients


def train(job, train_dir):
    """Train in a new directory.

    Args:
      job: a Job. Only its data, devices, max_steps, intervals of log lines, summaries and
        checkpoints, batch size, learning rate and moving_average_decay are used.
      train_dir: the directory.

    Raises:
      UserError: the directory is not empty or not usable.
    """
    directories.make(train_dir)
    if not directories.is_empty(train_dir):
        raise UserError(
            f'{train_dir} is not empty, and this script cannot resume a run',
            'give another {train_dir}',
            'train_dir',
        )
    settings = job.settings
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        images, labels = distorted_inputs(job.dataset, job.hparams.batch_size)
        queue = input_lib.prefetch_queue(images, labels, capacity=2 * len(job.devices))
        batches = [queue.dequeue() for _ in job.devices]
        train_op, total_loss, gradients = training_step(job, batches)
        for gradient, variable in gradients:
            tf.summary.histogram(variable.op.name, variable)
            tf.summary.histogram(variable.op.name + '/gradients', gradient)
        summary_op = tf.summary.merge_all()
        saver = tf.train.Saver()
        step = training.Step(train_op, [total_loss], gradients, summary_op)
        log = hooks.LoggingHook(step, job.run_length, settings)
        config = machine.session_config(job.devices)
        with tf.summary.FileWriter(
            train_dir, tf.get_default_graph()
        ) as summary_writer, tf.train.SingularMonitoredSession([log], config=config) as session:
            raw_session = session.raw_session()  # runs no hooks
            for number in range(1, settings.max_steps + 1):
                session.run(train_op)
                if number % settings.save_summaries_steps == 0:
                    summary_writer.add_summary(raw_session.run(summary_op), number)
                if number % settings.save_checkpoint_steps == 0 or number == settings.max_steps:
                    path = os.path.join(train_dir, checkpoint.PREFIX)
                    saver.save(raw_session, path, number)
