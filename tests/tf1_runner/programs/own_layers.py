# Layers of its own with the module's helpers, half precision, and a record that is changed.
import sys

import numpy as np
import tensorflow as tf

import cifar10
import cifar10_input

assert cifar10.cifar10_input is cifar10_input
cifar10_input.IMAGE_SIZE = 28
cifar10.FLAGS.use_fp16 = True
images, labels = cifar10.inputs(False, num_epochs=1)
assert images.dtype == tf.float16 and images.get_shape()[1].value == 28, images

with tf.variable_scope('own') as scope:
    weights = cifar10._variable_with_weight_decay('weights', shape=[28 * 28 * 3, 10], stddev=0.04, wd=0.5)
    biases = cifar10._variable_on_cpu('biases', [10], tf.constant_initializer(0.25))
    logits = tf.nn.relu(tf.matmul(tf.reshape(images, [-1, 28 * 28 * 3]), weights) + biases, name=scope.name)
cifar10._activation_summary(logits)
assert weights.dtype.base_dtype == tf.float16 and weights.device == '/device:CPU:0', (weights, weights.device)
weight_loss, = tf.get_collection('losses')

queue = tf.train.string_input_producer([sys.argv[1]], shuffle=False)
record = cifar10_input.read_cifar10(queue)
record.height = 20
record.uint8image = record.uint8image[:record.height]
batch, batch_labels = cifar10_input._generate_image_and_label_batch(
    tf.cast(record.uint8image, tf.float32), record.label, min_queue_examples=4, batch_size=6, shuffle=False)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    value, loss_value, biases_value, logits_value = sess.run([weights, weight_loss, biases, logits])
    np.testing.assert_allclose(loss_value, 0.25 * np.sum(np.square(value, dtype=np.float64)), rtol=1e-2)
    assert set(biases_value) == {0.25} and logits_value.shape == (128, 10)
    batch_value, labels_value = sess.run([batch, batch_labels])
    tags = {item.tag for item in tf.Summary.FromString(sess.run(tf.summary.merge_all())).value}
    assert {'own/own/activations', 'own/own/sparsity'} <= tags, tags
    print('batch %s, labels %s, first byte %d' % (batch_value.shape, labels_value.shape, batch_value.min()))
    coord.request_stop()
    coord.join(threads)
