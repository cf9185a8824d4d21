"""A checkpoint made into a file for TensorFlow Lite."""

import os
import sys

from absl import logging
import tensorflow.compat.v1 as tf

from cifar10.data import dataset
from cifar10.serving import exporting


def convert(trained):
    """The bytes of a file with the network and its weights.

    Its input `images` is float32 [n, 32, 32, 3] from 0 to 255; n is 1 unless the interpreter
    resizes it. Its output, `probabilities`, is float32 [n, classes].

    Args:
      trained: a Trained.

    Raises:
      UserError: the checkpoint does not fit the network.
    """
    logging.set_verbosity(logging.ERROR)  # the converter tells what it is going to do
    # TensorFlow 1.15 starts a program beside Python, also where the environment is not activated.
    os.environ['PATH'] = os.pathsep.join(
        [os.path.dirname(sys.executable), os.environ.get('PATH', '')]
    )
    with tf.Graph().as_default(), tf.Session(
        config=tf.ConfigProto(device_count={'GPU': 0})
    ) as session:
        images = tf.placeholder(
            tf.float32, [None, dataset.HEIGHT, dataset.WIDTH, dataset.DEPTH], 'images'
        )
        with trained.constants():
            probabilities = exporting.standard_probabilities(
                tf.transpose(images, [0, 3, 1, 2]), len(trained.class_names)
            )
        return tf.lite.TFLiteConverter.from_session(
            session, [images], [tf.identity(probabilities, 'probabilities')]
        ).convert()
