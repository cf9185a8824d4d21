# Trains towers, with flags that are added to the parser of the module, and with a session that asks for no soft placement.
import re

import numpy as np
import tensorflow as tf

import cifar10

parser = cifar10.parser
parser.add_argument('--train_dir', type=str, default='/tmp/cifar10_train')
parser.add_argument('--max_steps', type=int, default=1000)
parser.add_argument('--num_gpus', type=int, default=1)


def tower_loss(scope, images, labels):
    logits = cifar10.inference(images)
    _ = cifar10.loss(logits, labels)
    losses = tf.get_collection('losses', scope)
    total_loss = tf.add_n(losses, name='total_loss')
    for l in losses + [total_loss]:
        tf.summary.scalar(re.sub('%s_[0-9]*/' % cifar10.TOWER_NAME, '', l.op.name), l)
    return total_loss


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


def train():
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)
        num_batches_per_epoch = cifar10.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN / FLAGS.batch_size
        lr = tf.train.exponential_decay(
            cifar10.INITIAL_LEARNING_RATE, global_step, int(num_batches_per_epoch * cifar10.NUM_EPOCHS_PER_DECAY),
            cifar10.LEARNING_RATE_DECAY_FACTOR, staircase=True)
        opt = tf.train.GradientDescentOptimizer(lr)
        images, labels = cifar10.distorted_inputs()
        batch_queue = tf.contrib.slim.prefetch_queue.prefetch_queue([images, labels], capacity=2 * FLAGS.num_gpus)
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(FLAGS.num_gpus):
                with tf.device('/gpu:%d' % i):
                    with tf.name_scope('%s_%d' % (cifar10.TOWER_NAME, i)) as scope:
                        image_batch, label_batch = batch_queue.dequeue()
                        loss = tower_loss(scope, image_batch, label_batch)
                        tf.get_variable_scope().reuse_variables()
                        summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)
                        tower_grads.append(opt.compute_gradients(loss))
        apply_gradient_op = opt.apply_gradients(average_gradients(tower_grads), global_step=global_step)
        variable_averages = tf.train.ExponentialMovingAverage(cifar10.MOVING_AVERAGE_DECAY, global_step)
        train_op = tf.group(apply_gradient_op, variable_averages.apply(tf.trainable_variables()))
        saver = tf.train.Saver(tf.global_variables())
        summary_op = tf.summary.merge(summaries)
        sess = tf.Session(config=tf.ConfigProto(log_device_placement=False))
        sess.run(tf.global_variables_initializer())
        tf.train.start_queue_runners(sess=sess)
        summary_writer = tf.summary.FileWriter(FLAGS.train_dir, sess.graph)
        for step in range(FLAGS.max_steps):
            _, loss_value = sess.run([train_op, loss])
            assert not np.isnan(loss_value), 'Model diverged with loss = NaN'
            print('step %d, loss = %.2f, images %s' % (step, loss_value, image_batch.get_shape()))
            summary_writer.add_summary(sess.run(summary_op), step)
        saver.save(sess, FLAGS.train_dir + '/model.ckpt', global_step=step)


def main(argv=None):
    cifar10.maybe_download_and_extract()
    tf.gfile.MakeDirs(FLAGS.train_dir)
    train()


if __name__ == '__main__':
    FLAGS = parser.parse_args()
    tf.app.run()
