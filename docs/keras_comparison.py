"""Trains and evaluates the same network in Keras 3, for the comparison in results.md.

python docs/keras_comparison.py DIRECTORY [--bfloat16]

The directory has the binary files of CIFAR-10. --bfloat16: compute in bfloat16, with float32
variables and logits.
"""

import argparse
import glob
import os
import time

import keras
import numpy as np
import tensorflow as tf

BATCH_SIZE, NUM_STEPS, NUM_MEASURED_STEPS = 128, 500, 300


def read(pattern):
    """Return the images, uint8 [n, 32, 32, 3], and labels of the matching files."""
    records = np.concatenate(
        [np.fromfile(path, np.uint8).reshape(-1, 3073) for path in sorted(glob.glob(pattern))]
    )
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0].astype(
        np.int32
    )


def distorted(images, labels):
    """Distort a batch of images as in the TensorFlow tutorial, with one gather for each axis."""
    n = tf.shape(images)[0]
    rows = tf.random.uniform([n, 1], 0, 9, tf.int32) + tf.range(24)
    columns = tf.random.uniform([n, 1], 0, 9, tf.int32) + tf.range(24)
    columns = tf.where(tf.random.uniform([n, 1]) < 0.5, columns[:, ::-1], columns)
    images = tf.gather(tf.gather(images, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)
    images = tf.cast(images, tf.float32) + tf.random.uniform([n, 1, 1, 1], -63, 63)
    mean = tf.reduce_mean(images, [1, 2], keepdims=True)
    images = (images - mean) * tf.random.uniform([n, 1, 1, 1], 0.2, 1.8) + mean
    return tf.image.per_image_standardization(images), labels


def central(images, labels):
    """Return the standardized center crops, for evaluation."""
    images = tf.cast(images[:, 4:28, 4:28], tf.float32)
    return tf.image.per_image_standardization(images), labels


def convolution(bias):
    """Return a convolutional layer of 64 channels."""
    return keras.layers.Conv2D(
        64,
        5,
        padding='same',
        activation='relu',
        bias_initializer=keras.initializers.Constant(bias),
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.05),
    )


def dense(size):
    """Return a hidden layer with weight decay (0.004 times half the sum of squares)."""
    return keras.layers.Dense(
        size,
        activation='relu',
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.04),
        bias_initializer=keras.initializers.Constant(0.1),
        kernel_regularizer=keras.regularizers.L2(0.002),
    )


class Normalization(keras.layers.Layer):
    """Local response normalization, on a CPU faster than tf.nn.lrn(x, 4, 1.0, 0.001 / 9, 0.75)."""

    def call(self, x):
        """Return x (1 + 0.001 / 9 * the sum of the squares of 9 channels)^-0.75."""
        index = np.arange(x.shape[-1])
        band = (np.abs(index[:, None] - index) <= 4) * (0.001 / 9)
        root = keras.ops.rsqrt(1 + keras.ops.matmul(x * x, keras.ops.cast(band, x.dtype)))
        return x * (root * keras.ops.sqrt(root))


def pool():
    """Return an overlapping max pooling layer."""
    return keras.layers.MaxPooling2D(3, 2, padding='same')


class Timer(keras.callbacks.Callback):
    """Prints the time until the end of the first step, and the speed of the last steps."""

    def on_train_begin(self, logs=None):
        """Start the clock."""
        self.start = time.time()

    def on_train_batch_end(self, batch, logs=None):
        """Look at the clock."""
        if batch == 0:
            print(f'first step after {time.time() - self.start:.1f} s')
        if batch == NUM_STEPS - NUM_MEASURED_STEPS - 1:
            self.start = time.time()
        if batch == NUM_STEPS - 1:
            seconds = (time.time() - self.start) / NUM_MEASURED_STEPS
            print(f'{1000 * seconds:.1f} ms per step, {BATCH_SIZE / seconds:.0f} examples/sec')


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument('directory')
parser.add_argument('--bfloat16', action='store_true')
args = parser.parse_args()
if args.bfloat16:
    keras.mixed_precision.set_global_policy('mixed_bfloat16')

model = keras.Sequential(
    [
        keras.Input([24, 24, 3]),
        convolution(0.0),
        pool(),
        Normalization(),
        convolution(0.1),
        Normalization(),
        pool(),
        keras.layers.Flatten(),
        dense(384),
        dense(192),
        keras.layers.Dense(
            10,
            dtype='float32',
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=1 / 192),
        ),
    ]
)
model.compile(
    keras.optimizers.SGD(0.1),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=['accuracy'],
    jit_compile=False,  # on a CPU, XLA's convolutions are slower
)
train = tf.data.Dataset.from_tensor_slices(read(os.path.join(args.directory, 'data_batch_*.bin')))
train = train.shuffle(20000).repeat().batch(BATCH_SIZE)
train = train.map(distorted, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
test = tf.data.Dataset.from_tensor_slices(read(os.path.join(args.directory, 'test_batch.bin')))
test = test.batch(BATCH_SIZE).map(central, tf.data.AUTOTUNE)
model.fit(train, steps_per_epoch=NUM_STEPS, verbose=0, callbacks=[Timer()])
print(f'test precision {model.evaluate(test, verbose=0)[1]:.4f}')
