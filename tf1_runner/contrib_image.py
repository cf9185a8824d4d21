"""Projective transforms of images, of tf.contrib.image.

A transform has 8 numbers a0, a1, a2, b0, b1, b2, c0, c1. It maps a point (x, y) of the output to
the point (a0 x + a1 y + a2, b0 x + b1 y + b2) / (c0 x + c1 y + 1) of the input.
"""

import tensorflow.compat.v1 as tf


def transform(images, transforms, interpolation='NEAREST', output_shape=None, name=None):
    """Transform images; what comes from outside is 0.

    Args:
      images: [batch, height, width, channels], [height, width, channels] or [height, width].
      transforms: float32 [8], or [batch, 8].
      interpolation: 'NEAREST' or 'BILINEAR'.
      output_shape: height and width of the output; default: those of the images.
      name: name scope.
    """
    with tf.name_scope(name, 'transform'):
        images = tf.convert_to_tensor(images)
        batch, index = _add_axes(images)
        outputs = tf.raw_ops.ImageProjectiveTransformV2(
            images=batch,
            transforms=_as_matrix(transforms),
            output_shape=tf.shape(batch)[1:3] if output_shape is None else output_shape,
            interpolation=interpolation.upper(),
        )
        return outputs[index]


def _add_axes(images):
    """Return the images with four axes, and the index that undoes this."""
    if images.shape.ndims == 2:
        return images[None, :, :, None], (0, ..., 0)
    return (images[None], 0) if images.shape.ndims == 3 else (images, ...)


def _as_matrix(vectors):
    """Return float32 [batch, length] of one vector, or of a batch."""
    vectors = tf.convert_to_tensor(vectors, tf.float32)
    return vectors[None] if vectors.shape.ndims == 1 else vectors


def rotate(images, angles, interpolation='NEAREST', name=None):
    """Rotate images counterclockwise by an angle in radians, or by one each; see `transform`."""
    with tf.name_scope(name, 'rotate'):
        images = tf.convert_to_tensor(images)
        height, width = tf.unstack(tf.cast(tf.shape(_add_axes(images)[0])[1:3], tf.float32))
        return transform(
            images, angles_to_projective_transforms(angles, height, width), interpolation
        )


def translate(images, translations, interpolation='NEAREST', name=None):
    """Translate images by [dx, dy], or by one each, [batch, 2]; see `transform`."""
    with tf.name_scope(name, 'translate'):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(angles, image_height, image_width, name=None):
    """Return the transforms [batch, 8] of rotations around the center; see `rotate`."""
    with tf.name_scope(name, 'angles_to_projective_transforms'):
        angles = tf.reshape(tf.convert_to_tensor(angles, tf.float32), [-1])
        cos, sin, zero = tf.cos(angles), tf.sin(angles), tf.zeros_like(angles)
        right, bottom = image_width - 1, image_height - 1
        x_offset = (right - (cos * right - sin * bottom)) / 2
        y_offset = (bottom - (sin * right + cos * bottom)) / 2
        return tf.stack([cos, -sin, x_offset, sin, cos, y_offset, zero, zero], 1)


def translations_to_projective_transforms(translations, name=None):
    """Return the transforms [batch, 8] of translations; see `translate`."""
    with tf.name_scope(name, 'translations_to_projective_transforms'):
        dx, dy = tf.unstack(_as_matrix(translations), axis=1)
        one, zero = tf.ones_like(dx), tf.zeros_like(dx)
        return tf.stack([one, zero, -dx, zero, one, -dy, zero, zero], 1)
