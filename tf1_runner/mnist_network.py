"""The module tensorflow.examples.tutorials.mnist.mnist: the network of the tutorial on MNIST."""

import math

import tensorflow.compat.v1 as tf

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images, hidden1_units, hidden2_units):
    """Return the logits [batch, 10] of images [batch, 784]; the hidden layers have these units."""
    hidden1 = _layer('hidden1', images, IMAGE_PIXELS, hidden1_units, tf.nn.relu)
    hidden2 = _layer('hidden2', hidden1, hidden1_units, hidden2_units, tf.nn.relu)
    return _layer('softmax_linear', hidden2, hidden2_units, NUM_CLASSES, lambda x: x)


def _layer(name, inputs, num_inputs, num_outputs, activation):
    with tf.name_scope(name):
        values = tf.truncated_normal([num_inputs, num_outputs], stddev=1 / math.sqrt(num_inputs))
        weights = tf.Variable(values, name='weights')
        biases = tf.Variable(tf.zeros([num_outputs]), name='biases')
        return activation(tf.matmul(inputs, weights) + biases)


def loss(logits, labels):
    """Return the mean cross entropy of the logits and labels, integers [batch]."""
    return tf.losses.sparse_softmax_cross_entropy(tf.cast(labels, tf.int64), logits)


def training(loss, learning_rate):
    """Return an operation that does a step of gradient descent; add a summary of the loss."""
    tf.summary.scalar('loss', loss)
    global_step = tf.Variable(0, name='global_step', trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step)


def evaluation(logits, labels):
    """Return the number of correct predictions, an int32 scalar."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
