"""Views of an image: its class probabilities are averaged over them."""

import math

import tensorflow.compat.v1 as tf

from cifar10 import distortions, model
from cifar10.hparams import NUM_VIEWS

_DISTANCE = 3  # pixels from the centre of the image to that of an outer crop, down and across


def crop_and_mirror(images, num_views):
    """The views of each image, standardised.

    Args:
      images: uint8 [n, 3, 32, 32].
      num_views: 1 for the crop at the centre; 2 for this crop and its mirror image; 10 for this
        crop and four others, towards the corners, each with its mirror image.

    Returns:
      A list of `num_views` float32 [n, 24, 24, 3].

    Raises:
      ValueError: there are no such views.
    """
    if num_views not in NUM_VIEWS:
        raise ValueError('Unknown number of views: %s' % num_views)
    shifts = [(0, 0)]
    if num_views == 10:
        shifts += [
            (down, across) for down in (-_DISTANCE, _DISTANCE) for across in (-_DISTANCE, _DISTANCE)
        ]
    crops = [distortions.crop(images, *shift) for shift in shifts]
    return crops if num_views == 1 else crops + [crop[:, :, ::-1] for crop in crops]


def log_probabilities(images, num_views, num_classes, num_slices, fc_weight_decay):
    """The logarithm of the mean, over the views, of the probabilities of the classes.

    Args:
      images: uint8 [n, 3, 32, 32].
      num_views: see `crop_and_mirror`.
      num_classes, num_slices, fc_weight_decay: see model.inference.

    Returns:
      float32 [n, num_classes].
    """
    with tf.name_scope('views'):
        images = tf.concat(crop_and_mirror(images, num_views), 0)
    logits = model.inference(images, num_classes, num_slices, fc_weight_decay)
    with tf.name_scope('log_probabilities'):
        log_softmax = tf.reshape(tf.nn.log_softmax(logits), [num_views, -1, num_classes])
        return tf.reduce_logsumexp(log_softmax, 0) - math.log(num_views)
