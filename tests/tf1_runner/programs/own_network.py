# A network of its own on cifar10_input, fed through placeholders, in the style of a book's chapter.
import cifar10,cifar10_input
import tensorflow as tf
import numpy as np
import math
import sys

max_steps = 20
batch_size = 16
data_dir = sys.argv[1]


def variable_with_weight_loss(shape, stddev, wl):
    var = tf.Variable(tf.truncated_normal(shape, stddev=stddev))
    if wl is not None:
        tf.add_to_collection('losses', tf.multiply(tf.nn.l2_loss(var), wl, name='weight_loss'))
    return var


def total_loss(logits, labels):
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=tf.cast(labels, tf.int64))
    tf.add_to_collection('losses', tf.reduce_mean(cross_entropy))
    return tf.add_n(tf.get_collection('losses'), name='total_loss')


images_train, labels_train = cifar10_input.distorted_inputs(data_dir=data_dir, batch_size=batch_size)
images_test, labels_test = cifar10_input.inputs(eval_data=True, data_dir=data_dir, batch_size=batch_size)
image_holder = tf.placeholder(tf.float32, [batch_size, 24, 24, 3])
label_holder = tf.placeholder(tf.int32, [batch_size])

kernel1 = variable_with_weight_loss([5, 5, 3, 8], 5e-2, 0.0)
conv1 = tf.nn.relu(tf.nn.conv2d(image_holder, kernel1, [1, 1, 1, 1], padding='SAME'))
pool1 = tf.nn.max_pool(conv1, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding='SAME')
norm1 = tf.nn.lrn(pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
reshape = tf.reshape(norm1, [batch_size, -1])
dim = reshape.get_shape()[1].value
weight2 = variable_with_weight_loss([dim, 10], 0.01, 0.004)
logits = tf.matmul(reshape, weight2)

loss = total_loss(logits, label_holder)
train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)
top_k_op = tf.nn.in_top_k(logits, label_holder, 1)

sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
tf.train.start_queue_runners()
for step in range(max_steps):
    image_batch, label_batch = sess.run([images_train, labels_train])
    _, loss_value = sess.run([train_op, loss], feed_dict={image_holder: image_batch, label_holder: label_batch})
    if step % 10 == 0:
        print('step %d, loss = %.2f' % (step, loss_value))

num_examples = 50
num_iter = int(math.ceil(num_examples / batch_size))
true_count = 0
total_sample_count = num_iter * batch_size
step = 0
seen = []
while step < num_iter:
    image_batch, label_batch = sess.run([images_test, labels_test])
    predictions = sess.run([top_k_op], feed_dict={image_holder: image_batch, label_holder: label_batch})
    true_count += np.sum(predictions)
    seen.extend(label_batch)
    step += 1
print('labels %s' % ' '.join(str(label) for label in seen))
print('precision @ 1 = %.3f of %d' % (true_count / total_sample_count, total_sample_count))
