# Evaluates the moving averages of a checkpoint over whole batches, and writes a summary.
import math

import numpy as np
import tensorflow as tf

from tutorials.image.cifar10 import cifar10

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string('eval_dir', '/tmp/cifar10_eval', """Directory of event logs.""")
tf.app.flags.DEFINE_string('checkpoint_dir', '/tmp/cifar10_train', """Directory of checkpoints.""")
tf.app.flags.DEFINE_integer('num_examples', 10000, """Number of examples.""")


def eval_once(saver, summary_writer, top_k_op, summary_op):
    with tf.Session() as sess:
        ckpt = tf.train.get_checkpoint_state(FLAGS.checkpoint_dir)
        saver.restore(sess, ckpt.model_checkpoint_path)
        global_step = ckpt.model_checkpoint_path.split('/')[-1].split('-')[-1]
        coord = tf.train.Coordinator()
        threads = []
        for qr in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
            threads.extend(qr.create_threads(sess, coord=coord, daemon=True, start=True))
        num_iter = int(math.ceil(FLAGS.num_examples / FLAGS.batch_size))
        true_count = 0
        for _ in range(num_iter):
            true_count += np.sum(sess.run([top_k_op]))
        precision = true_count / (num_iter * FLAGS.batch_size)
        print('precision @ 1 = %.3f (%d of %d)' % (precision, true_count, num_iter * FLAGS.batch_size))
        summary = tf.Summary()
        summary.ParseFromString(sess.run(summary_op))
        summary.value.add(tag='Precision @ 1', simple_value=precision)
        summary_writer.add_summary(summary, global_step)
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=10)


def main(argv=None):
    with tf.Graph().as_default() as g:
        images, labels = cifar10.inputs(eval_data=True)
        logits = cifar10.inference(images)
        top_k_op = tf.nn.in_top_k(logits, labels, 1)
        variable_averages = tf.train.ExponentialMovingAverage(cifar10.MOVING_AVERAGE_DECAY)
        saver = tf.train.Saver(variable_averages.variables_to_restore())
        summary_op = tf.summary.merge_all()
        summary_writer = tf.summary.FileWriter(FLAGS.eval_dir, g)
        eval_once(saver, summary_writer, top_k_op, summary_op)


if __name__ == '__main__':
    tf.app.run()
