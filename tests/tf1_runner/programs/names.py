# Names and behaviour of TensorFlow 1, and the former places of the tutorial's modules.
import sys

import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.layers.python.layers import batch_norm
from tensorflow.contrib import layers
from tensorflow.python.framework import ops
from tensorflow.python.platform import gfile
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.framework import graph_util
import scipy.misc

import cifar10
import cifar10_input
from cifar10_input import *
from tensorflow.models.image.cifar10 import cifar10 as first
from tensorflow.models.tutorials.image.cifar10 import cifar10_input as second
from models.tutorials.image.cifar10 import cifar10 as third
import tutorials.image.cifar10.cifar10_input as fourth
import cifar10.cifar10_input as fifth
import cifar10.input

assert __name__ == '__main__' and sys.argv[1:] == ['their', 'argument'], sys.argv
assert first is third is cifar10 and second is fourth is fifth is cifar10.cifar10_input is cifar10_input
assert cifar10.input.prefetch_queue and cifar10.NUM_CLASSES == cifar10_input.NUM_CLASSES == 10
assert cifar10.FLAGS is tf.app.flags.FLAGS
assert os.sep and list(xrange(2)) == [0, 1] and scipy.misc.imresize
assert tf.pywrap_tensorflow.NewCheckpointReader is pywrap_tensorflow.NewCheckpointReader
assert cifar10.FLAGS._parse_flags() == sys.argv and cifar10.FLAGS.batch_size == 128

assert tf.placeholder(tf.float32, [7, None]).get_shape()[0].value == 7
assert not tf.executing_eagerly() and ops.get_default_graph() is tf.get_default_graph()
assert not isinstance(tf.Variable(1.0), type(tf.get_variable('v', [], use_resource=True)))
assert tf.__version__.split('.')[0] in '12' and 'placeholder' in dir(tf)
flat = layers.flatten(tf.ones([1, 3, 2]))
assert flat.get_shape().as_list() == [1, 6]
assert tf.contrib.layers is layers and batch_norm is layers.batch_norm and slim is tf.contrib.slim
for build in (lambda: tf.nothing, lambda: tf.contrib.nothing, lambda: layers.nothing):
    try:
        build()
    except AttributeError as error:
        assert 'has no attribute' in str(error) or 'is not in this TensorFlow' in str(error), error
    else:
        raise AssertionError(build)

x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
cifar10.FLAGS.made_up = 'by the program'
assert cifar10.FLAGS.made_up == 'by the program'
with tf.device('/gpu:3'):
    product = tf.matmul(x, x)
for config in (None, tf.ConfigProto(allow_soft_placement=False)):
    with tf.Session(config=config) as sess:
        values = sess.run(product)
        assert values.tolist() == [[7, 10], [15, 22]]
with tf.train.MonitoredTrainingSession() as sess:
    assert sess.run(product)[0, 0] == 7
with tf.Graph().as_default() as graph:
    weight = tf.Variable(2.0)
    sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.5), replicas_to_aggregate=1, replica_id=0,
                                          total_num_replicas=1)
    update = sync.apply_gradients([(tf.constant(3.0), weight)], global_step=tf.train.get_or_create_global_step())
    with tf.Session() as sess:
        sess.run(tf.initialize_all_variables())
        assert not sess.run(sync.ready_for_local_init_op).size
        sess.run(sync.chief_init_op)
        sync.get_chief_queue_runner().create_threads(sess, daemon=True, start=True)
        sess.run(update)
        assert sess.run(weight) == 0.5
        frozen = graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), [weight.op.name])
assert [node.op for node in frozen.node] == ['Const']
tf.logging.warning('A warning of the program')
print('all names are there')
