"""A listing as the books print it, written against the face of the package only."""

import glob
import os
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.runs import checkpoint
from tests.helpers import checkpoints


def tower_loss(scope, images, labels):
    logits = cifar10.inference(images)
    _ = cifar10.loss(logits, labels)
    losses = tf.get_collection('losses', scope)
    total_loss = tf.add_n(losses, name='total_loss')
    for part in losses + [total_loss]:
        loss_name = re.sub('%s_[0-9]*/' % cifar10.TOWER_NAME, '', part.op.name)
        tf.summary.scalar(loss_name, part)
    return total_loss


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        average_grads.append((tf.reduce_mean(tf.concat(grads, 0), 0), grad_and_vars[0][1]))
    return average_grads


def train(data_dir, train_dir, max_steps, num_gpus=2, batch_size=128):
    printed = []
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        global_step = tf.get_variable(
            'global_step', [], initializer=tf.constant_initializer(0), trainable=False
        )
        num_batches_per_epoch = cifar10.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN / batch_size
        decay_steps = int(num_batches_per_epoch * cifar10.NUM_EPOCHS_PER_DECAY)
        lr = tf.train.exponential_decay(
            cifar10.INITIAL_LEARNING_RATE,
            global_step,
            decay_steps,
            cifar10.LEARNING_RATE_DECAY_FACTOR,
            staircase=True,
        )
        opt = tf.train.GradientDescentOptimizer(lr)
        images, labels = cifar10.distorted_inputs(data_dir, batch_size)
        batch_queue = tf.FIFOQueue(
            2 * num_gpus, [tf.float32, tf.int32], [images.shape, labels.shape]
        )
        tf.train.add_queue_runner(
            tf.train.QueueRunner(batch_queue, [batch_queue.enqueue([images, labels])])
        )
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(num_gpus):
                with tf.device('/gpu:%d' % i):
                    with tf.name_scope('%s_%d' % (cifar10.TOWER_NAME, i)) as scope:
                        image_batch, label_batch = batch_queue.dequeue()
                        loss = tower_loss(scope, image_batch, label_batch)
                        tf.get_variable_scope().reuse_variables()
                        summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)
                        grads = opt.compute_gradients(loss)
                        tower_grads.append(grads)
        grads = average_gradients(tower_grads)
        summaries.append(tf.summary.scalar('learning_rate', lr))
        for grad, var in grads:
            if grad is not None:
                summaries.append(tf.summary.histogram(var.op.name + '/gradients', grad))
        apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
        for var in tf.trainable_variables():
            summaries.append(tf.summary.histogram(var.op.name, var))
        variable_averages = tf.train.ExponentialMovingAverage(
            cifar10.MOVING_AVERAGE_DECAY, global_step
        )
        variables_averages_op = variable_averages.apply(tf.trainable_variables())
        train_op = tf.group(apply_gradient_op, variables_averages_op)
        saver = tf.train.Saver(tf.global_variables())
        summary_op = tf.summary.merge(summaries)
        init = tf.global_variables_initializer()
        sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
        sess.run(init)
        tf.train.start_queue_runners(sess=sess)
        summary_writer = tf.summary.FileWriter(train_dir, sess.graph)
        for step in range(max_steps):
            _, loss_value = sess.run([train_op, loss])
            assert not np.isnan(loss_value), 'Model diverged with loss = NaN'
            printed.append(loss_value)
            if step + 1 == max_steps:
                summary_writer.add_summary(sess.run(summary_op), step)
                saver.save(sess, os.path.join(train_dir, 'model.ckpt'), global_step=step)
        summary_writer.close()
        sess.close()
    return printed


def evaluate(data_dir, checkpoint_dir, num_examples, batch_size):
    with tf.Graph().as_default():
        images, labels = cifar10.inputs(eval_data=True, data_dir=data_dir, batch_size=batch_size)
        logits = cifar10.inference(images)
        top_k_op = tf.nn.in_top_k(logits, labels, 1)
        variable_averages = tf.train.ExponentialMovingAverage(cifar10.MOVING_AVERAGE_DECAY)
        saver = tf.train.Saver(variable_averages.variables_to_restore())
        with tf.Session() as sess:
            saver.restore(sess, tf.train.get_checkpoint_state(checkpoint_dir).model_checkpoint_path)
            coord = tf.train.Coordinator()
            threads = []
            for qr in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                threads.extend(qr.create_threads(sess, coord=coord, daemon=True, start=True))
            true_count = 0
            for _ in range(-(-num_examples // batch_size)):
                true_count += np.sum(sess.run([top_k_op]))
            coord.request_stop()
            coord.join(threads, stop_grace_period_secs=10)
    return true_count


# Like those of the books, the listing closes the session under its queue threads.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnhandledThreadExceptionWarning')
def test_the_listing_trains_and_evaluates(tmp_path, data_dir):
    losses = train(data_dir, str(tmp_path), max_steps=3, batch_size=32)
    assert len(losses) == 3 and 4 < losses[0] < 5.5
    tags = {
        value.tag
        for event in tf.train.summary_iterator(glob.glob(str(tmp_path / 'events.*'))[0])
        for value in event.summary.value
    }
    assert 'learning_rate' in tags and 'conv1/weights/gradients' in tags
    evaluator = evaluation.Evaluator(dataset.read(data_dir).test)
    result = evaluator.evaluate(checkpoint.read(str(tmp_path / 'model.ckpt-2')))
    assert (result.step, result.scores.num_correct) == (
        3,
        evaluate(data_dir, str(tmp_path), 50, 25),
    )


def test_the_listing_reads_our_checkpoints(tmp_path, data_dir):
    _, variables = checkpoints.save(tmp_path, 1)
    assert (
        evaluate(data_dir, str(tmp_path), 50, 25)
        == checkpoints.expected_result(data_dir, variables)[0]
    )
