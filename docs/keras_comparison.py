"""Trains and evaluates the same network in Keras 3, for the comparison in results.md.

python docs/keras_comparison.py /tmp/cifar10_synthetic/cifar-10-batches-bin
"""

import glob
import os
import sys

import keras
import numpy as np
import tensorflow as tf


def read(pattern):
    """Return the images, uint8 [n, 32, 32, 3], and labels of the matching files."""
    records = np.concatenate(
        [np.fromfile(path, np.uint8).reshape(-1, 3073) for path in sorted(glob.glob(pattern))]
    )
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0].astype(
        np.int32
    )


def distorted(image, label):
    """Distort an image as in the TensorFlow tutorial."""
    image = tf.image.random_crop(tf.cast(image, tf.float32), [24, 24, 3])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_contrast(tf.image.random_brightness(image, 63), 0.2, 1.8)
    return tf.image.per_image_standardization(image), label


def central(image, label):
    """Return the standardized center crop, for evaluation."""
    return tf.image.per_image_standardization(tf.cast(image[4:28, 4:28], tf.float32)), label


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


def normalization():
    """Return a layer of local response normalization, which Keras does not have."""
    return keras.layers.Lambda(lambda x: tf.nn.lrn(x, 4, 1.0, 0.001 / 9, 0.75))


def pool():
    """Return an overlapping max pooling layer."""
    return keras.layers.MaxPooling2D(3, 2, padding='same')


directory = sys.argv[1]
model = keras.Sequential(
    [
        keras.Input([24, 24, 3]),
        convolution(0.0),
        pool(),
        normalization(),
        convolution(0.1),
        normalization(),
        pool(),
        keras.layers.Flatten(),
        dense(384),
        dense(192),
        keras.layers.Dense(
            10, kernel_initializer=keras.initializers.TruncatedNormal(stddev=1 / 192)
        ),
    ]
)
model.compile(
    keras.optimizers.SGD(0.1),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=['accuracy'],
)
train = (
    tf.data.Dataset.from_tensor_slices(read(os.path.join(directory, 'data_batch_*.bin')))
    .shuffle(20000)
    .repeat()
)
train = train.map(distorted, tf.data.AUTOTUNE).batch(128).prefetch(tf.data.AUTOTUNE)
test = (
    tf.data.Dataset.from_tensor_slices(read(os.path.join(directory, 'test_batch.bin')))
    .map(central, tf.data.AUTOTUNE)
    .batch(128)
)
model.fit(train, steps_per_epoch=500, validation_data=test)
