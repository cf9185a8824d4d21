"""Random distortions of training images, and crops of evaluation images.

All functions process whole batches of raw images. The per-example operations of `tf.image` give the
same images, but take more than ten times the CPU time.
"""

from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10.config import CLASSIC, DEPTH, HEIGHT, IMAGE_SIZE, WIDTH


class Distortions(NamedTuple):
    """Random distortions of n images."""

    rows: tf.Tensor  # int32 [n], 0 to 32 - image_size: first row of each crop
    columns: tf.Tensor  # int32 [n], likewise: first column of each crop
    flip: tf.Tensor  # bool [n], True (probability 1/2) mirrors the image
    contrast_factors: tf.Tensor  # float32 [n]


def sample(n, hparams=CLASSIC, image_size=IMAGE_SIZE):
    """Sample the Distortions of n images.

    Args:
      n: the number of images.
      hparams: an HParams.
      image_size: height and width of the crops, up to 32.
    """
    contrast = hparams.contrast
    last = HEIGHT - image_size  # possible row and column; images are square
    first = round(last / 2 * (1 - hparams.crop_range))
    return Distortions(
        rows=tf.random_uniform([n], first, last - first + 1, tf.int32),
        columns=tf.random_uniform([n], first, last - first + 1, tf.int32),
        flip=tf.random_uniform([n]) < 0.5,
        contrast_factors=tf.random_uniform([n], 1 - contrast, 1 + contrast),
    )


def distort(images, distortions, image_size=IMAGE_SIZE):
    """Crop, flip, adjust contrast and standardize each image of a batch.

    The result equals tf.image's crop, flip, adjust_brightness, adjust_contrast and
    per_image_standardization of each image, in float32 without clipping. Brightness is left out,
    because standardization cancels any change of brightness. Contrast and standardization together
    are one affine map per channel.

    Args:
      images: uint8 [n, 3, 32, 32].
      distortions: a Distortions.
      image_size: height and width of the crops.

    Returns:
      float32 [n, image_size, image_size, 3].
    """
    rows, columns, flip, contrast_factors = distortions
    offsets = tf.range(image_size)
    images = tf.gather(images, rows[:, None] + offsets, axis=2, batch_dims=1)
    columns = columns[:, None] + tf.where_v2(flip[:, None], offsets[::-1], offsets)
    # The product with a one-hot matrix selects the columns exactly. tf.gather of single bytes would
    # take ten times as long.
    width = int(images.shape[3])
    picks = tf.one_hot(columns, width, axis=1, dtype=tf.float32)
    images = tf.reshape(tf.cast(images, tf.float32), [-1, DEPTH * image_size, width])
    images = tf.reshape(tf.matmul(images, picks), [-1, DEPTH, image_size, image_size])
    return _standardize(images, contrast_factors)


def _standardize(images, contrast_factors):
    """Scale the contrast of [n, 3, height, width], then standardize to [n, height, width, 3].

    Let m_c be the mean of channel c, m the mean of the image and f the contrast factor. Contrast
    maps x - m to f (x - m_c) + (m_c - m), with variance f^2 var(x - m_c) + var(m_c - m). As in
    tf.image.per_image_standardization, the standard deviation is at least 1 / sqrt(number of
    values), so that uniform images stay finite.
    """
    contrast_factors = tf.reshape(contrast_factors, [-1, 1, 1, 1])
    channel_mean = tf.reduce_mean(images, [2, 3], keepdims=True)
    channel_offset = channel_mean - tf.reduce_mean(channel_mean, 1, keepdims=True)
    images -= channel_mean
    variances = [
        tf.reduce_mean(tf.square(x), [1, 2, 3], keepdims=True) for x in (images, channel_offset)
    ]
    variance = tf.square(contrast_factors) * variances[0] + variances[1]
    # maximum before rsqrt: TensorFlow Lite computes NaN for rsqrt(0).
    inverse_stddev = tf.rsqrt(tf.maximum(variance, 1 / images.shape[1:].num_elements()))
    images = images * (contrast_factors * inverse_stddev) + channel_offset * inverse_stddev
    return tf.transpose(images, [0, 2, 3, 1])


def crop(images, image_size=IMAGE_SIZE):
    """Crop the centers of images, and standardize them.

    Args:
      images: uint8 [n, 3, 32, 32].
      image_size: height and width of the crop, up to 32.

    Returns:
      float32 [n, image_size, image_size, 3].
    """
    top, left = (HEIGHT - image_size) // 2, (WIDTH - image_size) // 2
    images = images[:, :, top : top + image_size, left : left + image_size]
    return _standardize(tf.cast(images, tf.float32), 1.0)
