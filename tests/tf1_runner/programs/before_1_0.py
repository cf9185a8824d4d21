# Trains two towers in the style of TensorFlow 0.6 to 0.11: old names, old orders of arguments, reuse_variables without a scope.
import tensorflow.python.platform
from tensorflow.python.platform import gfile
from six.moves import xrange
import tensorflow as tf

from tensorflow.models.image.cifar10 import cifar10

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string('train_dir', '/tmp/cifar10_train', """Directory.""")
tf.app.flags.DEFINE_integer('batch_size', 64, """Defined in the module too.""")
cifar10.NUM_CLASSES = 12
cifar10.IMAGE_SIZE = 32
cifar10.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 300
FLAGS.batch_size = 8


def average(grads_and_vars):
    grads = [tf.expand_dims(g, 0) for g, _ in grads_and_vars]
    return tf.reduce_mean(tf.concat(0, grads), 0), grads_and_vars[0][1]


def main(argv=None):
    gfile.MakeDirs(FLAGS.train_dir)
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)
        opt = tf.train.MomentumOptimizer(0.1, 0.5)
        tower_grads = []
        for i in xrange(2):
            with tf.device('/gpu:%d' % i), tf.name_scope('%s_%d' % (cifar10.TOWER_NAME, i)) as scope:
                images, labels = cifar10.distorted_inputs()
                first, second = tf.split(0, 2, images)
                logits = cifar10.inference(tf.concat(0, [first, second]))
                tf.nn.sparse_softmax_cross_entropy_with_logits(logits, tf.cast(labels, tf.int64))
                cifar10.loss(logits, labels)
                losses = tf.get_collection('losses', scope)
                total_loss = tf.add_n(losses, name='total_loss')
                averages = tf.train.ExponentialMovingAverage(0.9, name='avg')
                averages_op = averages.apply(losses + [total_loss])
                for l in losses + [total_loss]:
                    tf.scalar_summary(l.op.name + ' (raw)', l)
                    tf.scalar_summary(tags=l.op.name, values=averages.average(l))
                    tf.histogram_summary(tag=l.op.name + '/histogram', values=l)
                with tf.control_dependencies([averages_op]):
                    loss = tf.identity(total_loss)
                tf.get_variable_scope().reuse_variables()
                tower_grads.append(opt.compute_gradients(tf.mul(loss, 1.0)))
        grads = [average(grad_and_vars) for grad_and_vars in zip(*tower_grads)]
        apply_op = opt.apply_gradients(grads, global_step=global_step)
        variable_averages = tf.train.ExponentialMovingAverage(cifar10.MOVING_AVERAGE_DECAY, global_step)
        train_op = tf.group(apply_op, variable_averages.apply(tf.trainable_variables()))
        saver = tf.train.Saver(tf.all_variables())
        summary_op = tf.merge_all_summaries()
        sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
        sess.run(tf.initialize_all_variables())
        tf.train.start_queue_runners(sess=sess)
        writer = tf.train.SummaryWriter(FLAGS.train_dir, graph_def=sess.graph_def)
        for step in xrange(3):
            _, loss_value = sess.run([train_op, loss])
            writer.add_summary(sess.run(summary_op), step)
            print('step %d, loss = %.2f, images %s, logits %s' % (step, loss_value, images.get_shape(), logits.get_shape()))
        saver.save(sess, FLAGS.train_dir + '/model.ckpt', global_step=step)


if __name__ == '__main__':
    tf.app.run()
